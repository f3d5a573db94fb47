"""From step to step: entering, intending, authorizing, suspending, ending."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from nanovm_core import budget, policy
from nanovm_core import lifecycle as life
from nanovm_core.canonical import Json, digest
from nanovm_core.capabilities import check_grant, check_provenance, check_schema, mint
from nanovm_core.errors import RefusedError
from nanovm_core.messages import (
    Args,
    Commitment,
    Decision,
    Draft,
    Effect,
    Event,
    Reservation,
    Scalar,
    Snapshot,
)
from nanovm_core.program import COMPLETED, Program, Step


def frozen(slots: Mapping[str, Scalar]) -> Args:
    """A copy of the slots that nobody can change."""
    return MappingProxyType(dict(slots))


def listed(secrets: tuple[Commitment, ...]) -> list[dict[str, str]]:
    """Commitments as an envelope holds them."""
    return [{"slot": each.slot, "ref": each.ref, "c": each.c} for each in secrets]


def effect_key(now: Snapshot, step: str, tool: str, attempt: int) -> str:
    """The idempotency key: hash(run, step, tool, attempt), 64 lower-case hex digits."""
    parts = "\0".join((now.run, step, tool, str(attempt)))
    return digest(b"nanovm/effect/v1\0", parts.encode())


def binding(run: str, program: str, effect: Effect) -> dict[str, Json]:
    """Everything a warrant is bound to; an adapter builds it from the call in its hands."""
    return {
        "run": run,
        "program": program,
        "step": effect.step,
        "tool": effect.tool,
        "key": effect.key,
        "args": dict(effect.args),
    }


def moved(now: Snapshot, event: Event, to: str) -> dict[str, object]:
    """The ``step`` and ``state`` fields of an envelope."""
    return {
        "step": now.step,
        "state": {"from": now.state, "event": type(event).__name__, "to": to},
    }


def go_on(program: Program, now: Snapshot, name: str, event: Event) -> Decision:
    """After a step: the next one, or a pause before it where somebody asked for one."""
    now = replace(now, step=name if name != COMPLETED else now.step, attempt=1)
    if name != COMPLETED and now.state == life.ACTIVE and now.stepping:
        return suspend(now, event, life.PAUSED, "", "Paused before the next step.")
    if name != COMPLETED and now.state in life.SUSPENDED:
        return Decision(snapshot=now)
    return enter(program, now, now, name, event)


def again(program: Program, now: Snapshot, event: Event) -> Decision:
    """After a suspension: what is still owed is owed again, else the step begins."""
    if now.owed is None:
        return enter(program, now, now, now.step, event)
    owed = now.owed
    if owed.warrant is not None:
        owed = _warranted(program, now, replace(owed, warrant=None), event)
    return Decision(snapshot=replace(now, owed=owed), effects=(owed,))


def enter(program: Program, before: Snapshot, now: Snapshot, name: str, event: Event) -> Decision:
    """Begin a step, or end the run where there is none."""
    if name == COMPLETED:
        return end(now, event, life.COMPLETED, "", "")
    step = program.steps[name]
    now = replace(now, step=name)
    if step.kind == "pure":
        return _authorize(program, now, step, event)
    if step.kind == "model":
        now = replace(now, attempt=now.refused + 1)
        return _admit(program, before, now, step, event)
    return intend(program, before, now, step, event)


def _admit(program: Program, before: Snapshot, now: Snapshot, step: Step, event: Event) -> Decision:
    """Ask the model only about what the policy would let anybody pay."""
    try:
        context = {"slots": now.slots}
        outcome = policy.judge(program.policy, policy.ADMISSION, context, now.approved)
    except RefusedError as error:
        return end(now, event, life.FAILED, error.code, error.text)
    held = _held(event, now, outcome)
    return held if held is not None else intend(program, before, now, step, event)


def _authorize(program: Program, now: Snapshot, step: Step, event: Event) -> Decision:
    """Judge the call once more, at the moment that counts, and seal why it may be done."""
    try:
        outcome = judged(program, now)
    except RefusedError as error:
        return end(now, event, life.FAILED, error.code, error.text)
    held = _held(event, now, outcome)
    if held is not None:
        return held
    after = replace(now, allowed_by=outcome.rules)
    body = {
        **moved(now, event, now.state),
        "outcome": "authorized",
        "decision": {"verdict": "ACCEPTED", "rules": list(outcome.rules)},
    }
    sealed = draft("result", event, after, body)
    return join(sealed, go_on(program, after, step.next, event))


def intend(program: Program, before: Snapshot, now: Snapshot, step: Step, event: Event) -> Decision:
    """Seal the intent of an effect, with the authority it needs, and owe it."""
    tool, args = step.tool, {name: now.slots[s] for name, s in step.args.items() if s in now.slots}
    if step.call:
        tool, args = _call(now)[0], {**_call(now)[1], **args}
    owed = Effect(
        step=step.name,
        tool=tool,
        attempt=now.attempt,
        key=effect_key(now, step.name, tool, now.attempt),
        args=frozen(args),
        at_ms=event.at_ms,
    )
    if tool not in program.grants:
        return _owe(before, now, event, owed)
    try:
        _check_granted(program, now, step, owed)
    except RefusedError as error:
        return end(now, event, life.FAILED, error.code, error.text)
    owed = _warranted(program, now, owed, event)
    return _reserved(before, now, event, owed) if step.call else _owe(before, now, event, owed)


def _check_granted(program: Program, now: Snapshot, step: Step, owed: Effect) -> None:
    """Hold the program's own use of a granted tool to the same schema, grant and provenance."""
    tool = program.tools[owed.tool]
    given = {name: value for name, value in owed.args.items() if name in tool.args or not step.call}
    args = check_schema(tool, given)
    check_grant(program.grants[owed.tool], args, now.slots)
    check_provenance(tool, args, now.slots)


