"""The rows of runs as the commit path reads and stores them, and the rows beside them.

One row says all that moves in a step: the snapshot, the chain's head, what the run owes, and who
drives it. One UPDATE stores it, and only where the row still is as it was read.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter, ne
from typing import Any, NamedTuple
from uuid import UUID

from engine.models import Run, Workspace
from engine.store import logs, sql
from nanovm_core.core.canonical import digest
from nanovm_core.core.lifecycle import PAUSED

_FIELDS = tuple(each.attname for each in Run._meta.concrete_fields)
DEFAULTS = {each.attname: each.get_default() for each in Run._meta.concrete_fields}
_COLUMNS = ", ".join(f"r.{each}" for each in _FIELDS)
_RUNS = (
    f"SELECT {logs.COLUMNS}, {_COLUMNS}, t.program, t.policy, t.grants FROM pipeline_run r"
    " JOIN pipeline_workspace w ON w.id = r.workspace_id"
    " LEFT JOIN pipeline_terms t ON t.digest = r.terms_id WHERE r.id IN "
)
_IN_ORDER = sql.locked(" ORDER BY w.id, r.id", "w, r")
_NEW = f"INSERT INTO pipeline_run ({', '.join(_FIELDS)}) VALUES {sql.marks(_FIELDS)}"
_TERMS = (
    "INSERT INTO pipeline_terms (digest, program, policy, grants) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (digest) DO "
)
_PUT_BACK = (
    f"{_TERMS}UPDATE SET program = excluded.program, policy = excluded.policy,"
    " grants = excluded.grants"
)
# Behind "SELECT run_id FROM" a table: the ids that are no run of the log, whose key is given twice.
_IN_LOG = " WHERE workspace_id = %s"
NOT_OF_LOG = f"{_IN_LOG} AND run_id IS NOT NULL EXCEPT SELECT id FROM pipeline_run{_IN_LOG}"
_NAMED = "UPDATE pipeline_run SET terms_id = %s WHERE id = %s"
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
    given: dict[str, Any] = dict(zip(_FIELDS, own, strict=True))
    given["name"], given["id"] = sql.name(given["id"]), sql.uuid(given["id"])
    log = known.get(sql.name(given["workspace_id"])) or logs.of_row(values[: logs.WIDTH])
    given["workspace_id"] = log.id
    given["quarantined"] = bool(given["quarantined"])
    given["snapshot"] = sql.blob(given["snapshot"])
    given["program_source"], given["policy_source"] = _source(program), _source(policy)
    given["narrowed_grants"] = _source(grants)
    return again(given, log)


def again(given: Mapping[str, object], log: Workspace) -> Run:
    """The row with these values, in this log."""
    run = sql.row_of(Run, {**given, "workspace_id": log.id})
    run._state.fields_cache["workspace"] = log
    return run


def stood(run: Run) -> Stood:
    """The row as it is now."""
    return Stood(_moves(run), _seldom(run), _fence(run))


def put_back(run: Run, program: bytes) -> None:
    """Store a run's true program again, for all runs that name it."""
    run.program_source = program
    sql.change(_PUT_BACK, _terms(run))
    sql.change(_NAMED, (run.terms_id, sql.key(run.id)))


def insert(runs: Sequence[Run]) -> None:
    """Store new runs, with their terms where none has begun under such; what is there stays."""
    terms = {row[0]: row for row in map(_terms, runs)}
    sql.later(_NEW, *map(_whole, runs))
    sql.later(f"{_TERMS}NOTHING", *(row for _, row in sorted(terms.items())))
    for run in runs:
        run._state.adding = False


def update(run: Run, before: Stood, now: Stood) -> None:
    """Store what moved of a run, with what is written later; its row must stand as it was read.

    Else nothing is committed: a server divides by zero, which is a DataError.
    """
    if now == before:
        return
    changed = tuple(map(ne, now.seldom, before.seldom))
    values = (*now.moves, *compress(now.seldom, changed), sql.key_of(run.name), *before.fence)
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


def _terms(run: Run) -> tuple[str, bytes, bytes, bytes | None]:
    """The row of terms for what is beside a run, which names it from here on."""
    own = (run.program_source, run.policy_source, run.narrowed_grants)
    run.terms_id = _digest(*own)
    return run.terms_id, own[0], own[1], own[2] or None


@lru_cache(maxsize=64)
def _digest(*parts: bytes) -> str:
    """What terms are stored under: no two have the same."""
    return digest(b"nanovm/terms/v1\0", b"".join((b"%d " % len(each)) + each for each in parts))


def _whole(run: Run) -> list[object]:
    given = {**run.__dict__, "id": sql.key(run.id), "workspace_id": sql.key(run.workspace_id)}
    return [given[name] for name in _FIELDS]


def waiting_for_agent(after: UUID, most: int, log: UUID | None = None) -> list[UUID]:
    """The next ids of runs that are paused for their agent (CAP-040), of one log or of all."""
    where, more = ("", ()) if log is None else (" AND workspace_id = %s", (sql.key(log),))
    values = (sql.key(after), PAUSED, FOR_AGENT, *more, most)
    return [sql.uuid(each) for (each,) in sql.execute(_WAITING.format(where), values)]
