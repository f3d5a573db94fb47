"""What people ask of a run: start, pause, resume, approve, decline, stop."""

from collections.abc import Mapping
from types import MappingProxyType

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.origin import PERSON, labelled
from nanovm_core.core.authority.policy import OWN_HOLDS, UNKNOWN_OUTCOME
from nanovm_core.core.canonical import digest, encode
from nanovm_core.core.fsm import agreement, moves
from nanovm_core.core.fsm.advance import again, enter
from nanovm_core.core.fsm.moves import Cause, Fields
from nanovm_core.core.fsm.results import check_slot
from nanovm_core.core.messages import NOTHING, Commitment, Decision, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import RefusedError


def started(program: Program, now: Snapshot, _: events.RunStarted, cause: Cause) -> Decision:
    moves.expect(now, cause)
    return enter(program, now, moves.to_state(now, cause, life.ACTIVE), cause)


def paused(_: Program, now: Snapshot, event: events.PauseRequested, cause: Cause) -> Decision:
    """Pause: no step begins; an answer under way is still accepted."""
    moves.expect(now, cause)
    return moves.suspend(now, cause, life.PAUSED, event.code, event.text)


def resumed(
    program: Program,
    now: Snapshot,
    event: events.ResumeRequested | events.StepRequested,
    cause: Cause,
) -> Decision:
    """Resume; with StepRequested, for one step."""
    moves.expect_program(now, event.program)
    moves.expect(now, cause)
    stepping = isinstance(event, events.StepRequested)
    after = moves.to_state(now, cause, life.ACTIVE, stepping=stepping, reason=None)
    return _resume(program, now, after, cause)


def hold_id(now: Snapshot) -> str:
    """The name of the hold that a person is to decide, 64 hex digits; empty without one.

    A hash of run, step, rule, judged call, effect and time of the hold: unique, and reveals
    nothing.
    """
    if now.state != life.APPROVAL:
        return ""
    key = now.owed.key if now.owed else ""
    held = [now.run, now.step, now.held_by, now.call, key, now.suspended_ms, now.begun]
    return digest(b"nanovm/hold/v1\0", encode(held))


def approved(program: Program, now: Snapshot, event: events.Approved, cause: Cause) -> Decision:
    """Lift the current hold, where its rule lets a person lift it.

    The approval counts for the terms that the person saw, and for a time.
    """
    _expect_hold(now, event, cause)
    agreement.require(program, event, cause)
    if agreement.is_late(program, now.suspended_ms, cause):
        return agreement.asked_again(now, cause)
    now = _heard(program, now, event.said)
    said: Fields = {"secrets": moves.listed((event.said,))} if event.said else {}
    said |= {"agreed": event.seen} if event.seen else {}
    rules = (*program.rules, *program.policy.rules)
    rule = next((rule for rule in rules if rule.id == now.held_by), None)
    liftable = rule is not None and rule.approvable
    if rule is not None and liftable and rule.again_from:
        return _begun_again(program, now, rule.again_from, cause, said)
    if program.decider is not None and now.held_by in program.decider.approvable:
        liftable = True
    if not liftable and now.held_by not in OWN_HOLDS:
        raise RefusedError("POL-021", "This hold cannot be approved; stop the run instead.")
    lifted = tuple(sorted({*now.approved, now.held_by}))
    after = moves.to_state(now, cause, life.ACTIVE, approved=lifted, held_by="", reason=None)
    if event.seen or now.agreed_ms:
        after = after._replace(agreed=event.seen, agreed_ms=cause.at_ms)
    if now.held_by == UNKNOWN_OUTCOME:  # asked again under its key
        until_ms = cause.at_ms + program.steps[now.step].timeout_ms
        after = after._replace(awaits="", deadline_ms=until_ms)
    return _resume(program, now, after, cause, said)


def _heard(program: Program, now: Snapshot, said: Commitment | None) -> Snapshot:
    """With what a person says in its slot, which the program declares as theirs (FSM-007)."""
    if said is None:
        return now
    slot = program.slots.get(said.slot)
    if slot is None or slot.origin != PERSON:
        raise RefusedError("FSM-007", f"A person may not fill the slot {said.slot!r}.")
    check_slot(program, said.slot, said.ref, (said,))
    slots = {**now.slots, said.slot: said.ref}
    events.require_slots(slots)
    origins = labelled({**now.origins, said.slot: PERSON})
    return now._replace(slots=moves.frozen(slots), origins=MappingProxyType(origins))


def _begun_again(
    program: Program, now: Snapshot, step: str, cause: Cause, said: Fields
) -> Decision:
    """Back to an earlier step, under a key that no attempt of it had: more were never begun."""
    after = moves.to_state(now, cause, life.ACTIVE, approved=(), held_by="", reason=None)
    after = after._replace(step=step, attempt=now.begun + 1, refused=0, call=None)
    after = after._replace(agreed=NOTHING, agreed_ms=0)
    return _resume(program, now, after, cause, said)


def declined(_: Program, now: Snapshot, event: events.Declined, cause: Cause) -> Decision:
    _expect_hold(now, event, cause)
    if now.held_by == UNKNOWN_OUTCOME:
        text = "A person gave up on a payment that may have been made; check with the provider."
        return moves.end(now, cause, life.FAILED, "POL-023", text)
    return moves.end(now, cause, life.FAILED, "POL-022", "A person declined the held payment.")


def stopped(_: Program, now: Snapshot, __: events.KillRequested, cause: Cause) -> Decision:
    """End a run on request, unless a payment is under way."""
    moves.expect(now, cause)
    if cause.context.under_way and now.owed is not None and now.owed.warrant is not None:
        raise RefusedError("FSM-009", "A payment is in progress; wait for its result, then stop.")
    return moves.end(now, cause, life.KILLED, "FSM-006", "Stopped by a person.")


def _expect_hold(now: Snapshot, event: events.Approved | events.Declined, cause: Cause) -> None:
    moves.expect(now, cause)
    if event.hold != hold_id(now):
        text = "The decision is about another hold than the run's current one."
        raise RefusedError("FSM-016", text)


def _resume(
    program: Program,
    now: Snapshot,
    after: Snapshot,
    cause: Cause,
    said: Mapping[str, object] = NOTHING,
) -> Decision:
    then = again(program, after, cause)
    body = moves.moved(now, cause, then.snapshot.state if not then.drafts else life.ACTIVE, **said)
    for effect in then.effects if not then.drafts else ():
        body |= {"tool": effect.tool, "idempotency_key": effect.key, **moves.issued(effect)}
    return moves.join(moves.draft("resumed", cause, after, body), then)