def _reserved(before: Snapshot, now: Snapshot, event: Event, owed: Effect) -> Decision:
    """Owe a payment: the money is reserved and the decision sealed before it is made."""
    currency, amount = str(owed.args["currency"]), int(owed.args["amount_minor"])
    taken: tuple[Reservation, ...] = ()
    if now.reserved is None:
        try:
            taken = (budget.reserve(event.funds, currency, amount),)
        except RefusedError as error:
            return suspend(now, event, life.EXHAUSTED, error.code, error.text)
    left = event.funds.get(currency, 0) - (amount if taken else 0)
    authority = {
        "decision": {"verdict": "ACCEPTED", "rules": list(now.allowed_by)},
        "budget": {"reserved": {"currency": currency, "amount_minor": amount}, "left": left},
    }
    owing = _owe(before, replace(now, reserved=(currency, amount)), event, owed, authority)
    return replace(owing, budgets=taken)


def _owe(
    before: Snapshot,
    now: Snapshot,
    event: Event,
    owed: Effect,
    authority: Mapping[str, object] = MappingProxyType({}),
) -> Decision:
    """Seal the intent and hand the effect out."""
    after = replace(now, owed=owed)
    body = {
        **moved(before, event, now.state),
        "step": owed.step,
        "tool": owed.tool,
        "idempotency_key": owed.key,
        "in": dict(owed.args),
        **authority,
        **issued(owed),
    }
    return Decision(snapshot=after, drafts=(draft("intent", event, after, body),), effects=(owed,))


def issued(owed: Effect) -> dict[str, object]:
    """The ``warrant`` field of an envelope."""
    if owed.warrant is None:
        return {}
    return {"warrant": {"id": owed.warrant.id, "expires_ms": owed.warrant.expires_ms}}


def judged(program: Program, now: Snapshot) -> policy.Outcome:
    """What the policy says of the run's call, and proof that its arguments are the invoice's.

    Raises:
        RefusedError: POL-…; an approval that is still missing is an Outcome, not an error.
    """
    tool, args = _call(now)
    context = {"slots": now.slots, "proposal": args}
    outcome = policy.judge(program.policy, policy.AUTHORIZE, context, now.approved)
    check_provenance(program.tools[tool], args, now.slots)
    return outcome


def suspend(
    now: Snapshot, event: Event, to: str, code: str, text: str, *, held_by: str = ""
) -> Decision:
    """Suspend the run, saying what it waits for."""
    after = replace(now, state=to, held_by=held_by, reason=(code, text))
    body = {
        **moved(now, event, to),
        "rule": code,
        "outcome": to.partition(".")[2],
        "decision": {"verdict": "HELD", "rules": [held_by]} if held_by else None,
    }
    return Decision(snapshot=after, drafts=(draft("suspended", event, after, body),))


def end(now: Snapshot, event: Event, to: str, code: str, text: str) -> Decision:
    """End the run. What was reserved is given back, unless nobody knows whether it was spent."""
    given_back: tuple[Reservation, ...] = ()
    if now.reserved is not None and now.held_by != policy.UNKNOWN_OUTCOME:
        given_back = (budget.release(*now.reserved),)
    reason = (code, text) if code else None
    after = replace(now, state=to, owed=None, held_by="", reserved=None, reason=reason)
    body = {**moved(now, event, to), "rule": code, "outcome": to.partition(".")[2]}
    sealed = draft("terminal", event, after, body)
    return Decision(snapshot=after, drafts=(sealed,), budgets=given_back)


def draft(kind: str, event: Event, after: Snapshot, body: Mapping[str, object]) -> Draft:
    """An envelope's draft at the event's time, in its actor's name."""
    return Draft(kind=kind, at_ms=event.at_ms, actor=event.actor, after=after, body=body)


def join(first: Draft, then: Decision, *, budgets: tuple[Reservation, ...] = ()) -> Decision:
    """A decision with one more draft before its own; the last draft seals its snapshot."""
    if not then.drafts:
        first = replace(first, after=then.snapshot)
    return replace(then, drafts=(first, *then.drafts), budgets=(*budgets, *then.budgets))


def _call(now: Snapshot) -> tuple[str, Args]:
    """The judged call; a run that has none is charged for nothing."""
    if now.call is None:
        raise RefusedError("FSM-004", "There is no judged call at this point of the run.")
    return now.call


def _held(event: Event, now: Snapshot, outcome: policy.Outcome) -> Decision | None:
    if outcome.hold is None:
        return None
    rule = outcome.hold
    text = f"{rule.why} (rule {rule.id})"
    return suspend(now, event, life.APPROVAL, "POL-020", text, held_by=rule.id)


def _warranted(program: Program, now: Snapshot, owed: Effect, event: Event) -> Effect:
    bound = binding(now.run, program.hash, owed)
    warrant = mint(bound, at_ms=event.at_ms, ttl_ms=program.warrant_ttl_ms)
    return replace(owed, warrant=warrant)
