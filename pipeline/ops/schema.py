"""The database's tables, made or brought up to date by one process at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from pipeline.ops import error_messages
from pipeline.ops.processes import ProcessError

TURN = 0x6E616E6F766D  # "nanovm": the name of the lock that its processes take on a server


def migrate() -> None:
    """Make or change every table that is not as this code needs it.

    Raises:
        ProcessError: in one sentence, where the database cannot be reached or refuses.
    """
    try:
        with _in_turn():
            _refuse_other_versions()
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        raise ProcessError(error_messages.of_database(error, "Then start again.")) from error


def _refuse_other_versions() -> None:
    """Refuse a database created by a different schema version."""
    loader = MigrationLoader(connection)
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
    """On PostgreSQL, let processes that start at once migrate one after another."""
    if connection.vendor != "postgresql":
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
