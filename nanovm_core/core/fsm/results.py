"""The answers of effects and models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.budget import AGENT_TOKENS, CODES, TOKENS
from nanovm_core.core.authority.capabilities import REF, resolve
from nanovm_core.core.authority.origin import DOCUMENT, labelled
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.fsm import moves
from nanovm_core.core.fsm.advance import by_rules, enter, follow, give_up, halting, intend
from nanovm_core.core.fsm.effects import effect_key
from nanovm_core.core.fsm.moves import Cause, Fields
from nanovm_core.core.messages import (
    NOTHING,
    Commitment,
    Counts,
    Decision,
    Reservations,
    Scalar,
    Slots,
    Snapshot,
    Suspension,
)
from nanovm_core.core.program import EFFECT, MODEL, SLOT_TYPES, Program, Step, answer_origin
from nanovm_core.core.proposals import Call, read_proposal
from nanovm_core.errors import RefusedError


def answers(program: Program, now: Snapshot, event: events.ProposalReceived) -> bool:
    """Whether this proposal answers the open intent of the run's current model step.

    The key suffices: who has it can use up the model's attempts, no more. Another step's key would
    cancel what that step owes.
    """
    owed = now.owed
    if owed is None or owed.key != event.key or program.steps[now.step].kind != MODEL:
        return False
    return (now.state, "ProposalReceived") in life.TABLE


def check_slot(program: Program, name: str, value: Scalar, secrets: Sequence[Commitment]) -> None:
    """Hold a value to its slot's type (FSM-007); a personal one is the ref of one of these secrets
    (PII-001). No text holds the value.
    """
    kind = program.slots[name].type
    if type(value) is not SLOT_TYPES[kind] or not events.is_sealable(value):
        raise RefusedError("FSM-007", f"The slot {name!r} takes a value of type {kind}.")
    if kind == "ref":
        committed = any((secret.slot, secret.ref) == (name, value) for secret in secrets)
        if not committed or not REF.fullmatch(str(value)):
            raise RefusedError("PII-001", f"The slot {name!r} takes only a committed vault ref.")


def _consequences(handler: Callable[[Program, Snapshot, Any, Cause], Decision]) -> Any:
    """The handler of an effect's end, under the rules at outcome, which count it already.

    They read the run as it was before. Whatever they say, a payment that was made is recorded.
    """

    def handled(program: Program, now: Snapshot, event: Any, cause: Cause) -> Decision:
        owed = now.owed
        if owed is None or owed.tool not in program.gate.judges_end or _is_unknown(event):
            return handler(program, now, event, cause)
        code = getattr(event, "code", None)
        failed = isinstance(event, events.EffectFailed) or bool(code)
        agent, call = program.acting(owed.tool, now.agent), Call(owed.tool, owed.args)
        fired = program.gate.ended(call, moves.facts(now, cause), agent, code if failed else None)
        return halting(cause, by_rules(agent, fired), lambda at: handler(program, now, event, at))

    return handled


def _is_unknown(event: Any) -> bool:
    return isinstance(event, events.AnswerArrived) and event.outcome == events.UNKNOWN


@_consequences
def done(program: Program, now: Snapshot, event: events.EffectDone, cause: Cause) -> Decision:
    return _taken(program, now, event, cause, _owed(now, cause, event.key))


def waiting(program: Program, now: Snapshot, event: events.EffectWaiting, cause: Cause) -> Decision:
    """The effect is under way: await its answer."""
    tool, step = _owed(now, cause, event.key), program.steps[now.step]
    if step.kind == MODEL:
        raise RefusedError("FSM-015", "A model step cannot wait for an external answer.")
    state = life.WAITING if now.state == life.ACTIVE else now.state
    until_ms = min(filter(None, (event.until_ms, cause.at_ms + step.timeout_ms)))
    stood_ms = cause.at_ms - now.suspended_ms if now.suspended_ms else 0  # so far, in a pause
    after = now._replace(state=state, awaits=event.key, deadline_ms=max(1, until_ms - stood_ms))
    body = moves.moved(now, cause, state, tool=tool, idempotency_key=event.key, outcome="waiting")
    return Decision(after, (moves.draft("result", cause, after, body),))


@_consequences
def answered(
    program: Program, now: Snapshot, event: events.AnswerArrived, cause: Cause
) -> Decision:
    """Accept the awaited answer, once, if it names run, program and key.

    The runtime must vouch for the sender: the key is no secret. A late
    answer is accepted too, also while a person is asked.
    """
    moves.expect_program(now, event.program)
    if event.run != now.run:
        raise RefusedError("FSM-015", "The answer names another run.")
    if not now.awaits or event.key != now.awaits:
        raise RefusedError("FSM-015", "The run awaits no answer with this key, or already has it.")
    if not cause.context.vouched:
        raise RefusedError("FSM-018", "The answer's sender is not verified; a key is no proof.")
    moves.expect(now, cause)
    if _is_unknown(event):
        if now.owed is None or now.state not in (life.WAITING, life.PAUSED):
            raise RefusedError("FSM-015", "No effect waits for an outcome.")
        return moves.suspend(now, cause, life.APPROVAL, event.code, event.text, UNKNOWN_OUTCOME)
    at = now._replace(state=life.ACTIVE) if now.state == life.WAITING else now
    if now.state == life.APPROVAL:
        at = moves.to_state(now, cause, life.ACTIVE, held_by="", reason=None)
    if event.code:
        return _failed(program, now, at._replace(awaits=""), cause, event.code, event.text)
    return _taken(program, at, event, cause, now.owed.tool if now.owed else "")


def _taken(
    program: Program,
    now: Snapshot,
    event: events.EffectDone | events.AnswerArrived,
    cause: Cause,
    tool: str,
) -> Decision:
    step = program.steps[now.step]
    if step.kind == MODEL:
        raise RefusedError("FSM-004", "A model step takes a proposal, not a result.")
    slots = _filled(program, now, step, event)
    origins = _origins(program, now, step, event.out)
    after, spent = moves.settle(now)
    rest: Fields = {"owed": None, "awaits": "", "deadline_ms": 0}
    rest |= {"call": None, "agreed": NOTHING, "agreed_ms": 0} if step.call else {}
    after = after._replace(slots=slots, origins=origins, **rest)
    body = moves.moved(
        now, cause, now.state, tool=tool, idempotency_key=event.key, outcome=event.outcome
    )
    if event.out:
        known = MappingProxyType({name: origins[name] for name in event.out if name in origins})
        body |= {"out": event.out, "origin": known, "secrets": moves.listed(event.secrets)}
    sealed = moves.draft("result", cause, after, body)
    return moves.join(sealed, follow(program, after, step, cause), spent)


@_consequences
def failed(program: Program, now: Snapshot, event: events.EffectFailed, cause: Cause) -> Decision:
    """Accept a known failure: the next attempt, else the error path."""
    _owed(now, cause, event.key)
    return _failed(program, now, now, cause, event.code, event.text, retry=event.retry)


def _failed(
    program: Program,
    now: Snapshot,
    at: Snapshot,
    cause: Cause,
    code: str,
    text: str,
    *,
    retry: bool = False,
) -> Decision:
    step = program.steps[now.step]
    after = at._replace(owed=None, deadline_ms=0)
    retry = retry and now.attempt - now.refused < step.retry.attempts_max
    body = moves.moved(now, cause, at.state, rule=code, outcome="failed")
    if now.owed is not None:
        body |= {"tool": now.owed.tool, "idempotency_key": now.owed.key}
    if not retry:
        return moves.join(
            moves.draft("failed", cause, after, body), give_up(program, after, cause, code, text)
        )
    after = after._replace(attempt=now.attempt + 1)
    delay_ms = backoff_ms(now, step)
    if delay_ms and after.state == life.ACTIVE:
        after = after._replace(state=life.IDLE, deadline_ms=cause.at_ms + delay_ms)
        body["state"] = moves.moved(now, cause, life.IDLE)["state"]
    sealed = moves.draft("failed", cause, after, body)
    if after.state != life.ACTIVE:
        return Decision(after, (sealed,))
    return moves.join(sealed, intend(program, after, after, step, cause))


def backoff_ms(now: Snapshot, step: Step) -> int:
    """The delay before the next attempt: doubled each time, plus up to a quarter by its key."""
    retry = step.retry
    delay_ms = min(retry.backoff_max_ms, retry.backoff_ms << min(now.attempt - now.refused - 1, 32))
    spread = int(effect_key(now, step.name, "backoff", now.attempt)[:8], 16)
    return delay_ms + delay_ms * spread // (4 << 32)


def time_passed(program: Program, now: Snapshot, _: events.TimePassed, cause: Cause) -> Decision:
    """At the deadline, the wait, the attempt or the delay before one ends."""
    moves.expect(now, cause)
    if not now.deadline_ms or cause.at_ms < now.deadline_ms:
        return Decision(now)
    step = program.steps[now.step]
    if now.state == life.IDLE:
        after = now._replace(state=life.ACTIVE, deadline_ms=0)
        return intend(program, now, after, step, cause)
    text = f"The step {step.name} got no answer in time."
    if now.owed is not None and now.owed.tool in program.granted:
        return moves.suspend(now, cause, life.APPROVAL, "FSM-014", text, UNKNOWN_OUTCOME)
    at = now._replace(state=life.ACTIVE, awaits="")
    return _failed(program, now, at, cause, "FSM-014", text, retry=step.kind == EFFECT)


def unknown(_: Program, now: Snapshot, event: events.EffectUnknown, cause: Cause) -> Decision:
    """The outcome is unknown: a person decides, the effect stays owed."""
    _owed(now, cause, event.key)
    return moves.suspend(now, cause, life.APPROVAL, event.code, event.text, UNKNOWN_OUTCOME)


def proposed(
    program: Program, now: Snapshot, event: events.ProposalReceived, cause: Cause
) -> Decision:
    """Judge a proposal: form, turn, authority."""
    call = read_proposal(event.raw)
    if not answers(program, now, event):
        _out_of_turn(program, call)
    moves.expect(now, cause)
    step = program.steps[now.step]
    allowed = program.gate.permit(call, moves.facts(now, cause), step.accepts)
    after, spent = moves.settle(now, _tokens(event, cause))
    judged = (call.tool, allowed.args)
    after = after._replace(owed=None, deadline_ms=0, call=judged, approved=())
    body = moves.moved(now, cause, now.state, tool=step.tool, idempotency_key=event.key)
    body |= {"outcome": "proposed", **carried(event, "out")}
    sealed = moves.draft("result", cause, after, body)
    then = paid(now, spent, cause, lambda at: follow(program, after, step, at))
    return moves.join(sealed, then, spent)


def carried(event: events.ProposalReceived, field: str) -> dict[str, object]:
    """A proposal's bytes, by ref, in this field of an envelope."""
    if event.secret is None:
        return {}
    slots = moves.frozen({event.secret.slot: event.secret.ref})
    return {field: slots, "secrets": moves.listed((event.secret,))}


