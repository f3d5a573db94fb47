"""The database's tables, made or brought up to date by one process at a time.

A lock on the data folder refuses an upgrade while another process uses it.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from engine.clock import now_ms
from engine.management import upgrade
from engine.models import Schema
from engine.ops import error_messages
from engine.ops.processes import ProcessError
from engine.store import state_file

SCHEMA = 10  # the layout of the tables; a release that adds a migration raises it
RELEASE = "0.1.0"  # of nanovm, as pyproject.toml says it too
_held: dict[Path, int] = {}  # the folder that this process uses, and its lock's file
TURN = 0x6E616E6F766D  # "nanovm": the key of the advisory lock on PostgreSQL


def migrate() -> None:
    """Make the tables, or upgrade those of an older release; others are refused as they are.

    From then on, until it ends, this process keeps others from upgrading the data folder.

    Raises:
        ProcessError: where the database cannot be used, read or upgraded, or the folder is in use.
    """
    try:
        with _in_turn():
            _bring_up_to_date(upgrade.recorded())
            _hold(settings.NANOVM_DATA)
    except (DatabaseError, sqlite3.Error) as error:
        raise ProcessError(error_messages.of_database(error, "Then start again.")) from error
    except OSError as error:
        raise ProcessError(error_messages.of_file(error)) from error


def _bring_up_to_date(found: Schema | None) -> None:
    """A database that has no version has no logs either: each is made after the version is."""
    _refuse_newer(found)
    loader = MigrationLoader(connection)
    _refuse_other_versions(loader)
    to = Schema(version=SCHEMA, release=RELEASE, at_ms=now_ms())
    if found is not None and found.version < SCHEMA:
        with _alone(settings.NANOVM_DATA):
            upgrade.upgrade(found, to, _which())
    elif found is None or {*loader.disk_migrations} - {*loader.applied_migrations}:
        upgrade.make(to)


def _refuse_newer(found: Schema | None) -> None:
    """Refuse a database that a later release made or upgraded."""
    if found is not None and found.version > SCHEMA:
        raise ProcessError(
            f"The database has schema {found.version} of nanovm {found.release}, and nanovm"
            f" {RELEASE} reads schema {SCHEMA} and older ones, so nothing was changed. Start nanovm"
            f" {found.release} or a later one, or name another data folder (NANOVM_DATA) or"
            f" database; this one is {_which()}."
        )


def _refuse_other_versions(loader: MigrationLoader) -> None:
    """Refuse a database created by a different schema version."""
    foreign = sorted({*loader.applied_migrations} - {*loader.disk_migrations})
    if foreign:
        names = ", ".join(".".join(each) for each in foreign[:3])
        raise ProcessError(
            f"The database was made by another schema version ({names}), which this version"
            f" cannot read, and nothing was changed. Name a new data folder (NANOVM_DATA) or"
            f" database, or start the version that made it; it is {_which()}."
        )


@contextmanager
def _in_turn() -> Iterator[None]:
    """Let processes that start at once migrate one after another: by a file, or on the server."""
    if connection.vendor != "postgresql":
        with state_file.locked(settings.NANOVM_DATA / "schema"):
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [TURN])
    try:
        yield
    finally:
        connection.close()  # which gives the lock back, whatever state it is in


def _which() -> str:
    """Where the data is, without the password that DATABASE_URL may contain."""
    if connection.vendor == "postgresql":
        return "the one that DATABASE_URL names"
    return str(settings.NANOVM_DATA)


def _hold(folder: Path) -> None:
    """Use a folder from now on, until this process ends or uses another one."""
    fcntl.flock(_lock_of(folder), fcntl.LOCK_SH)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
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
