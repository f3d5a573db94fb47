"""Raw SQL behind the application's back, as an attacker with the database file would use it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import Model

from pipeline.models import Envelope, Run, Secret, Terms

SQLITE_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s"
POSTGRES_TRIGGERS = (
    "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger "
    "WHERE tgrelid = %s::regclass AND NOT tgisinternal"
)


def change_envelope(run: Run, n: int, column: str, value: bytes | str) -> tuple[str, ...]:
    """Overwrite a column of one envelope of this run; returns the triggers it had to drop.

    They are dropped and put back as they were in the one transaction that changes the row.
    """
    table = Envelope._meta.db_table
    with transaction.atomic(), _no_triggers(table) as dropped:
        changed = _execute(
            f"UPDATE {table} SET {column} = %s WHERE workspace_id = %s AND run = %s AND n = %s",  # noqa: S608 - names of ours
            [_stored(Envelope, column, value), _workspace(run), str(run.id), n],
        )
        _expect_one(changed)
    return dropped


def change_run(run: Run, column: str, value: bytes) -> None:
    """Overwrite a column of this run's row."""
    table = Run._meta.db_table
    changed = _execute(
        f"UPDATE {table} SET {column} = %s WHERE workspace_id = %s AND id = %s",  # noqa: S608 - names of ours
        [_stored(Run, column, value), _workspace(run), _stored(Run, "id", run.id)],
    )
    _expect_one(changed)


def change_terms(run: Run, column: str, value: bytes) -> None:
    """Overwrite the program or the policy beside this run."""
    changed = _execute(
        f"UPDATE {Terms._meta.db_table} SET {column} = %s WHERE run_id = %s",  # noqa: S608 - names of ours
        [_stored(Terms, column, value), _stored(Run, "id", run.id)],
    )
    _expect_one(changed)


def change_secret(run: Run, ref: str, columns: Mapping[str, object]) -> None:
    """Overwrite columns of one secret of this run's row in the vault."""
    table = Secret._meta.db_table
    marks = ", ".join(f"{column} = %s" for column in columns)
    values = [_stored(Secret, column, value) for column, value in columns.items()]
    changed = _execute(
        f"UPDATE {table} SET {marks} WHERE run_id = %s AND ref = %s",  # noqa: S608 - names of ours
        [*values, _stored(Run, "id", run.id), ref],
    )
    _expect_one(changed)


def change_outbox(run: Run, columns: Mapping[str, object]) -> None:
    """Overwrite what this run owes, without the transaction that would seal an intent of it."""
    marks = ", ".join(f"{column} = %s" for column in columns)
    values = [_stored(Run, column, value) for column, value in columns.items()]
    changed = _execute(
        f"UPDATE {Run._meta.db_table} SET {marks} WHERE workspace_id = %s AND id = %s",  # noqa: S608 - names of ours
        [*values, _workspace(run), _stored(Run, "id", run.id)],
    )
    _expect_one(changed)


@contextmanager
def _no_triggers(table: str) -> Iterator[tuple[str, ...]]:
    triggers = _triggers(table)
    on = f" ON {table}" if connection.vendor == "postgresql" else ""
    for name in triggers:
        _execute(f"DROP TRIGGER {name}{on}")
    yield tuple(triggers)
    for definition in triggers.values():
        _execute(definition)


def _triggers(table: str) -> Mapping[str, str]:
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute(SQLITE_TRIGGERS if sqlite else POSTGRES_TRIGGERS, [table])
        return dict(cursor.fetchall())


def _execute(statement: str, values: list[Any] | None = None) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def _stored(model: type[Model], column: str, value: object) -> Any:
    """A value as the database's driver wants it."""
    field = model._meta.get_field(column)
    return field.get_db_prep_save(value, connection)  # type: ignore[union-attr]


def _workspace(run: Run) -> Any:
    return _stored(Run, "workspace", run.workspace_id)


def _expect_one(changed: int) -> None:
    if changed != 1:
        raise RuntimeError(f"the attack was meant for one row and met {changed}")
