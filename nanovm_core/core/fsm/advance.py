"""From step to step: entering, intending, authorizing, suspending, failing, ending."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority import budget
from nanovm_core.core.authority.policy import Outcome, PolicyRule
from nanovm_core.core.fsm import agreement, moves
from nanovm_core.core.fsm.effects import authority, effect_key, judged_call, needed, owe, warranted
from nanovm_core.core.fsm.moves import Cause
from nanovm_core.core.gate import Allowed, Facts
from nanovm_core.core.messages import (
    NOTHING,
    Args,
    Decision,
    Effect,
    Snapshot,
    Suspension,
)
from nanovm_core.core.program import COMPLETED, EFFECT, FAILED, MODEL, PURE, WAIT, Program, Step
from nanovm_core.core.proposals import Call
from nanovm_core.errors import ConditionError, RefusedError


def follow(
    program: Program, now: Snapshot, step: Step, cause: Cause, allowed: Allowed | None = None
) -> Decision:
    """After a step: the branch whose guard holds; if a guard errs, the run fails.

    ``allowed``: the gate's answer on the judged call, if asked in this transition.
    """
    try:
        name = step.then or _branch(program, now, step, cause)
    except ConditionError as error:
        text = f"A guard after {step.name} could not be evaluated ({error.code}), so the run ends."
        return moves.end(now, cause, life.FAILED, "FSM-013", text)
    return go_on(program, now, name, cause, allowed)


def go_on(
    program: Program, now: Snapshot, name: str, cause: Cause, allowed: Allowed | None = None
) -> Decision:
    """To a step, or to a requested pause before it."""
    if name == COMPLETED:
        return moves.end(now, cause, life.COMPLETED, "", "")
    step = program.steps[name]
    if step.kind == EFFECT and now.state == life.ACTIVE and not now.stepping:
        return intend(program, now, now, step, cause, allowed)
    now = now._replace(step=name, attempt=1, refused=0)
    if now.state in life.SUSPENDED:
        return Decision(now)
    if now.stepping:
        return moves.suspend(now, cause, life.PAUSED, "", "Paused before the next step.")
    return enter(program, now, now, cause)


def again(program: Program, now: Snapshot, cause: Cause) -> Decision:
    """After a suspension: hand out what is owed, await what was awaited, or begin the step.

    An effect handed out again under its key is held to its grant alone: it may have been done
    already, and what counts calls, rules or a rate, counts it.
    """
    if no := _halted(program, now, program.steps[now.step], cause):
        raise no  # the run stays where it is
    owed = now.owed
    if owed is not None and owed.tool in program.granted:
        if not now.awaits:  # handed out again: still allowed?
            known = program.tools[owed.tool].args
            judged = {name: owed.args[name] for name in owed.args if name in known}
            program.gate.permit_own(Call(owed.tool, judged), moves.facts(now, cause), again=True)
            if held := agreement.lapsed(program, now, cause):
                return held
        owed = warranted(program, now, owed, cause)
    if now.awaits:
        return Decision(now._replace(state=life.WAITING, owed=owed))
    if owed is None and now.deadline_ms > cause.at_ms:  # between two attempts
        return Decision(now._replace(state=life.IDLE))
    if owed is None:
        return enter(program, now, now, cause)
    return Decision(now if owed is now.owed else now._replace(owed=owed), (), (owed,))


def enter(program: Program, before: Snapshot, now: Snapshot, cause: Cause) -> Decision:
    """Begin the run's current step."""
    step = program.steps[now.step]
    if step.kind == EFFECT:
        return intend(program, before, now, step, cause)
    if step.kind == MODEL:
        return _admit(program, before, now, step, cause)
    if step.kind == WAIT:
        return _wait(before, now, step, cause)
    if step.kind == PURE:
        judges = _authorize if step.authorizes else _pass
        return judges(program, now, step, cause)
    text = f"The step {step.name} has an unknown kind, so it cannot run."
    return moves.end(now, cause, life.FAILED, "PRG-002", text)


def give_up(program: Program, now: Snapshot, cause: Cause, code: str, text: str) -> Decision:
    """The step failed for good: release its reservations, take its ``on_error`` path."""
    step = program.steps[now.step]
    if step.on_error == FAILED:
        return moves.end(now, cause, life.FAILED, code, text)
    after, released = moves.release(now)
    after = after._replace(owed=None, awaits="", deadline_ms=0, call=None, approved=())
    after = after._replace(agreed=NOTHING, agreed_ms=0, reason=(code, text))
    then = go_on(program, after, step.on_error, cause)
    return then._replace(budgets=(*released, *then.budgets))


def _branch(program: Program, now: Snapshot, step: Step, cause: Cause) -> str:
    context = program.gate.context(moves.facts(now, cause))
    for branch in step.next:
        if branch.when is None or branch.when.run(context):
            return branch.to
    raise ConditionError("FSM-013", "no branch applies, and every branch has a guard")