def _tokens(event: events.ProposalReceived, cause: Cause) -> Counts:
    """What the model used, if the run's own worker says so; else all that was reserved."""
    is_known = cause.context.by_holder and event.tokens < INTEGER_MAX
    return {TOKENS: event.tokens} if is_known else {}


def paid(
    now: Snapshot, spent: Reservations, cause: Cause, then: Callable[[Cause], Decision]
) -> Decision:
    """What follows where a model's tokens are spent: whatever else is reserved, of what they left.

    If they overdraw or use up its agent's account, the agent is suspended, and begins nothing of
    it.
    """
    left: dict[str, int] = {**cause.context.ledger}
    asked: tuple[Suspension, ...] = ()
    for name, reserved, gone in spent:
        if name not in left:
            continue
        after = left[name] - reserved - gone
        left[name] = min(left[name], after)  # what comes back is there for the next decision
        others = max(0, cause.context.frozen + reserved)
        if name == AGENT_TOKENS and (after < 0 or after + others == 0):
            said = f"overdrawn by {-after}" if after < 0 else "used up"
            text = f"The account {name} is {said}: an answer took {gone} of {-reserved} reserved."
            asked = (Suspension(now.agent, CODES[TOKENS], text, name),)
    context = replace(cause.context, ledger=MappingProxyType(left))
    return halting(cause._replace(context=context), asked, then)


