"""The upgrade of an older release's database: its rows, a note in each log, its version.

Any step may be the last before a crash, and the next start does what is left: a migration counts
once it is committed, and the notes are committed together with the version.
"""

import logging
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from nanovm_core.core.envelope import LOG_RUN
from pipeline.clock import now_ms
from pipeline.models import Envelope, Schema, Workspace
from pipeline.ops import error_messages
from pipeline.ops.processes import ProcessError
from pipeline.store import records, state_file, workspaces

KIND = "upgraded"
COPY = "app.schema-"  # begins the name of the copy that is kept while an upgrade is under way

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A layout of the tables, and the release of nanovm that made it."""

    version: int
    release: str


def recorded() -> Recorded | None:
    """The layout that the database has; None where it was never made to its end."""
    if Schema._meta.db_table not in connection.introspection.table_names():
        return None
    row = Schema.objects.order_by("-version").first()
    return None if row is None else Recorded(version=row.version, release=row.release)


def record(made: Recorded) -> None:
    """Write down which layout the database has now."""
    Schema.objects.create(version=made.version, release=made.release, at_ms=now_ms())


def upgrade(found: Recorded, to: Recorded) -> None:
    """Migrate the rows, seal that in every open log, and record the version last.

    A database in a file is copied first; the copy is removed when all is done.

    Raises:
        ProcessError: where a migration fails; it is rolled back, and the copy is kept.
    """
    copy = _copied(found) if connection.vendor == "sqlite" else None
    try:
        call_command("migrate", verbosity=0, interactive=False)
        with transaction.atomic():
            _seal_notes(found, to)
            record(to)
    except Exception as error:
        connection.close()
        raise ProcessError(_failed(found, to, error, copy)) from error
    drop_copies()
    log.info("The database was upgraded from schema %s to %s.", found.version, to.version)


def drop_copies() -> None:
    """Remove the copy from before an upgrade: what is erased from now on must be in no copy."""
    copies = [*settings.NANOVM_DATA.glob(f"{COPY}*")]
    for each in copies:
        each.unlink(missing_ok=True)
    if copies:
        state_file.sync(settings.NANOVM_DATA)


def _copied(found: Recorded) -> Path:
    """The database as it was before anything was changed, beside it; a copy that is there stays."""
    copy: Path = settings.NANOVM_DATA / f"{COPY}{found.version}.sqlite3"
    if not copy.exists():
        draft = copy.with_name(f"{copy.name}.new")
        draft.unlink(missing_ok=True)
        connection.ensure_connection()
        with closing(sqlite3.connect(draft)) as new:
            connection.connection.backup(new)
        handle = os.open(draft, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.replace(copy)
        state_file.sync(copy.parent)
    return copy


def _seal_notes(found: Recorded, to: Recorded) -> None:
    """Seal the upgrade once in each log that no restore closed."""
    opened = Workspace.objects.filter(successor=None).order_by("id")
    for workspace_id in [*opened.values_list("id", flat=True)]:
        try:
            with transaction.atomic():
                workspace = records.lock_log(workspace_id)
                if not _is_noted(workspace, to):
                    said = {"from": found.version, "to": to.version, "release": to.release}
                    workspaces.seal(workspace, KIND, {"in": said}, actor="runtime")
        except IntegrityError as error:  # its damage is fsck's to name: it stops no other log
            log.warning("The log of %s is damaged and got no note: %s", workspace_id, error)


def _is_noted(workspace: Workspace, to: Recorded) -> bool:
    """Whether the log's own chain says that it was upgraded so far."""
    rows = Envelope.objects.filter(workspace=workspace, run=LOG_RUN, kind=KIND)
    said = (records.body_of(data) for data in rows.values_list("bytes", flat=True))
    return any(records.part_of(each, "in").get("to") == to.version for each in said)


def _failed(found: Recorded, to: Recorded, error: Exception, copy: Path | None) -> str:
    """What is said of an upgrade that failed: what happened, where the data is, what to do."""
    what = f"{type(error).__name__}: {error}. Start again once that is mended."
    if not isinstance(error, error_messages.PROGRAMMING_ERRORS) and isinstance(
        error, error_messages.DATABASE_ERRORS
    ):
        what = error_messages.of_database(error, "Then start again.")
    back = f"To go back to nanovm {found.release},"
    if copy is None:
        where = f"{back} put your own backup of the database back."
    else:
        app = Path(str(connection.settings_dict["NAME"])).name
        where = (
            f"The database as it was before is {copy}. {back} delete {app}-wal and {app}-shm, and"
            f" move that file over {app}."
        )
    return (
        f"The database could not be upgraded from schema {found.version} to {to.version}. {what}"
        f" Nothing is lost: the step that failed was undone. {where}"
    )