def _pass(program: Program, now: Snapshot, step: Step, cause: Cause) -> Decision:
    sealed = moves.draft("result", cause, now, moves.moved(now, cause, now.state, outcome="passed"))
    return moves.join(sealed, follow(program, now, step, cause))


def _wait(before: Snapshot, now: Snapshot, step: Step, cause: Cause) -> Decision:
    key = effect_key(now, step.name, "", now.attempt)
    until_ms = cause.at_ms + step.timeout_ms
    after = now._replace(state=life.WAITING, awaits=key, deadline_ms=until_ms)
    body = moves.moved(before, cause, life.WAITING, idempotency_key=key, outcome="waiting")
    return Decision(after, (moves.draft("intent", cause, after, body | {"step": step.name}),))


def _admit(program: Program, before: Snapshot, now: Snapshot, step: Step, cause: Cause) -> Decision:
    try:
        outcome = program.gate.admit(moves.facts(now, cause))
    except RefusedError as error:
        return _denied(program, now, step, cause, error)
    held = _held(program, now, step, cause, outcome)
    return held or intend(program, before, now, step, cause)


def _authorize(program: Program, now: Snapshot, step: Step, cause: Cause) -> Decision:
    """Judge the call again just before it is made, and seal what allowed it."""
    try:
        allowed = program.gate.permit(Call(*judged_call(now)), moves.facts(now, cause))
    except RefusedError as error:
        return _denied(program, now, step, cause, error)
    held = _held(program, now, step, cause, allowed)
    if held is not None:
        return held
    after = now._replace(allowed_by=allowed.rules)
    decision = moves.verdict("ACCEPTED", *allowed.rules)
    body = moves.moved(now, cause, now.state, outcome="authorized", decision=decision)
    return moves.join(
        moves.draft("result", cause, after, body), follow(program, after, step, cause, allowed)
    )


def intend(
    program: Program,
    before: Snapshot,
    now: Snapshot,
    step: Step,
    cause: Cause,
    allowed: Allowed | None = None,
) -> Decision:
    """Seal the intent of an effect, with its authority and budget, and owe it.

    Moves a run at another step to this one. The judged call is judged again under each new key,
    unless ``allowed`` in this transition.
    """
    attempt = now.attempt if now.step == step.name else 1
    if no := _halted(program, now, step, cause):
        at = now._replace(step=step.name, attempt=attempt)
        return moves.suspend(at, cause, life.PAUSED, no.code, no.text)
    tool, slots = step.tool, now.slots
    args: Args = {name: slots[slot] for name, slot in step.args.items() if slot in slots}
    if step.call:
        tool, judged = judged_call(now)
        args = {**judged, **args}
    if step.call or tool in program.granted or step.kind == MODEL:
        at = now if now.step == step.name else now._replace(step=step.name, attempt=1, refused=0)
        return _intend_under_authority(program, before, at, step, (tool, args), cause, allowed)
    known = moves.facts(now, cause)
    try:
        args = program.gate.require_schema(Call(tool, args), known)
    except RefusedError as error:
        at = now._replace(step=step.name, attempt=attempt, refused=0)
        return give_up(program, at, cause, error.code, error.text)
    try:
        counted = program.gate.begin_step(now.begun, known)
    except RefusedError as error:
        at = now._replace(step=step.name, attempt=attempt, refused=0)
        return _exhausted(at, cause, error)
    key = effect_key(now, step.name, tool, attempt)
    owed = Effect(step.name, tool, attempt, key, args, cause.at_ms)
    return owe(before, now, owed, step, cause, counted)


def actor(program: Program, now: Snapshot, step: Step) -> str:
    """The agent that a step begins an effect of: who uses its tool, or the judged call's."""
    called = now.call[0] if now.call and (step.call or step.authorizes) else step.tool
    return program.acting(called, now.agent)


def handed_over(program: Program, now: Snapshot, decision: Decision, cause: Cause) -> Decision:
    """The decision, with a ``message`` where it brings the run to a step of another agent.

    It precedes the first draft at a step of that agent; where there is none, it is the last. It
    seals the value of the draft before it.
    """
    drafts, after = decision.drafts, decision.snapshot
    left = actor(program, now, program.steps[now.step])
    to = actor(program, after, program.steps[after.step])
    if left == to:
        return decision
    steps = [str(draft.body["step"]) for draft in drafts]
    there = (
        place
        for place, (draft, step) in enumerate(zip(drafts, steps, strict=True))
        if step != now.step and actor(program, draft.after, program.steps[step]) == to
    )
    place = next(there, len(drafts))
    step = (*steps, after.step)[place]
    body = {"from": left, "to": to, "of": step, "step": step}
    stood = drafts[place - 1].after if place else now
    message = moves.draft("message", cause, stood, body)
    return decision._replace(drafts=(*drafts[:place], message, *drafts[place:]))


