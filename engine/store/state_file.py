"""Small files that no crash halves: locked while they are read and replaced, and synced."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

ENDING = ".note"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """A file in the hands of one process at a time."""

    file: Path

    def read(self) -> bytes | None:
        """What was put there last; None where nothing ever was, or it is lost."""
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            return None

    def replace(self, data: bytes) -> None:
        """Put ``data`` in place of what is there: when this returns, it is on the disk.

        A crash leaves the one or the other, whole.
        """
        draft = self.file.with_name(f"{self.file.name}.new")
        draft.unlink(missing_ok=True)  # of a crash: the lock is ours
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        draft.replace(self.file)
        sync(self.file.parent)


@contextmanager
def locked(file: Path, *, shared: bool = False) -> Iterator[StateFile]:
    """The file, which nobody else reads or replaces before the block ends.

    The lock is that of a file beside it, for a replaced file takes its own lock with it. It
    goes with the process, however that ends. ``shared``: others may hold it so, too.
    """
    lock = file.with_name(f"{file.name}.lock")
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield StateFile(file=file)
    finally:
        os.close(handle)


def read_plain(file: Path) -> bytes:
    """The bytes of a plain file; whatever else is in its place is not waited for.

    Raises:
        OSError: it cannot be read, or is a pipe or a device, whose bytes may never come.
    """
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a plain file", str(file))
        return opened.read()


def private(folder: Path) -> Path:
    """The folder, made where it is not there, open to its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_name(origin: str) -> str:
    """A file's name for a log: no two logs have one, and none leaves the folder."""
    return f"{quote(origin, safe='')}{ENDING}"


def origins(folder: Path) -> dict[str, Path]:
    """The logs that have a file in a folder, by name."""
    return {
        unquote(file.name.removesuffix(ENDING)): file for file in sorted(folder.glob(f"*{ENDING}"))
    }
