"""The rows of runs as the commit path reads and stores them, and the rows beside them.

One row says all that moves in a step: the snapshot, the chain's head, what the run owes, and who
drives it. One UPDATE stores it, and only where the row still is as it was read.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter, ne
from typing import NamedTuple
from uuid import UUID

from engine.models import Run, Workspace
from engine.store import logs, sql
from nanovm_core.core.lifecycle import PAUSED

_FIELDS = tuple(each.attname for each in Run._meta.concrete_fields)
_COLUMNS = ", ".join(f"r.{each}" for each in _FIELDS)
_RUNS = (
    f"SELECT {logs.COLUMNS}, {_COLUMNS}, t.program, t.policy, t.grants FROM pipeline_run r"
    " JOIN pipeline_workspace w ON w.id = r.workspace_id"
    " LEFT JOIN pipeline_terms t ON t.run_id = r.id WHERE r.id IN "
)
_IN_ORDER = sql.locked(" ORDER BY w.id, r.id", "w, r")
_NEW = f"INSERT INTO pipeline_run ({', '.join(_FIELDS)}) VALUES {sql.marks(_FIELDS)}"
_TERMS = "INSERT INTO pipeline_terms (run_id, program, policy, grants) VALUES (%s, %s, %s, %s)"
_PUT_BACK = _TERMS + " ON CONFLICT (run_id) DO UPDATE SET program = excluded.program"
FOR_AGENT = b'"reason":["CAP-040",'  # in the snapshot of a run that is paused for its agent
IS_FOR_AGENT = "instr(snapshot, %s) > 0" if sql.SQLITE else "position(%s IN snapshot) > 0"
_WAITING = (
    "SELECT id FROM pipeline_run WHERE ended_ms IS NULL AND id > %s AND state = %s"
    f" AND {IS_FOR_AGENT}{{}} ORDER BY id LIMIT %s"
)

# Most steps change these, and no index is about them.
_MOVES = (
    *("snapshot", "state", "step", "length", "head", "owed_key", "owed_tool", "owed_ms"),
    *("tries", "begun_ms", "deadline_ms"),
)
# These change seldom, and indexes are about some of them: each is written where it changed.
_SELDOM = ("program_hash", "policy_hash", "quarantined", "holder", "until_ms", "due_ms", "ended_ms")
_FENCE = ("length", "head", "holder")
_moves, _seldom, _fence = attrgetter(*_MOVES), attrgetter(*_SELDOM), attrgetter(*_FENCE)


class Stood(NamedTuple):
    """A run's row as it was read, or stored last: what may move, and what it is compared by."""

    moves: tuple[object, ...]
    seldom: tuple[object, ...]
    fence: tuple[object, ...]


def ask(keys: Sequence[object]) -> Callable[[], list[sql.Row]]:
    """Lock the rows of runs and of their logs, in order, and read them: for ``run_of``."""
    return sql.ask(sql.listed(_RUNS, len(keys), _IN_ORDER), keys)


def run_of(values: sql.Row, known: Mapping[str, Workspace]) -> Run:
    """The row as Django would make it, with its log, and the terms that are stored.

    ``known``: the logs that the caller has of former rows, by name; they may have grown since.
    """
    *own, program, policy, grants = values[logs.WIDTH :]
    run = sql.row_of(Run, _FIELDS, own)
    given = run.__dict__
    given["name"], given["id"] = sql.name(given["id"]), sql.uuid(given["id"])
    log = known.get(sql.name(given["workspace_id"])) or logs.of_row(values[: logs.WIDTH])
    given["workspace_id"] = log.id
    run._state.fields_cache["workspace"] = log
    given["quarantined"] = bool(given["quarantined"])
    given["snapshot"] = sql.blob(given["snapshot"])
    given["program_source"], given["policy_source"] = _source(program), _source(policy)
    given["narrowed_grants"] = _source(grants)
    return run


def stood(run: Run) -> Stood:
    """The row as it is now."""
    return Stood(_moves(run), _seldom(run), _fence(run))


def put_back(run: Run, program: bytes) -> None:
    """Store a run's true program again."""
    run.program_source = program
    sql.change(_PUT_BACK, _terms(run))


def insert(runs: Sequence[Run]) -> None:
    """Store new runs, with their terms."""
    sql.change_each(_NEW, [_whole(run) for run in runs])
    sql.change_each(_TERMS, [_terms(run) for run in runs])
    for run in runs:
        run._state.adding = False


def update(run: Run, before: Stood, now: Stood) -> None:
    """Store what moved of a run, with what is written later; its row must stand as it was read.

    Else nothing is written: ``sql.flush`` raises, and a server divides by zero.
    """
    if now == before:
        return
    changed = tuple(map(ne, now.seldom, before.seldom))
    values = (*now.moves, *compress(now.seldom, changed), sql.key(run.id), *before.fence)
    sql.later(_keep(changed), values, fenced=True)


@lru_cache(maxsize=1 << len(_SELDOM))
def _keep(changed: tuple[bool, ...]) -> str:
    """The statement that stores a run of which these of _SELDOM changed, too."""
    names = ", ".join(f"{each} = %s" for each in (*_MOVES, *compress(_SELDOM, changed)))
    fence = " AND ".join(f"{each} = %s" for each in _FENCE)
    if not sql.SQLITE:
        fence = f"1 / (CASE WHEN {fence} THEN 1 ELSE 0 END) = 1"
    return f"UPDATE pipeline_run SET {names} WHERE id = %s AND {fence}"


def _source(value: object) -> bytes:
    return b"" if value is None else sql.blob(value)


def _terms(run: Run) -> tuple[object, ...]:
    return (sql.key(run.id), run.program_source, run.policy_source, run.narrowed_grants or None)


def _whole(run: Run) -> list[object]:
    values = {name: getattr(run, name) for name in _FIELDS}
    values["id"], values["workspace_id"] = sql.key(run.id), sql.key(run.workspace_id)
    return [*values.values()]


def waiting_for_agent(after: UUID, most: int, log: UUID | None = None) -> list[UUID]:
    """The next ids of runs that are paused for their agent (CAP-040), of one log or of all."""
    where, more = ("", ()) if log is None else (" AND workspace_id = %s", (sql.key(log),))
    values = (sql.key(after), PAUSED, FOR_AGENT, *more, most)
    return [sql.uuid(each) for (each,) in sql.execute(_WAITING.format(where), values)]
