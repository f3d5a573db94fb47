"""Driving a run: from one owed effect to the next, up to where it waits or ends."""

import logging
import traceback

from django.db.models import QuerySet

from nanovm_core.events import EffectFailed, EffectUnknown
from nanovm_core.lifecycle import ACTIVE
from nanovm_core.messages import Effect
from pipeline import effects, leases, queue, runtime
from pipeline.errors import OutcomeUnknownError, TransientError
from pipeline.models import AdapterCall, Outbox
from pipeline.world import now_ms, sleep_ms

log = logging.getLogger(__name__)

TRIES_MAX = 8  # attempts at an outside that does not answer, before a person decides
BACKOFF_MS = 250  # the first wait; each further one is twice as long, 32 s in all


def drive(run_id: str) -> bool:
    """Do what a run owes until it waits or ends; False where another worker holds it.

    Where the outside does not answer, the effect stays owed and is due again later: the
    sweep comes back for it.
    """
    moved = True
    while moved:  # again, where a wake-up found the lease still held and went away
        holder = leases.take(run_id)
        if holder is None:
            return False
        moved = False
        try:
            while leases.renew(run_id, holder) and _one_effect(run_id, holder):
                moved = True
        finally:
            leases.release(run_id, holder, idle=not moved)
        moved = moved and owes(run_id)
    return True


def drive_patiently(run_id: str) -> None:
    """Drive a run in this process, waiting where an effect is due later."""
    while drive(run_id):
        later = _owed(run_id).values_list("due_ms", flat=True).first()
        if later is None:
            return
        sleep_ms(max(0, later - now_ms()))


def owes(run_id: str) -> bool:
    """Whether a running run has an effect that is due and not answered."""
    return _owed(run_id).filter(due_ms__lte=now_ms()).exists()


def _owed(run_id: str) -> QuerySet[Outbox]:
    return Outbox.objects.filter(run_id=run_id, done_ms=None, run__state=ACTIVE)


def _one_effect(run_id: str, holder: str) -> bool:
    """Do one owed effect and feed its answer back; False where nothing is due."""
    if not owes(run_id):
        return False
    if _paced(run_id):
        return False
    begun = runtime.begin_effect(run_id)
    if begun is None:
        return False
    work = effects.Work(
        run=begun.run,
        program=begun.program,
        slots=begun.slots,
        effect=begun.effect,
        begun_before=begun.before,
        token=begun.token,
    )
    try:
        answer = _answer(work)
    except TransientError as error:
        _postpone(run_id, begun.effect, error, holder)
        return True
    _submit(run_id, begun.effect, answer, holder)
    _note(begun.effect.key, type(answer.event).__name__)
    return True


def _paced(run_id: str) -> bool:
    """Put a fresh effect of a paced run off, for spectators; a worker is not kept waiting by it."""
    fresh = _owed(run_id).filter(due_ms=0, begun_ms=None, run__pace_ms__gt=0)
    row = fresh.select_related("run").first()
    if row is None:
        return False
    fresh.update(due_ms=now_ms() + row.run.pace_ms)
    queue.wake(run_id, in_ms=row.run.pace_ms)
    return True


def _submit(run_id: str, effect: Effect, answer: effects.Answer, holder: str) -> None:
    """Feed an answer back; one that the kernel does not take is as good as a broken step."""
    decision = runtime.submit(run_id, [answer.event], secrets=answer.secrets, holder=holder)
    owed = decision.snapshot.owed
    if decision.refusal is not None and owed is not None and owed.key == effect.key:
        broken = _broken(effect, f"its answer: {decision.refusal.code}").event
        runtime.submit(run_id, [broken], holder=holder)


def _postpone(run_id: str, effect: Effect, error: TransientError, holder: str) -> None:
    """Have the effect come due again later; after too many tries, ask a person."""
    _note(effect.key, "TransientError")
    row = Outbox.objects.get(key=effect.key)
    if row.tries + 1 >= TRIES_MAX:
        text = f"{error.text} Tried {TRIES_MAX} times; look at the other side, then decide."
        event = EffectUnknown(at_ms=now_ms(), key=effect.key, code=error.code, text=text)
        runtime.submit(run_id, [event], holder=holder)
        return
    due_ms = now_ms() + (BACKOFF_MS << row.tries)
    Outbox.objects.filter(key=effect.key).update(tries=row.tries + 1, due_ms=due_ms)


def _answer(work: effects.Work) -> effects.Answer:
    """What came of the effect. An error without a name ends the run, and says so."""
    try:
        return effects.perform(work)
    except OutcomeUnknownError as error:
        event = EffectUnknown(at_ms=now_ms(), key=work.effect.key, code=error.code, text=error.text)
        return effects.Answer(event=event)
    except TransientError:
        raise
    except Exception as error:  # noqa: BLE001 - the barrier: one run ends, the worker goes on
        _log_broken(work.effect, error)
        return _broken(work.effect, type(error).__name__)


def _broken(effect: Effect, kind: str) -> effects.Answer:
    """An error nobody named: known not to have happened inside; outside, a person looks."""
    if effect.warrant is None:
        text = f"The step {effect.step} broke ({kind}); nothing was done outside."
        failed = EffectFailed(at_ms=now_ms(), key=effect.key, code="RUN-001", text=text)
        return effects.Answer(event=failed)
    text = f"The step {effect.step} broke ({kind}) and may have acted; look, then decide."
    unknown = EffectUnknown(at_ms=now_ms(), key=effect.key, code="RUN-001", text=text)
    return effects.Answer(event=unknown)


def _log_broken(effect: Effect, error: Exception) -> None:
    """Log where it broke. Its message may quote a document, so that is never logged."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"
    log.error("effect %s broke: %s at %s", effect.tool, type(error).__name__, place)


def _note(key: str, outcome: str) -> None:
    """Write the outcome into the adapter's own record."""
    last = AdapterCall.objects.filter(key=key).order_by("-id").first()
    if last is not None:
        last.outcome = outcome
        last.save(update_fields=["outcome"])
