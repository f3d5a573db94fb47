"""Drive a run from one owed effect to the next, until it waits or ends."""

import logging
import sqlite3

from django.db import InterfaceError, OperationalError, ProgrammingError

from engine.application import named
from engine.clock import now_ms, sleep_ms
from engine.errors import (
    BrokenPartError,
    HaltedError,
    NotSentError,
    OutcomeUnknownError,
    TransientError,
    place_of,
)
from engine.models import Run
from engine.ops import timings
from engine.runtime import api, queue, step_times
from engine.runtime.decide import BegunEffect
from engine.store import leases, outbox, sql
from engine.work import Answer, Work
from engine.worker import effects
from engine.worker.lease_renewal import renewal
from nanovm_core.core import events
from nanovm_core.core.lifecycle import ACTIVE, IDLE, WAITING
from nanovm_core.core.messages import Effect

log = logging.getLogger(__name__)

# A service that does not answer, or is busy, is tried again under the same key. Such a try is not
# one of the program's attempts: those follow a known failure, each under a key of its own.
TRIES_MAX = 8  # then a person decides; or the program, where no try can have acted
BACKOFF_MS = 250  # the first wait; each further one is twice as long, 32 s to 40 s in all
ASK_MS = 2_000  # after this long what is under way is asked after; each further time twice as long,
ASK_MS_MAX = 600_000  # up to this

SHIFT_MS = 1_000  # a message keeps a thread so long, and for the turn that it is at then

_OWES = (
    "SELECT 1 FROM pipeline_run WHERE id = %s AND (deadline_ms <= %s"
    " OR state IN (%s, %s) AND due_ms <= %s)"
)


def drive(run_id: str) -> bool:
    """Do what a run owes until it waits or ends; False where another worker holds its lease.

    Where a service does not answer, the effect stays owed and is due again later; the sweep
    wakes the run then.
    """
    moved = True
    while moved:  # again: a wake-up may have found the lease held, and been absorbed
        free, work = api.take(run_id)
        if not free:
            return False
        moved = work is not None
        _drive_on(work)
        moved = moved and owes(run_id)
    return True


def take_turns(named: str = "") -> None:
    """Drive whichever run's turn it is, one after the other, until none can be taken.

    ``named``: the run that this thread's message names. After SHIFT_MS another message goes on,
    so that no message is under way for long and other tasks have a thread.
    """
    until_ms, idle = now_ms() + SHIFT_MS, set[str]()
    turn = api.take_turn(until_ms, named)
    while turn.run is not None and turn.run not in idle:
        if turn.work is None:
            idle.add(turn.run)  # a second time would be for ever
        _drive_on(turn.work)
        if now_ms() >= until_ms:
            queue.call_worker()
            return
        turn = api.take_turn(until_ms)


def drive_patiently(run_id: str) -> None:
    """Drive a run in this process, and sleep while its effect is due later."""
    while drive(run_id):
        later = _next_ms(run_id)
        if later is None:
            return
        sleep_ms(max(0, later - now_ms()))


def owes(run_id: str) -> bool:
    """Whether a run has an effect that is due, or a deadline that has passed."""
    at_ms = now_ms()
    return bool(sql.execute(_OWES, (sql.key_of(str(run_id)), at_ms, ACTIVE, WAITING, at_ms)))


def _next_ms(run_id: str) -> int | None:
    """When a run has to be driven again; None where it has ended, or waits for a person."""
    rows = Run.objects.filter(id=run_id, workspace__successor=None)  # no restore closed its log
    for state, due_ms, deadline_ms in rows.values_list("state", "due_ms", "deadline_ms"):
        return {ACTIVE: due_ms, IDLE: deadline_ms}.get(state)
    return None


def _drive_on(work: BegunEffect | None) -> None:
    """Do an effect and all that follow; their times are kept for the run of each."""
    while work is not None:
        with step_times.timed(str(work.run.id)):
            work = _under_lease(work)


def _under_lease(begun: BegunEffect) -> BegunEffect | None:
    """Do an effect under the lease, which is released where that raises; returns the next one."""
    try:
        renewed = renewal.renewing(str(begun.run.id), begun.holder, begun.deadline_ms)
        with renewed, timings.of_step(begun.effect.step):
            return _next(begun)
    except BaseException:
        leases.release(str(begun.run.id), begun.holder)
        raise


def _next(begun: BegunEffect) -> BegunEffect | None:
    """Do one effect and submit its answer; returns the next effect, begun already, or None."""
    if begun.snapshot.awaits:
        return _asked(begun)
    try:
        answer = _answer(effects.work_of(begun))
    except TransientError as error:
        return _postponed(begun, error)
    except HaltedError as error:
        _leave(begun, error)
        return None
    return _submitted(begun, answer)


def _submitted(begun: BegunEffect, answer: Answer) -> BegunEffect | None:
    """Submit an answer; one that the kernel refuses counts as a broken step."""
    outcome = answer.outcome or type(answer.event).__name__
    answered = api.answer(begun, answer.event, answer.secrets, outcome)
    owed, refusal = answered.decision.snapshot.owed, answered.decision.refusal
    if refusal is not None and owed is not None and owed.key == begun.effect.key:
        broken = _broken(begun.effect, f"its answer: {refusal.code}").event
        answered = api.answer(begun, broken, (), outcome)
    if isinstance(answer.event, events.EffectWaiting):
        _ask_later(begun, answer.outcome)
    return answered.work


