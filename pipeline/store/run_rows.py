"""The rows of runs as the commit path reads and stores them, with what lies beside them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pipeline.models import Run, Terms
from pipeline.store import sql

_FIELDS = tuple(each.attname for each in Run._meta.concrete_fields)
_TERMS_OF = tuple(each.attname for each in Terms._meta.concrete_fields)
_COLUMNS = ", ".join(f"r.{each}" for each in _FIELDS)
_RUNS = (
    f"SELECT {_COLUMNS}, t.program, t.policy, l.holder, l.until_ms FROM pipeline_run r"
    " LEFT JOIN pipeline_terms t ON t.run_id = r.id"
    " LEFT JOIN pipeline_lease l ON l.run_id = r.id WHERE r.id IN "
)
_NEW = f"INSERT INTO pipeline_run ({', '.join(_FIELDS)}) VALUES {sql.marks(_FIELDS)}"
_KEEP = (
    "UPDATE pipeline_run SET snapshot = %s, state = %s, step = %s, program_hash = %s,"
    " policy_hash = %s, length = %s, head = %s, quarantined = %s, deadline_ms = %s"
    " WHERE id = %s AND length = %s AND head = %s"
)
_ENDED = "UPDATE pipeline_run SET ended_ms = %s WHERE id = %s"  # which an index is about
_TERMS = "INSERT INTO pipeline_terms (run_id, program, policy) VALUES (%s, %s, %s)"
_PUT_BACK = _TERMS + " ON CONFLICT (run_id) DO UPDATE SET program = excluded.program"


def ask(keys: Sequence[object]) -> Callable[[], list[sql.Row]]:
    """Lock the rows of runs, in order: for ``run_of``, with holder and end of each lease behind."""
    return sql.ask(sql.locked(f"{_RUNS}{sql.marks(keys)} ORDER BY r.id", "r"), keys)


def run_of(values: Sequence[Any]) -> Run:
    """The row as Django would make it, and its terms where they are there."""
    *own, program, policy = values
    given = dict(zip(_FIELDS, own, strict=True))
    given["id"], given["workspace_id"] = sql.uuid(given["id"]), sql.uuid(given["workspace_id"])
    given["quarantined"] = bool(given["quarantined"])
    given["snapshot"] = sql.blob(given["snapshot"])
    run = sql.row_of(Run, _FIELDS, [*given.values()])
    if program is not None:
        run.terms = _terms(run, program, policy)
    return run


def put_back(run: Run, program: bytes) -> None:
    """Store a run's true program again."""
    policy = run.policy_source
    run.terms = _terms(run, program, policy)
    sql.change(_PUT_BACK, (sql.key(run.id), program, policy))


def store(changed: Collection[tuple[Run, tuple[int, str] | None]]) -> None:
    """Store runs: new ones whole, of others what moves.

    Beside each the length and head that were read of it, None for a new one: it must stand so.
    """
    new = [run for run, stood in changed if stood is None]
    sql.change_each(_NEW, [_whole(run) for run in new])
    sql.change_each(_TERMS, [(sql.key(run.id), run.terms.program, run.terms.policy) for run in new])
    for run in new:
        run._state.adding = False
    moved = [_moved(run, stood) for run, stood in changed if stood is not None]
    if sql.change_each(_KEEP, moved) != len(moved):
        raise RuntimeError("A run changed under its lock; nothing was written.")
    ended = [run for run, stood in changed if stood and run.ended_ms is not None]
    sql.change_each(_ENDED, [(run.ended_ms, sql.key(run.id)) for run in ended])


def _terms(run: Run, program: object, policy: object) -> Terms:
    return sql.row_of(Terms, _TERMS_OF, (run.id, sql.blob(program), sql.blob(policy)))


def _whole(run: Run) -> list[object]:
    values = {name: getattr(run, name) for name in _FIELDS}
    values["id"], values["workspace_id"] = sql.key(run.id), sql.key(run.workspace_id)
    return [*values.values()]


def _moved(run: Run, stood: tuple[int, str]) -> tuple[object, ...]:
    return (
        run.snapshot,
        run.state,
        run.step,
        run.program_hash,
        run.policy_hash,
        run.length,
        run.head,
        run.quarantined,
        run.deadline_ms,
        sql.key(run.id),
        *stood,
    )