def _out_of_turn(program: Program, call: Call) -> None:
    """Refuse a proposal that nobody asked for, by the first fault of its form.

    No slot is compared and no placeholder read: the code would reveal what the run holds.
    """
    resolve(program.grants, call.tool)
    if not any(call.tool in step.accepts for step in program.steps.values()):
        raise RefusedError("CAP-002", f"Only the program itself calls {call.tool}.")
    program.gate.require_form(call)
    raise RefusedError("FSM-004", "The run awaits no proposal at this point.")


def refused_answer(
    now: Snapshot, event: events.ProposalReceived, cause: Cause
) -> tuple[Snapshot, Reservations]:
    """The snapshot after a refused answer: counted, and what the model used is spent."""
    after, spent = moves.settle(now, _tokens(event, cause))
    refused, attempt = now.refused + 1, now.attempt + 1
    return after._replace(refused=refused, attempt=attempt, owed=None, deadline_ms=0), spent


def after_refusal(program: Program, now: Snapshot, cause: Cause) -> Decision:
    """Ask the model again, or give up after too many refusals."""
    if now.refused >= program.limits.proposals_max:
        text = f"The model's proposals were refused {now.refused} times; nothing was done."
        return give_up(program, now, cause, "FSM-005", text)
    return Decision(now) if now.state != life.ACTIVE else enter(program, now, now, cause)