def _asked(begun: BegunEffect) -> BegunEffect | None:
    """Ask what became of an effect that is under way, and submit what is known of it.

    At the deadline it is asked a last time and taken back; what is still open then, the kernel
    leaves to a person.
    """
    run_id, is_late = str(begun.run.id), 0 < begun.deadline_ms <= now_ms()
    try:
        answer = effects.ask(effects.work_of(begun), is_late=is_late)
    except (TransientError, OutcomeUnknownError) as error:
        answer, outcome = None, error.code
    else:
        outcome = answer.outcome if answer else ""
    if answer is not None and isinstance(answer.event, events.AnswerArrived):
        known = events.EffectFailed if answer.event.code else events.EffectDone
        following = api.answer(begun, answer.event, answer.secrets, known.__name__).work
        if following is not None:
            return following
    elif is_late:
        api.submit(run_id, [events.TimePassed()])
    else:
        _ask_later(begun, outcome)
    leases.release(run_id, begun.holder)
    return None


def _leave(begun: BegunEffect, why: HaltedError) -> None:
    """Leave an effect to when its agent runs again: this try did nothing, and its record says so.

    Where this is cut off, the lease ends, and who takes the run pauses it.
    """
    if begun.recorded:
        outbox.record_outcome(begun.run.id, begun.effect.key, NotSentError.__name__)
    api.submit(str(begun.run.id), [events.PauseRequested(code=why.code, text=why.text)])
    leases.release(str(begun.run.id), begun.holder)


def _ask_later(begun: BegunEffect, outcome: str) -> None:
    """Keep when an effect that is under way is asked after again: it survives a restart."""
    key = begun.effect.key
    if outcome and begun.recorded:
        outbox.record_outcome(begun.run.id, key, outcome)
    row = Run.objects.get(id=begun.run.id)
    at_ms = now_ms() + min(ASK_MS << min(row.tries, 32), ASK_MS_MAX)
    until_ms = row.deadline_ms or at_ms
    can_ask = begun.effect.tool in named(begun.program.name).questions()
    outbox.postpone(begun.run.id, key, min(at_ms, until_ms) if can_ask else until_ms)


def _postponed(begun: BegunEffect, error: TransientError) -> BegunEffect | None:
    """Make the effect due again later; after TRIES_MAX tries, submit what is known of it."""
    run_id, key = str(begun.run.id), begun.effect.key
    outcome = type(error).__name__
    if begun.recorded:
        outbox.record_outcome(begun.run.id, key, outcome)
    tries = Run.objects.values_list("tries", flat=True).get(id=begun.run.id)
    if tries + 1 >= TRIES_MAX:
        return api.answer(begun, _given_up(begun, error), (), outcome).work
    outbox.postpone(begun.run.id, key, now_ms() + backoff_ms(key, tries))
    leases.release(run_id, begun.holder)
    return None


def backoff_ms(key: str, tries: int) -> int:
    """How long to wait before the next try: doubled each time, plus up to a quarter by key.

    So the effects of several runs are not due at the same moment.
    """
    delay_ms = BACKOFF_MS << tries
    return delay_ms + delay_ms * int(key[tries : tries + 8], 16) // (4 << 32)


def _given_up(begun: BegunEffect, error: TransientError) -> events.Event:
    """After the last try: a known failure, where no try can have acted; else a person decides."""
    key = begun.effect.key
    acted = not isinstance(error, NotSentError) or outbox.may_have_acted(begun.run.id, key)
    text = f"{error.text} Tried {TRIES_MAX} times"
    if begun.effect.warrant is None or not acted:
        text = f"{text}; nothing was done."
        return events.EffectFailed(key=key, code=error.code, text=text, retry=True)
    text = f"{text}; check with the provider, then decide."
    return events.EffectUnknown(key=key, code=error.code, text=text)


def _answer(work: Work) -> Answer:
    """Perform the effect. An unexpected error ends the run, and its failure says so."""
    try:
        return effects.perform(work)
    except OutcomeUnknownError as error:
        event = events.EffectUnknown(key=work.effect.key, code=error.code, text=error.text)
        return Answer(event=event)
    except (
        TransientError,
        HaltedError,
        BrokenPartError,
        InterfaceError,
        OperationalError,
        ProgrammingError,  # PostgreSQL's name for a table that is gone
        sqlite3.OperationalError,
    ):
        raise  # a service, our database or the key store is away: no failure is known
    except Exception as error:  # noqa: BLE001 - the barrier: one run ends, the worker goes on
        kind, at = type(error).__name__, place_of(error)
        # Without the error's message: it may quote a document.
        log.error("effect %s broke: %s at %s", work.effect.tool, kind, at)  # noqa: TRY400
        return _broken(work.effect, kind)


def _broken(effect: Effect, kind: str) -> Answer:
    """The answer of a step that raised unexpectedly: a failure, or unknown if it has a warrant."""
    if effect.warrant is None:
        text = f"The step {effect.step} failed ({kind}) before any outside effect."
        return Answer(event=events.EffectFailed(key=effect.key, code="RUN-001", text=text))
    text = f"The step {effect.step} failed ({kind}) and may have acted; check, then decide."
    return Answer(event=events.EffectUnknown(key=effect.key, code="RUN-001", text=text))
