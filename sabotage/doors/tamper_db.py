"""Raw SQL behind the application's back, as an attacker with the database file would use it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import Model

from engine.models import Envelope, Run, Secret, Terms, Workspace
from engine.store import sql

SQLITE_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s"
POSTGRES_TRIGGERS = (
    "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger "
    "WHERE tgrelid = %s::regclass AND NOT tgisinternal"
)
COPY = (
    "INSERT INTO pipeline_terms (digest, program, policy, grants)"
    " SELECT %s, program, policy, grants FROM pipeline_terms"
    " WHERE digest = (SELECT terms_id FROM pipeline_run WHERE id = %s) ON CONFLICT (digest) DO"
    " UPDATE SET program = excluded.program, policy = excluded.policy, grants = excluded.grants"
)


def change_envelope(run: Run, n: int, column: str, value: bytes | str) -> tuple[str, ...]:
    """Overwrite a column of one envelope of this run; returns the triggers it had to drop.

    They are dropped and put back as they were in the one transaction that changes the row.
    """
    with transaction.atomic(), _no_triggers(Envelope._meta.db_table) as dropped:
        row = {"workspace": run.workspace_id, "run": str(run.id), "n": n}
        _change(Envelope, {column: value}, row)
    return dropped


def change_run(run: Run, columns: Mapping[str, object]) -> None:
    """Overwrite columns of this run's row, without the transaction that would seal an intent."""
    _change(Run, columns, {"workspace": run.workspace_id, "id": run.id})


def change_terms(run: Run, column: str, value: bytes) -> None:
    """Overwrite the program or the policy beside this run, and beside no other that shares them."""
    own = run.id.hex * 2  # in the place of a hash
    _execute(COPY, [own, sql.key(run.id)])
    _change(Terms, {column: value}, {"digest": own})
    change_run(run, {"terms": own})


def change_ledger(log: Workspace, value: bytes) -> None:
    """Overwrite the limits, accounts and agents beside this log."""
    _change(Workspace, {"ledger": value}, {"id": log.id})


def change_secret(run: Run, ref: str, columns: Mapping[str, object]) -> None:
    """Overwrite columns of one secret of this run's row in the vault."""
    _change(Secret, columns, {"run": run.id, "ref": ref})


def _change(model: type[Model], columns: Mapping[str, object], row: Mapping[str, object]) -> None:
    """Overwrite columns of the one row that has these values."""
    fields: Any = {name: model._meta.get_field(name) for name in (*columns, *row)}
    new = ", ".join(f"{fields[name].column} = %s" for name in columns)
    old = " AND ".join(f"{fields[name].column} = %s" for name in row)
    values = [
        fields[name].get_db_prep_save(value, connection)  # as the database's driver wants it
        for name, value in (*columns.items(), *row.items())
    ]
    changed = _execute(f"UPDATE {model._meta.db_table} SET {new} WHERE {old}", values)  # noqa: S608 - names of ours
    if changed != 1:
        raise RuntimeError(f"the attack was meant for one row and met {changed}")


@contextmanager
def _no_triggers(table: str) -> Iterator[tuple[str, ...]]:
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute(SQLITE_TRIGGERS if sqlite else POSTGRES_TRIGGERS, [table])
        triggers = dict(cursor.fetchall())
    on = "" if sqlite else f" ON {table}"
    for name in triggers:
        _execute(f"DROP TRIGGER {name}{on}")
    yield tuple(triggers)
    for definition in triggers.values():
        _execute(definition)


def _execute(statement: str, values: list[Any] | None = None) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
