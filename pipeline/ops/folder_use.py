"""A lock on the data folder: an upgrade is refused while another process uses it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.ops.processes import ProcessError

_held: dict[Path, int] = {}  # the folder that this process uses, and its lock's file


def hold(folder: Path) -> None:
    """Use a folder from now on, until this process ends or uses another one."""
    fcntl.flock(_lock_of(folder), fcntl.LOCK_SH)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only process that uses a folder, while the block runs.

    Other starts wait for the caller's own lock meanwhile.

    Raises:
        ProcessError: where another process uses it.
    """
    lock = _lock_of(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ProcessError(
            f"The data in {folder} is of an older release and has to be upgraded, and another"
            " process of nanovm still uses it, so nothing was changed. Stop it (make demo or a"
            " command), and any worker or web server, then start again."
        ) from error
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


def _lock_of(folder: Path) -> int:
    if folder not in _held:
        handle = os.open(folder / "use.lock", os.O_RDWR | os.O_CREAT, 0o600)
        for other in [*_held]:
            os.close(_held.pop(other))
        _held[folder] = handle
    return _held[folder]
