"""What each kind of event does to a run."""

from collections.abc import Sequence
from dataclasses import replace

from nanovm_core import budget
from nanovm_core import lifecycle as life
from nanovm_core.canonical import encode
from nanovm_core.capabilities import (
    REF,
    check_grant,
    check_schema,
    normalise,
    read_proposal,
    resolve,
)
from nanovm_core.errors import CanonicalError, RefusedError
from nanovm_core.flow import (
    again,
    draft,
    end,
    enter,
    frozen,
    go_on,
    intend,
    issued,
    join,
    judged,
    listed,
    moved,
    suspend,
)
from nanovm_core.messages import (
    Approved,
    Args,
    Commitment,
    Decision,
    Declined,
    Effect,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    Event,
    KillRequested,
    PauseRequested,
    ProposalReceived,
    Reservation,
    ResumeRequested,
    RunStarted,
    Scalar,
    Snapshot,
    StepRequested,
)
from nanovm_core.policy import UNKNOWN_OUTCOME
from nanovm_core.program import SLOT_TYPES, Program, Step


def answers(program: Program, now: Snapshot, event: ProposalReceived) -> bool:
    """Whether this proposal answers the model step's open intent.

    Under the key of another step it does not: it would take back what that step owes.
    """
    owed = now.owed
    return owed is not None and (owed.step, owed.key) == (program.model_step.name, event.key)


def check_slot(program: Program, name: str, value: Scalar, secrets: Sequence[Commitment]) -> None:
    """Hold a value to its slot's type; a personal one is the ref of one of these secrets.

    Raises:
        RefusedError: FSM-007 or PII-001, naming the slot and never its value.
    """
    kind = program.slots[name].type
    if type(value) is not SLOT_TYPES[kind] or not _sealable(value):
        raise RefusedError("FSM-007", f"The slot {name!r} takes a value of type {kind}.")
    committed = any((secret.slot, secret.ref) == (name, value) for secret in secrets)
    if kind == "ref" and (not REF.fullmatch(str(value)) or not committed):
        raise RefusedError("PII-001", f"The slot {name!r} takes a committed vault ref only.")


def started(program: Program, now: Snapshot, event: RunStarted) -> Decision:
    """Allocate, go to running, and owe the first step."""
    after = _to(now, event, life.ACTIVE)
    return enter(program, now, after, program.first, event)


def done(program: Program, now: Snapshot, event: EffectDone) -> Decision:
    """Take the result of the one effect that is owed, and go on."""
    owed, step = _owed(program, now, event, event.key)
    if step.kind == "model":
        raise RefusedError("FSM-004", "A model step is answered by a proposal, not by a result.")
    slots = _filled(program, now, step, event)
    spent = _spent(now, step)
    after = replace(now, slots=slots, owed=None, reserved=None if spent else now.reserved)
    body = {
        **moved(now, event, now.state),
        "tool": owed.tool,
        "idempotency_key": owed.key,
        "outcome": event.outcome,
        "out": dict(event.out),
        "secrets": listed(event.secrets),
    }
    sealed = draft("result", event, after, body)
    return join(sealed, go_on(program, after, step.next, event), budgets=spent)


def failed(program: Program, now: Snapshot, event: EffectFailed) -> Decision:
    """Take a known failure: the next attempt where the program has one, else the end."""
    owed, step = _owed(program, now, event, event.key)
    body = {
        **moved(now, event, now.state),
        "tool": owed.tool,
        "idempotency_key": owed.key,
        "rule": event.code,
        "outcome": "failed",
    }
    again = event.retry and owed.attempt < step.attempts_max
    if not again:
        after = replace(now, owed=None)
        sealed = draft("failed", event, after, body)
        return join(sealed, end(after, event, life.FAILED, event.code, event.text))
    after = replace(now, owed=None, attempt=owed.attempt + 1)
    sealed = draft("failed", event, after, body)
    if now.state in life.SUSPENDED:
        return Decision(snapshot=after, drafts=(sealed,))
    return join(sealed, intend(program, after, after, step, event))


def unknown(program: Program, now: Snapshot, event: EffectUnknown) -> Decision:
    """Nobody can tell what happened: wait for a person, with the effect still owed."""
    _to(now, event, life.APPROVAL)
    _owed(program, now, event, event.key)
    return suspend(now, event, life.APPROVAL, event.code, event.text, held_by=UNKNOWN_OUTCOME)


def proposed(program: Program, now: Snapshot, event: ProposalReceived) -> Decision:
    """Judge a proposal whole: what it is, whether it belongs here, whether it may be done."""
    call = read_proposal(event.raw)
    grant = resolve(program.grants, call.tool)
    if call.tool not in program.model_step.accepts:
        raise RefusedError("CAP-002", f"{call.tool} cannot be proposed; the program calls it.")
    args = check_schema(program.tools[call.tool], normalise(call.args, now.slots))
    if not answers(program, now, event):
        raise RefusedError("FSM-004", "No proposal is awaited at this point of the run.")
    check_grant(grant, args, now.slots)
    after = replace(now, owed=None, call=(call.tool, frozen(args)), step=program.model_step.next)
    judged(program, after)
    body = {
        **moved(now, event, now.state),
        "tool": "model.propose",
        "idempotency_key": event.key,
        "outcome": "proposed",
        "out": {event.secret.slot: event.secret.ref} if event.secret else {},
        "secrets": listed((event.secret,)) if event.secret else [],
    }
    sealed = draft("result", event, after, body)
    return join(sealed, go_on(program, after, program.model_step.next, event))