def _halted(program: Program, now: Snapshot, step: Step, cause: Cause) -> RefusedError | None:
    """Why the step's agent begins nothing, if so (CAP-040)."""
    if not cause.context.halted:
        return None
    agent = actor(program, now, step)
    state = cause.context.halted.get(agent, "").replace(".", " ").replace("_", " ")
    text = f"The agent {agent} is {state}: resume it, and the run goes on."
    return RefusedError("CAP-040", text) if state else None


def _intend_under_authority(
    program: Program,
    before: Snapshot,
    now: Snapshot,
    step: Step,
    call: tuple[str, Args],
    cause: Cause,
    allowed: Allowed | None,
) -> Decision:
    """The intent of a granted call, or of a question to the model: judged, and paid for."""
    tool, args = call
    granted = bool(step.call) or tool in program.granted
    taken_in = program.tools[tool].args if tool in program.tools else args
    judged: Args = {name: args[name] for name in args if name in taken_in}
    known = moves.facts(now, cause)
    try:
        if allowed is None or not step.args.keys().isdisjoint(judged):
            allowed = _permitted(program, step, Call(tool, judged), known)
    except RefusedError as error:
        return _denied(program, now, step, cause, error)
    if held := _held(program, now, step, cause, allowed) or agreement.lapsed(program, now, cause):
        return held
    try:
        counted = program.gate.begin_step(now.begun, known)
        need = needed(program, now, step, tool if granted else "", allowed.args)
        key = effect_key(now, step.name, tool, now.attempt)
        taken = program.gate.reserve(need, known)
    except RefusedError as error:
        return _exhausted(now, cause, error)
    args = MappingProxyType({**args, **allowed.args})  # with the defaults of what is left out
    owed = Effect(step.name, tool, now.attempt, key, args, cause.at_ms)
    seal: Mapping[str, object] = {}
    if granted:
        origins = program.gate.origins(tool, known)
        owed = warranted(program, now, owed._replace(origins=origins), cause)
        seal = authority(allowed.rules, taken, owed)
    by, used = (allowed.rules if step.call else now.allowed_by), budget.own_use(now.used, taken)
    now = now._replace(reserved=(*now.reserved, *taken), used=used, allowed_by=by)
    shared = tuple(each for each in taken if not each.account.startswith(budget.OWN))
    return owe(before, now, owed, step, cause, (*counted, *shared), seal)


def _exhausted(now: Snapshot, cause: Cause, error: RefusedError) -> Decision:
    account = error.account
    return moves.suspend(now, cause, life.EXHAUSTED, error.code, error.text, account=account)


def _permitted(program: Program, step: Step, call: Call, known: Facts) -> Allowed:
    if step.call:
        return program.gate.permit(call, known)
    if call.tool in program.granted:
        return Allowed(program.gate.permit_own(call, known), ())
    return Allowed(program.gate.require_schema(call, known), ())


def by_rules(agent: str, fired: tuple[PolicyRule, ...]) -> tuple[Suspension, ...]:
    """A command for each rule that suspends an agent."""
    return tuple(Suspension(agent, rule.id, rule.why) for rule in fired)


def halting(
    cause: Cause, commands: tuple[Suspension, ...], then: Callable[[Cause], Decision]
) -> Decision:
    """What follows where agents are suspended: these commands, and they begin nothing."""
    if not commands:
        return then(cause)
    halted = {**cause.context.halted, **{each.agent: each.state for each in commands}}
    context = replace(cause.context, halted=MappingProxyType(halted))
    decision = then(cause._replace(context=context))
    return decision._replace(commands=(*commands, *decision.commands))


def _denied(
    program: Program, now: Snapshot, step: Step, cause: Cause, error: RefusedError
) -> Decision:
    """The step is given up; what suspends beside the refusal suspends the agent."""
    fired = by_rules(actor(program, now, step), error.fired)
    return halting(cause, fired, lambda at: give_up(program, now, at, error.code, error.text))


def _held(
    program: Program, now: Snapshot, step: Step, cause: Cause, found: Outcome | Allowed
) -> Decision | None:
    """Where a rule stops the call: the run held for a person, or suspended with its agent."""
    rule, fired = found.hold, found.fired
    if rule is None:
        return None
    text, agent = f"{rule.why} (rule {rule.id})", actor(program, now, step)
    if not fired:
        return moves.suspend(now, cause, life.APPROVAL, "POL-020", text, rule.id)
    said = f"The agent {agent} is suspended: {text}"
    rules = [each.id for each in fired]
    stopped = moves.suspend(now, cause, life.PAUSED, "CAP-040", said, *rules)
    return halting(cause, by_rules(agent, fired), lambda _: stopped)
