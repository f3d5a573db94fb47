"""The points of a crash: before and after everything that outlives a process."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from engine.signals import run_changed
from engine.vault import key_store
from pipeline.steps import adapters

WRITES = ("insert", "update", "delete", "replace", "create", "drop", "commit", "end")
EMPTIES = "pragma wal_checkpoint"
BORN = os.O_CREAT | os.O_TRUNC

At = Callable[[int, str], None]


@dataclass(slots=True)
class Watch:
    """Counts the points that are passed; ``at`` is called at each."""

    folder: Path
    at: At
    names: list[str] = field(default_factory=list)
    asleep: bool = False

    def said(self, name: str) -> None:
        """A point is passed."""
        if self.asleep:
            return
        self.names.append(name)
        self.asleep = True  # what is done here is no work of the application's
        try:
            self.at(len(self.names) - 1, name)
        finally:
            self.asleep = False

    def owns(self, path: object) -> bool:
        """Whether it is a file of the data folder; a lock's file holds nothing."""
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        return text.startswith(f"{self.folder}{os.sep}") and not text.endswith(".lock")


_watch: list[Watch] = []  # the one that looks, if any


def said(name: str) -> None:
    """Tell whoever looks that a point is passed."""
    for watch in _watch:
        watch.said(name)


@contextmanager
def watched(folder: Path, at: At) -> Iterator[Watch]:
    """Call ``at`` with number and name of every point that the block passes."""
    watch = Watch(folder, at)
    _watch.append(watch)
    try:
        yield watch
    finally:
        _watch.remove(watch)


@contextmanager
def hooked() -> Iterator[None]:
    """Every connection, file operation, effect and announcement in the block tells its points."""
    with pytest.MonkeyPatch.context() as patch:
        options = {**connection.settings_dict["OPTIONS"], "factory": Connection}
        patch.setitem(connection.settings_dict, "OPTIONS", options)
        patch.setattr(sqlite3, "connect", _connecting(sqlite3.connect))
        patch.setattr(key_store, "_kept", type(key_store._kept)())  # no older connection
        for name in ("open", "fsync", "replace", "link", "unlink"):
            patch.setattr(os, name, _told(name, getattr(os, name)))
        for name in ("write_bytes", "write_text"):
            patch.setattr(Path, name, _halved(getattr(Path, name)))
        hooked = {tool: _around(tool, do) for tool, do in adapters.ADAPTERS.items()}
        patch.setattr(adapters, "ADAPTERS", hooked)
        run_changed.connect(_announced)
        try:
            yield
        finally:
            run_changed.disconnect(_announced)


def _announced(**_: object) -> None:
    said("announcement")


# --- databases -----------------------------------------------------------------------------


class _Watched:
    """A cursor that tells of each write that is a commit."""

    connection: sqlite3.Connection

    def execute(self, statement: str, *args: Any) -> Any:
        """Run a statement, between two points where it outlives the process."""
        name = _lasting(self.connection, statement)
        if not name:
            return super().execute(statement, *args)  # type: ignore[misc]
        said(f"before {name}")
        answer = super().execute(statement, *args)  # type: ignore[misc]
        said(f"after {name}")
        return answer

    def executemany(self, statement: str, rows: Any) -> Any:
        """Outside a transaction this would be many commits: nobody does that here."""
        assert not _lasting(self.connection, statement), f"a commit for each row: {statement}"
        return super().executemany(statement, rows)  # type: ignore[misc]


@lru_cache
def _cursor(kind: type[sqlite3.Cursor]) -> type[sqlite3.Cursor]:
    return type(f"Watched{kind.__name__}", (_Watched, kind), {})


class Connection(sqlite3.Connection):
    """A connection whose commits are points."""

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """A cursor that tells."""
        return super().cursor(_cursor(factory))

    def execute(self, statement: str, *args: Any) -> Any:
        """Through a cursor that tells: SQLite's own would go past it."""
        return self.cursor().execute(statement, *args)

    def executemany(self, statement: str, rows: Any) -> Any:
        """Through a cursor that tells."""
        return self.cursor().executemany(statement, rows)

    def commit(self) -> None:
        """Commit, between two points."""
        if not self.in_transaction:
            return super().commit()
        said(f"before {_file_of(self)}: commit")
        super().commit()
        return said(f"after {_file_of(self)}: commit")

    def executescript(self, script: str) -> Any:
        """Each statement by itself, as it is committed."""
        cursor = self.cursor()
        for statement in filter(str.strip, script.split(";")):
            cursor.execute(statement)
        return cursor


def _lasting(opened: sqlite3.Connection, statement: str) -> str:
    """What a statement is called that is a commit; empty for any other."""
    words = statement.strip().lower()
    ends = words.startswith(("commit", "end"))
    if words.startswith(EMPTIES) or (words.startswith(WRITES) and opened.in_transaction == ends):
        return f"{_file_of(opened)}: {' '.join(words.split()[:3])}"
    return ""


def _file_of(opened: sqlite3.Connection) -> str:
    return Path(sqlite3.Connection.execute(opened, "PRAGMA database_list").fetchone()[2]).stem


def _connecting(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        return connect(*args, **{"factory": Connection, **options})

    return connected


# --- files and effects ---------------------------------------------------------------------


def _told(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, between two points where it is about a file of the data folder."""

    def done(*args: Any, **options: Any) -> Any:
        if not any(_is_about(name, watch, args) for watch in _watch):
            return do(*args, **options)
        said(f"before {name}")
        answer = do(*args, **options)
        said(f"after {name}")
        return answer

    return done


def _is_about(name: str, watch: Watch, args: tuple[Any, ...]) -> bool:
    if name == "fsync":
        return True
    if name == "open":
        return len(args) > 1 and bool(args[1] & BORN) and watch.owns(args[0])
    return watch.owns(args[0])


def _halved(write: Callable[..., int]) -> Callable[..., int]:
    """The same write, with a point in its middle."""

    def written(path: Path, data: Any, *args: Any) -> int:
        if not any(watch.owns(path) for watch in _watch):
            return write(path, data, *args)
        said("before a file is written")
        write(path, data[: len(data) // 2], *args)
        said("in the middle of a file")
        count = write(path, data, *args)
        said("after a file was written")
        return count

    return written


def _around(tool: str, do: Callable[..., Any]) -> Callable[..., Any]:
    def done(work: Any) -> Any:
        said(f"before the effect {tool}")
        answer = do(work)
        said(f"after the effect {tool}")
        return answer

    return done
