"""The databases of the pipeline's tests: a file each, or one each on a PostgreSQL server."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from asgiref.sync import SyncToAsync
from django.db import connection, connections

from tests import postgres

on_sqlite_alone = pytest.mark.skipif(
    postgres.WANTED, reason="works on the file of a SQLite database"
)
KEYS = "keys.sqlite3"
on_postgres_alone = pytest.mark.postgres(alone=True)


@contextmanager
def asked() -> Iterator[list[str]]:
    """What SQLite is asked on Django's connection within, each with its values."""
    found: list[str] = []
    connection.ensure_connection()
    connection.connection.set_trace_callback(found.append)
    yield found
    connection.connection.set_trace_callback(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One database: its name as Django has it, and its address where it has one."""

    name: str
    url: str = ""

    @classmethod
    def named(cls, folder: Path, name: str) -> "Database":
        """The database of that name; a file lies in this folder."""
        if postgres.WANTED:
            return cls(name=name, url=postgres.url(name))
        return cls(name=str(folder / f"{name}.sqlite3"))

    def make(self) -> None:
        """Make it, empty."""
        if self.url:
            postgres.execute(f'CREATE DATABASE "{self.name}"')

    def fresh(self, folder: Path) -> "Database":
        """An empty one for one test: a copy, or this one itself with all rows taken out.

        To copy a whole database costs a server half a second.
        """
        if self.url:
            postgres.empty(self.name)
            return self
        own = Database.named(folder, "app")
        self.copy_to(own)
        return own

    def beside(self, name: str) -> "Database":
        """Another one, for a copy of this."""
        return Database.named(Path(self.name).parent, name)

    def copy_to(self, other: "Database") -> None:
        """Make a whole copy, as a backup tool makes it; nobody is connected to either."""
        other.drop()
        if self.url:
            postgres.execute(f'CREATE DATABASE "{other.name}" TEMPLATE "{self.name}"')
            return
        with (
            closing(sqlite3.connect(self.name)) as old,
            closing(sqlite3.connect(other.name)) as new,
        ):
            old.backup(new)

    def drop(self) -> None:
        """Take it away, where it is there."""
        if self.url:
            postgres.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')
        else:
            Path(self.name).unlink(missing_ok=True)

    def folders(self) -> list[Path]:
        """Where the server keeps it, everything written; a file lies in the data folder."""
        return [postgres.folder_of(self.name)] if self.url else []

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Every thread's connections go here."""
        before = connection.settings_dict["NAME"]
        _hang_up()
        connection.settings_dict["NAME"] = self.name
        try:
            yield
        finally:
            _hang_up()
            connection.settings_dict["NAME"] = before


def _hang_up() -> None:
    """Close this thread's connections, and those of the thread that async tests read in."""
    connections.close_all()
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


class Backup:
    """A copy of a data folder's databases, and of the documents and mails beside them."""

    def __init__(self, folder: Path, away: Path) -> None:
        self._folder, self._away = folder, away
        connections.close_all()
        away.mkdir()
        for name in ("app", "keys"):
            Database.named(folder, name).copy_to(Database.named(away, name))
        for name in ("media", "mail"):
            (folder / name).mkdir(exist_ok=True)
            shutil.copytree(folder / name, away / name)

    def put_back(self, *, all_of_it: bool = True) -> None:
        """Put it in place of what is there; without ``all_of_it`` the application's database."""
        connections.close_all()
        for file in self._folder.glob("app.sqlite3-*"):
            file.unlink()
        Database.named(self._away, "app").copy_to(Database.named(self._folder, "app"))
        if all_of_it:
            for file in self._folder.glob(f"{KEYS}*"):  # its log is not the backup's
                file.unlink()
            others = shutil.ignore_patterns("app.*")
            shutil.copytree(self._away, self._folder, dirs_exist_ok=True, ignore=others)
