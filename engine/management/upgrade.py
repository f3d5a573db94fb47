"""The tables and their version, made or upgraded in one transaction: all of it, or nothing.

An upgrade is the rows, a note in each log and the version. A process that dies in the middle, or a
migration that fails, leaves the database as the older release left it.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from engine.application import installed
from engine.models import Schema, Workspace
from engine.ops import error_messages
from engine.ops.processes import ProcessError
from engine.runtime import chains
from engine.store import ledgers
from nanovm_core.ledger.value import json_of

KIND = "upgraded"  # of the note that each open log gets
LEDGERS_SINCE = 5  # the first schema whose envelopes seal the ledgers of logs

log = logging.getLogger(__name__)


def recorded() -> Schema | None:
    """The schema version; None if it was never fully created."""
    if Schema._meta.db_table not in connection.introspection.table_names():
        return None
    return Schema.objects.order_by("-version").first()


def make(to: Schema) -> None:
    """Make the tables that are not there yet, and record their layout."""
    with _one_transaction():
        call_command("migrate", verbosity=0, interactive=False)
        if recorded() is None:
            _record(to)


def upgrade(found: Schema, to: Schema, where: str) -> None:
    """Migrate the rows, fill new tables, seal that in each open log, and record the version.

    Raises:
        ProcessError: where any part failed; the message says ``where`` the database is.
    """
    try:
        with _one_transaction():
            call_command("migrate", verbosity=0, interactive=False)
            for each in installed():
                each.upgraded()
            _seal_notes(found, to)
            _record(to)
    except Exception as error:
        connection.close()
        raise ProcessError(_failed(found, to, error, where)) from error
    log.info("The database was upgraded from schema %s to %s.", found.version, to.version)


@contextmanager
def _one_transaction() -> Iterator[None]:
    """One for all migrations. On SQLite, Django needs foreign-key checks off before it starts."""
    with connection.constraint_checks_disabled(), transaction.atomic():
        if connection.vendor == "postgresql":  # a pending constraint check blocks ALTER TABLE
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        yield


def _record(made: Schema) -> None:
    made.save(force_insert=True)


def _seal_notes(found: Schema, to: Schema) -> None:
    """Seal the upgrade once in each log that no restore closed."""
    opened = Workspace.objects.filter(successor=None).order_by("id")
    for workspace_id in [*opened.values_list("id", flat=True)]:
        try:
            workspace = Workspace.objects.get(id=workspace_id)
            note = _note(workspace, found, to)
            if workspace.size == 0:  # the house log, made of a table that went
                chains.seal(workspace_id, "genesis", {}, actor="runtime")
            chains.seal(workspace_id, KIND, note, actor="runtime")
        except IntegrityError as error:  # its damage is fsck's to name: it stops no other log
            log.warning("The log of %s is damaged and got no note: %s", workspace_id, error)


def _note(workspace: Workspace, found: Schema, to: Schema) -> dict[str, object]:
    """What an upgrade seals in a log: its whole ledger too, where none was sealed before.

    Of accounts that could not be read, the reservations are left that envelopes name.
    """
    said: dict[str, object] = {"from": found.version, "to": to.version, "release": to.release}
    if found.version >= LEDGERS_SINCE:
        return {"in": said}
    first = ledgers.stored(workspace) or ledgers.fold_of(workspace).value
    return {"in": said, "ledger": json_of(first)}


def _failed(found: Schema, to: Schema, error: Exception, where: str) -> str:
    """What is said of an upgrade that failed: what happened, where the data is, what to do."""
    what = f"The database could not be upgraded from schema {found.version} to {to.version}."
    kept = (
        "Nothing is lost: all of the upgrade was undone, and the database is as nanovm"
        f" {found.release} left it. Start again once that is mended, or go back to nanovm"
        f" {found.release}; the database is {where}."
    )
    is_fault = isinstance(error, error_messages.PROGRAMMING_ERRORS)
    if isinstance(error, error_messages.DATABASE_ERRORS) and not is_fault:
        return f"{what} {error_messages.of_database(error, kept)}"
    return f"{what} {type(error).__name__}: {str(error).rstrip('.')}. {kept}"
