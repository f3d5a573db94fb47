"""The outbox: a row for each effect owed, for workers to find. The snapshot decides."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from nanovm_core.core.canonical import encode
from nanovm_core.core.lifecycle import WAITING
from nanovm_core.core.messages import Effect
from pipeline.clock import now_ms
from pipeline.errors import NotSentError
from pipeline.models import AdapterCall
from pipeline.store import sql

_OPEN = (
    "SELECT run_id, key, due_ms, begun_ms FROM pipeline_outbox WHERE done_ms IS NULL AND run_id IN "
)
_COLUMNS = "key, run_id, step, tool, attempt, args, warrant_id, warrant_expires_ms, intent_ms"
_BEFORE = "CASE WHEN pipeline_outbox.key = excluded.key THEN pipeline_outbox.begun_ms END"
_OWE = (
    f"INSERT INTO pipeline_outbox ({_COLUMNS}, due_ms, tries, begun_ms, done_ms)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 0, 0, %s, NULL)"
    " ON CONFLICT (run_id, step, attempt) DO UPDATE SET key = excluded.key, tool = excluded.tool,"
    " args = excluded.args, warrant_id = excluded.warrant_id,"
    " warrant_expires_ms = excluded.warrant_expires_ms, intent_ms = excluded.intent_ms,"
    " due_ms = excluded.due_ms, tries = 0, done_ms = NULL,"
    f" begun_ms = COALESCE({_BEFORE}, excluded.begun_ms)"
)
_OF = " WHERE run_id = %s AND key = %s"
_DONE = "UPDATE pipeline_outbox SET done_ms = %s" + _OF
_DUE = "UPDATE pipeline_outbox SET due_ms = %s" + _OF
_AGAIN = "UPDATE pipeline_outbox SET due_ms = %s, tries = tries + 1" + _OF
_NOW = (
    "UPDATE pipeline_outbox SET due_ms = 0 WHERE run_id = %s AND done_ms IS NULL"
    " AND EXISTS (SELECT 1 FROM pipeline_run r WHERE r.id = %s AND r.state = %s)"
)
_DROP = "DELETE FROM pipeline_outbox" + _OF
_BEGIN = "UPDATE pipeline_outbox SET begun_ms = %s" + _OF + " AND begun_ms IS NULL"
_MARKED = "SELECT 1 FROM pipeline_outbox" + _OF + " AND begun_ms IS NOT NULL"
_RECORDED = "SELECT 1 FROM pipeline_adaptercall" + _OF
_CALL = (
    "INSERT INTO pipeline_adaptercall (run_id, number, key, tool, at_ms, outcome)"
    " SELECT %s, COALESCE(MAX(number), 0) + 1, %s, %s, %s, 'begun'"
    " FROM pipeline_adaptercall WHERE run_id = %s"
)
_CAME = (
    "UPDATE pipeline_adaptercall SET outcome = %s WHERE run_id = %s AND number ="
    " (SELECT MAX(number) FROM pipeline_adaptercall WHERE run_id = %s AND key = %s)"
)


class OpenRow(NamedTuple):
    """An open row: when the effect is due, and whether a worker began it."""

    due_ms: int = 0
    is_begun: bool = False


def ask_open_rows(runs: Sequence[UUID]) -> Callable[[], list[sql.Row]]:
    """Send the query for the open rows of these runs, for ``open_rows``."""
    return sql.ask(_OPEN + sql.marks(runs), [sql.key(each) for each in runs])


def open_rows(runs: Sequence[UUID], rows: Sequence[sql.Row]) -> dict[UUID, dict[str, OpenRow]]:
    """The open rows among these, by run and key."""
    found: dict[UUID, dict[str, OpenRow]] = {run: {} for run in runs}
    for run, key, due_ms, begun_ms in rows:
        found[sql.uuid(run)][str(key)] = OpenRow(int(due_ms), begun_ms is not None)
    return found


def owe(run: UUID, effect: Effect, *, begins: bool = False) -> None:
    """Store an effect owed; one that is owed again keeps its mark of having been begun.

    ``begins``: the worker that decided it begins it with the same commit. A forged row in its
    place, under another key, is overwritten.
    """
    warrant = effect.warrant
    sql.later(
        _OWE,
        (
            effect.key,
            sql.key(run),
            effect.step,
            effect.tool,
            effect.attempt,
            encode(dict(effect.args)),
            warrant.id if warrant else "",
            warrant.expires_ms if warrant else 0,
            effect.at_ms,
            now_ms() if begins else None,
        ),
    )
    if begins:
        _call(run, effect)


def delay(run: UUID, key: str, due_ms: int) -> None:
    """Make an effect due later."""
    sql.later(_DUE, (due_ms, sql.key(run), key))


def postpone(run: UUID, key: str, due_ms: int) -> None:
    """Make an effect due again later, after a try that got no answer."""
    sql.change(_AGAIN, (due_ms, sql.key(run), key))


def hasten(run: str) -> None:
    """Have what a waiting run waits for asked after now: somebody says that there is news."""
    key = sql.key_of(run)
    sql.change(_NOW, (key, key, WAITING))


def close(run: UUID, keys: Iterable[str]) -> None:
    """Mark these effects as no longer owed."""
    for key in keys:
        sql.later(_DONE, (now_ms(), sql.key(run), key))


def drop(run: UUID, keys: Iterable[str]) -> None:
    """Delete forged rows: no sealed intent bears them."""
    sql.change_each(_DROP, [(sql.key(run), key) for key in keys])


def is_begun(run: UUID, effect: Effect) -> bool:
    """Whether a worker began this effect, by its row or by the adapters' own record."""
    sql.flush()
    of = (sql.key(run), effect.key)
    return bool(sql.execute(_MARKED, of) or sql.execute(_RECORDED, of))


def may_have_acted(run: UUID, key: str) -> bool:
    """Whether any call under this key may have done something, by the adapters' own record."""
    calls = AdapterCall.objects.filter(run=run, key=key)
    return not calls.exists() or calls.exclude(outcome=NotSentError.__name__).exists()


def begin(run: UUID, effect: Effect) -> None:
    """Mark an effect as begun, in its row and in the adapters' own record."""
    sql.later(_BEGIN, (now_ms(), sql.key(run), effect.key))
    _call(run, effect)


def record_outcome(run: UUID, key: str, outcome: str) -> None:
    """Write the outcome of an effect into the adapters' record of its last call."""
    of = sql.key(run)
    sql.later(_CAME, (outcome, of, of, key))


def _call(run: UUID, effect: Effect) -> None:
    of = sql.key(run)
    sql.later(_CALL, (of, effect.key, effect.tool, now_ms(), of))
