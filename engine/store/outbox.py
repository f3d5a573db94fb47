"""The outbox: in each run's row the effect that it owes, for workers to find.

The snapshot decides what is owed; the row repeats it, and says when it is due and whether it was
begun. The adapters' record, which verdicts count by, has a row of its own for each call of a
granted tool, written before the call is made. Any other effect that begins with the commit that
sealed its intent needs none; one that begins later has one, which says when. An effect that is
begun again has one for each time.
"""

from uuid import UUID

from engine.clock import now_ms
from engine.errors import NotSentError, TransientError
from engine.models import AdapterCall, Run
from engine.store import sql
from nanovm_core.core.lifecycle import WAITING
from nanovm_core.core.messages import Effect

_OF = " WHERE id = %s AND owed_key = %s"
_AGAIN = "UPDATE pipeline_run SET due_ms = %s, tries = tries + 1" + _OF
_NOW = "UPDATE pipeline_run SET due_ms = 0 WHERE id = %s AND due_ms IS NOT NULL AND state = %s"
_RECORDED = "SELECT 1 FROM pipeline_adaptercall WHERE run_id = %s AND key = %s"
_CALL = (
    "INSERT INTO pipeline_adaptercall (run_id, number, key, tool, at_ms, outcome)"
    " SELECT %s, COALESCE(MAX(number), 0) + 1, %s, %s, %s, 'begun'"
    " FROM pipeline_adaptercall WHERE run_id = %s"
)
_FIRST = (
    "INSERT INTO pipeline_adaptercall (run_id, number, key, tool, at_ms, outcome)"
    " SELECT id, (SELECT COALESCE(MAX(number), 0) + 1 FROM pipeline_adaptercall WHERE run_id = %s),"
    " %s, %s, %s, %s FROM pipeline_run WHERE id = %s AND NOT EXISTS (" + _RECORDED + ")"
)
_CAME = (
    "UPDATE pipeline_adaptercall SET outcome = %s WHERE run_id = %s AND number ="
    " (SELECT MAX(number) FROM pipeline_adaptercall WHERE run_id = %s AND key = %s)"
)


def owes(run: Run, effect: Effect | None) -> bool:
    """Whether the row of a run names this effect and has a time for it, or none for None."""
    named = (run.owed_key, run.owed_tool, run.due_ms is None)
    return named == ((effect.key, effect.tool, False) if effect else ("", "", True))


def owe(run: Run, effect: Effect | None) -> None:
    """Make the row of a run that a commit holds say that it owes this effect, not begun; or none.

    An effect that is named already keeps its mark of having been begun.
    """
    if effect is None:
        run.owed_key, run.owed_tool, run.owed_ms, run.due_ms = "", "", 0, None
        run.tries, run.begun_ms = 0, None
        return
    if run.owed_key != effect.key:
        run.begun_ms = None
    run.owed_key, run.owed_tool, run.owed_ms = effect.key, effect.tool, effect.at_ms
    run.due_ms, run.tries = 0, 0


def is_begun(run: Run, effect: Effect) -> bool:
    """Whether a worker began this effect, by the run's row or by the adapters' own record."""
    if run.owed_key == effect.key and run.begun_ms is not None:
        return True
    return bool(sql.execute(_RECORDED, (sql.key(run.id), effect.key)))


def is_under_way(run: Run, effect: Effect) -> bool:
    """Whether a worker began this effect, unless each try of it is known to have done nothing."""
    return is_begun(run, effect) and may_have_acted(run.id, effect.key)


def begin(run: Run, effect: Effect, *, is_sealed: bool = True) -> bool:
    """Mark an effect as begun, and record its call; whether it was recorded.

    ``is_sealed``: its intent was sealed by an earlier commit.
    """
    of = sql.key_of(run.name)
    if run.begun_ms is None:
        run.begun_ms = now_ms()
    elif is_sealed:  # the first time may have no record: where it was silent, the row says so
        came = TransientError.__name__ if run.tries else "begun"
        call = (of, effect.key, effect.tool, run.begun_ms, came)
        sql.change(_FIRST, (*call, of, of, effect.key))  # now: the next call's number counts it
    if not is_sealed and effect.warrant is None:
        return False
    sql.later(_CALL, (of, effect.key, effect.tool, now_ms(), of))
    return True


def postpone(run: UUID, key: str, due_ms: int) -> None:
    """Make an effect due again later, after a try that got no answer."""
    sql.change(_AGAIN, (due_ms, sql.key(run), key))


def hasten(run: str) -> None:
    """Make a waiting run's effect due now, because news was reported."""
    sql.change(_NOW, (sql.key_of(run), WAITING))


def may_have_acted(run: UUID, key: str) -> bool:
    """Whether any call under this key may have done something, by the adapters' own record."""
    calls = AdapterCall.objects.filter(run=run, key=key)
    return not calls.exists() or calls.exclude(outcome=NotSentError.__name__).exists()


def record_outcome(run: UUID, key: str, outcome: str) -> None:
    """Write the outcome of an effect into the adapters' record of its last call."""
    of = sql.key(run)
    sql.later(_CAME, (outcome, of, of, key))
