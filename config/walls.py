"""The walls of the reader's process: the few files and ports that it may open, and no others."""

import os
import sqlite3
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parent.parent
NOT_CODE: Final = "var"  # where the data is by default; names with a dot are no code either
SYSTEM: Final = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/nix/store")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
CODE: Final = "the code of nanovm, of Python and of the system, and /etc (read)"
FREE: Final = "any that its account may open"

_STORES: Final = ("app.sqlite3", "keys.sqlite3")
# By name, in the data folder; whether it is changed too. A document is opened by its name: no list
# of them is needed.
_DATA: Final = {
    **{f"{name}{ending}": True for name in _STORES for ending in ("", "-wal", "-shm")},
    **dict.fromkeys(("kek", "media", "signer/logs"), False),  # logs: the signed heads
}

said: dict[str, object] = {}  # what close() returned in this process; empty: it has no walls
_held: list[sqlite3.Connection] = []
_seen: dict[Path, tuple[int, int] | None] = {}


def close(data: Path, ports: Mapping[str, int], more: Iterable[Path] = ()) -> dict[str, object]:
    """Refuse this process every file and TCP port but those of its work, for good.

    To be called in the main thread, before another one starts. ``more``: what is to be read. What a
    rule names is the file that is there now: ``replaced`` tells whether another one came since.

    Returns:
        ``confined`` and ``missing``, the walls that hold and the others with the kernel's reason;
        ``files`` and ``ports``, what the process may open, in words.
    """
    from reader import confinement  # a program without the reader has no walls

    data = data.resolve()
    hold(data)
    read = confinement.READ_FILE, confinement.READ_FILE | confinement.READ_DIR
    rules = {**_rules(data), **{path: read[path.is_dir()] for path in more}}
    files = {path: rights for path, rights in rules.items() if path.exists()}
    _seen.update({data / name: _identity(data / name) for name in _DATA})
    try:
        abi = confinement.landlock(files.items(), ports.values())
    except OSError as error:
        abi, why = 0, error.strerror or type(error).__name__
    else:
        why = f"this kernel's Landlock is of ABI {abi}"
    walls = {"files": 1, "ports": 4, "signals": 6}  # the ABI that brought each
    gaps = {wall: why for wall, since in walls.items() if abi < since}
    try:
        confinement.seccomp(of_reading=False)
    except OSError as error:
        gaps["calls"] = error.strerror or type(error).__name__
    named = [f"{name} {port}" for name, port in ports.items()]
    said.update(
        confined=", ".join(wall for wall in (*walls, "calls") if wall not in gaps),
        missing=", ".join(f"{wall} ({reason})" for wall, reason in gaps.items()),
        files=[*_in_words(files, data), CODE] if abi else [FREE],
        ports=named if abi >= walls["ports"] else [FREE],
    )
    return said


def replaced() -> Path | None:
    """A file that the walls keep from this process because it came after them; None if none did.

    A restored backup is one. Only a new start of the process can open it.
    """
    if "files" not in str(said.get("confined")):
        return None
    return next((path for path, before in _seen.items() if _identity(path) != before), None)


def hold(data: Path) -> None:
    """Keep a connection to each database: SQLite removes the log that its last one leaves."""
    for name in _STORES:
        if (data / name).exists():
            opened = sqlite3.connect(data / name)
            opened.execute("PRAGMA journal_mode=WAL")
            opened.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # which opens the log
            _held.append(opened)


def _rules(data: Path) -> dict[Path, int]:
    """The rights to each file and folder. The code cannot be changed: the payer runs it too."""
    from reader.confinement import EXECUTE, READ_DIR, READ_FILE, TRUNCATE, WRITE_FILE

    read, changed = READ_FILE | READ_DIR, READ_FILE | WRITE_FILE | TRUNCATE
    own = [
        part
        for entry in PROJECT.iterdir()
        if not entry.name.startswith(".") and entry.name != NOT_CODE
        for part in _beside(entry.resolve(), data)
    ]
    named = {Path(each).resolve() for each in (sys.prefix, sys.base_prefix, *SYSTEM)}
    system = [part for each in named - {PROJECT} for part in _beside(each, data)]
    return {
        PROJECT: READ_DIR,  # an import lists it; the names in a data folder below can be listed too
        **dict.fromkeys(own, read),
        **dict.fromkeys(system, read | EXECUTE),
        **dict.fromkeys(map(Path, DEVICES), READ_FILE | WRITE_FILE),
        **{data / name: changed if writes else READ_FILE for name, writes in _DATA.items()},
    }


def _beside(folder: Path, data: Path) -> Iterator[Path]:
    """A folder; where the data folder is in it, its entries beside that."""
    if not data.is_relative_to(folder):
        yield folder
    elif folder != data:
        for entry in folder.iterdir():
            if not entry.is_symlink():
                yield from _beside(entry, data)


def _in_words(files: Container[Path], data: Path) -> Iterator[str]:
    """What is open of the data folder; a database's own log and index go with it."""
    for name, writes in _DATA.items():
        if not name.endswith(("-wal", "-shm")) and data / name in files:
            yield f"{name} ({'read, write' if writes else 'read'})"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