def after_refusal(program: Program, now: Snapshot, event: Event) -> Decision:
    """Ask the model again, or end the run where it was refused too often."""
    if now.refused >= program.proposals_max:
        text = f"The model's proposals were refused {now.refused} times; nothing was paid."
        return end(now, event, life.FAILED, "FSM-005", text)
    if now.state != life.ACTIVE:
        return Decision(snapshot=now)
    return enter(program, now, now, program.model_step.name, event)


def paused(now: Snapshot, event: PauseRequested) -> Decision:
    """Hold still: nothing new is begun; an answer under way is still taken."""
    _to(now, event, life.PAUSED)
    return suspend(now, event, life.PAUSED, "", "Paused.")


def resumed(program: Program, now: Snapshot, event: ResumeRequested | StepRequested) -> Decision:
    """Go on where the run stands; with StepRequested, for one step."""
    after = replace(
        _to(now, event, life.ACTIVE), stepping=isinstance(event, StepRequested), reason=None
    )
    return _resume(program, now, after, event)


def approved(program: Program, now: Snapshot, event: Approved) -> Decision:
    """Lift the hold that the run waits for, where its rule lets a person lift it."""
    liftable = {rule.id for rule in program.policy.rules if rule.approvable} | {UNKNOWN_OUTCOME}
    to = _to(now, event, life.ACTIVE)
    if now.held_by not in liftable:
        raise RefusedError("POL-021", "This hold cannot be approved away; the run can be stopped.")
    after = replace(
        to, approved=tuple(sorted({*now.approved, now.held_by})), held_by="", reason=None
    )
    return _resume(program, now, after, event)


def stopped(now: Snapshot, event: Declined | KillRequested) -> Decision:
    """End a run by a person's word, unless a payment is under way."""
    if isinstance(event, Declined):
        _to(now, event, life.FAILED)
        if now.held_by == UNKNOWN_OUTCOME:
            text = "A person gave up on a payment that may have been made: look at the far side."
            return end(now, event, life.FAILED, "POL-023", text)
        return end(now, event, life.FAILED, "POL-022", "A person declined the held payment.")
    _to(now, event, life.KILLED)
    if event.under_way and now.owed is not None and now.owed.warrant is not None:
        raise RefusedError("FSM-009", "A payment is under way; wait for its answer, then stop.")
    return end(now, event, life.KILLED, "FSM-006", "Stopped by a person.")


def _resume(program: Program, now: Snapshot, after: Snapshot, event: Event) -> Decision:
    """Seal that the run goes on, with the new warrant of what is owed again."""
    then = again(program, after, event)
    body = moved(now, event, life.ACTIVE)
    for effect in then.effects if not then.drafts else ():
        body |= {"tool": effect.tool, "idempotency_key": effect.key, **issued(effect)}
    return join(draft("resumed", event, after, body), then)


def _to(now: Snapshot, event: Event, state: str) -> Snapshot:
    """The snapshot in ``state``, if the table lets this event lead there (FSM-002)."""
    name = type(event).__name__
    if state not in life.TABLE.get((now.state, name), ()):
        raise RefusedError("FSM-002", f"From {now.state}, {name} leads nowhere.")
    return replace(now, state=state)


def _owed(program: Program, now: Snapshot, event: Event, key: str) -> tuple[Effect, Step]:
    """The effect that is owed under this key, and its step."""
    _to(now, event, life.APPROVAL if isinstance(event, EffectUnknown) else now.state)
    if now.owed is None or now.owed.key != key:
        raise RefusedError("FSM-001", "No effect with a sealed intent is owed under this key.")
    if not event.by_holder:
        raise RefusedError("FSM-012", "The result does not come from the worker on this effect.")
    return now.owed, program.steps[now.owed.step]


def _filled(program: Program, now: Snapshot, step: Step, event: EffectDone) -> Args:
    """The slots after a step: its own ones set, by type; personal ones by committed ref."""
    for name, value in event.out.items():
        if name not in step.fills:
            raise RefusedError("FSM-007", f"Step {step.name} may not fill the slot {name!r}.")
        check_slot(program, name, value, event.secrets)
    kept = {name: value for name, value in now.slots.items() if name not in step.drops}
    return frozen({**kept, **event.out})


def _sealable(value: Scalar) -> bool:
    """Whether an envelope could hold it: what cannot be sealed must not be taken."""
    try:
        encode(value)
    except CanonicalError:
        return False
    return True


def _spent(now: Snapshot, step: Step) -> tuple[Reservation, ...]:
    """The reservation of a payment that was made, turned into money spent."""
    if not step.call or now.reserved is None:
        return ()
    return (budget.settle(*now.reserved),)