def _owed(now: Snapshot, cause: Cause, key: str) -> str:
    """The tool of the effect owed under this key, if the sender is the run's own worker."""
    moves.expect(now, cause)
    owed = now.owed
    if owed is None or owed.key != key:
        raise RefusedError("FSM-001", "No pending effect with a sealed intent has this key.")
    if not cause.context.by_holder:
        raise RefusedError("FSM-012", "The result comes from a worker without the effect's lease.")
    if now.awaits:
        raise RefusedError("FSM-015", "This effect already waits for an external answer.")
    return owed.tool


def _filled(
    program: Program, now: Snapshot, step: Step, event: events.EffectDone | events.AnswerArrived
) -> Slots:
    """The slots after a step: its own set, by type; personal ones by committed ref."""
    if not event.out and not step.drops:
        return now.slots
    for name, value in event.out.items():
        if name not in step.fills:
            raise RefusedError("FSM-007", f"Step {step.name} may not fill the slot {name!r}.")
        check_slot(program, name, value, event.secrets)
    filled = _with(now.slots, step, event.out)
    events.require_slots(filled)
    return MappingProxyType(filled)


def _origins(program: Program, now: Snapshot, step: Step, out: Slots) -> Mapping[str, str]:
    """The origins of the slots after a step: what it fills is as trusted as its sources."""
    if not out and not step.drops:
        return now.origins
    called = (now.call[0],) if now.call else ()
    source = answer_origin(step, program.tools, program.grants, now.origins, called)
    if source == DOCUMENT and not (now.origins or step.endorses):
        return NOTHING
    filled = {name: step.endorses.get(name, source) for name in out}
    return MappingProxyType(labelled(_with(now.origins, step, filled)))


def _with(now: Any, step: Step, new: Slots) -> Any:
    """These after a step."""
    if step.drops:
        now = {name: each for name, each in now.items() if name not in step.drops}
    return now | new
