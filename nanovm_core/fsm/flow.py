"""From step to step: entering, intending, authorizing, suspending, failing, ending."""

from collections.abc import Mapping
from types import MappingProxyType

from nanovm_core import budget
from nanovm_core import lifecycle as life
from nanovm_core.canonical import digest
from nanovm_core.errors import ConditionError, RefusedError
from nanovm_core.events import Event
from nanovm_core.fsm.moves import (
    OWN,
    between,
    draft,
    end,
    facts,
    frozen,
    issued,
    join,
    moved,
    release,
    suspend,
    verdict,
)
from nanovm_core.messages import Args, Decision, Effect, Reservation, Scalar, Snapshot
from nanovm_core.policy import PolicyRule
from nanovm_core.program import COMPLETED, EFFECT, FAILED, MODEL, WAIT, Program, Step
from nanovm_core.proposals import Call
from nanovm_core.warrants import binding, mint


def effect_key(now: Snapshot, step: str, tool: str, attempt: int) -> str:
    """The idempotency key: hash(run, step, tool, attempt), 64 lower-case hex digits."""
    parts = "\0".join((now.run, step, tool, str(attempt)))
    return digest(b"nanovm/effect/v1\0", parts.encode())


# --- between the steps ---------------------------------------------------------------------


def follow(program: Program, now: Snapshot, step: Step, event: Event) -> Decision:
    """After a step: the branch whose guard holds; without an answer the run fails."""
    try:
        name = step.then or _branch(program, now, step, event)
    except ConditionError as error:
        text = f"A guard after {step.name} could not be evaluated ({error.code}); an error denies."
        return end(now, event, life.FAILED, "FSM-013", text)
    return go_on(program, now, name, event)


def go_on(program: Program, now: Snapshot, name: str, event: Event) -> Decision:
    """To a step, or to a pause before it where somebody asked for one."""
    if name == COMPLETED:
        return end(now, event, life.COMPLETED, "", "")
    step = program.steps[name]
    if step.kind == EFFECT and now.state == life.ACTIVE and not now.stepping:
        return intend(program, now, now, step, event)
    now = now._replace(step=name, attempt=1, refused=0)
    if now.state in life.SUSPENDED:
        return Decision(now)
    if now.stepping:
        return suspend(now, event, life.PAUSED, "", "Paused before the next step.")
    return enter(program, now, now, event)


def again(program: Program, now: Snapshot, event: Event) -> Decision:
    """After a suspension: what is owed is owed again, what was awaited is awaited, or it begins."""
    owed = now.owed
    if owed is not None and owed.tool in program.grants:
        if not now.awaits:  # it is handed out once more: is it still allowed?
            known = program.tools[owed.tool].args
            judged = {name: owed.args[name] for name in owed.args if name in known}
            program.gate.permit_own(Call(owed.tool, judged), facts(now, event))
        owed = _warranted(program, now, owed, event)
    if now.awaits:
        return Decision(now._replace(state=life.WAITING, owed=owed))
    if owed is None:
        return enter(program, now, now, event)
    return Decision(now if owed is now.owed else now._replace(owed=owed), (), (owed,))


def enter(program: Program, before: Snapshot, now: Snapshot, event: Event) -> Decision:
    """Begin the step the run stands at."""
    step = program.steps[now.step]
    if step.kind == EFFECT:
        return intend(program, before, now, step, event)
    if step.kind == MODEL:
        return _admit(program, before, now, step, event)
    if step.kind == WAIT:
        return _wait(before, now, step, event)
    return _authorize(program, now, step, event) if step.authorizes else _pass(now, program, event)


def give_up(program: Program, now: Snapshot, event: Event, code: str, text: str) -> Decision:
    """The step failed for good: its ``on_error`` path, with all that was frozen for it released."""
    step = program.steps[now.step]
    if step.on_error == FAILED:
        return end(now, event, life.FAILED, code, text)
    after, released = release(now)
    after = after._replace(owed=None, awaits="", deadline_ms=0, call=None, reason=(code, text))
    then = go_on(program, after, step.on_error, event)
    return then._replace(budgets=(*released, *then.budgets))


def _branch(program: Program, now: Snapshot, step: Step, event: Event) -> str:
    context = program.gate.context(facts(now, event))
    for branch in step.next:
        if branch.when is None or branch.when.run(context):
            return branch.to
    raise ConditionError("FSM-013", "no branch holds, and none is without a guard")


def _pass(now: Snapshot, program: Program, event: Event) -> Decision:
    """A pure step that only branches: where it led is sealed."""
    step = program.steps[now.step]
    sealed = draft("result", event, now, {**moved(now, event, now.state), "outcome": "passed"})
    return join(sealed, follow(program, now, step, event))


def _wait(before: Snapshot, now: Snapshot, step: Step, event: Event) -> Decision:
    """Wait for an answer under a key that is derived, until the step's time is out."""
    key = effect_key(now, step.name, "", now.attempt)
    until_ms = event.at_ms + step.timeout_ms
    after = now._replace(state=life.WAITING, awaits=key, deadline_ms=until_ms)
    body = {**moved(before, event, life.WAITING), "step": step.name, "idempotency_key": key}
    sealed = draft("intent", event, after, body | {"outcome": "waiting"})
    return Decision(after, (sealed,))


def _admit(program: Program, before: Snapshot, now: Snapshot, step: Step, event: Event) -> Decision:
    """Ask the model only about what the policy would let anybody do."""
    try:
        outcome = program.gate.admit(facts(now, event))
    except RefusedError as error:
        return give_up(program, now, event, error.code, error.text)
    return _held(event, now, outcome.hold) or intend(program, before, now, step, event)


def _authorize(program: Program, now: Snapshot, step: Step, event: Event) -> Decision:
    """Judge the call once more, at the moment that counts, and seal why it may be done."""
    try:
        allowed = program.gate.permit(_call(now), facts(now, event))
    except RefusedError as error:
        return give_up(program, now, event, error.code, error.text)
    held = _held(event, now, allowed.hold)
    if held is not None:
        return held
    after = now._replace(allowed_by=allowed.rules)
    body = {
        **moved(now, event, now.state),
        "outcome": "authorized",
        "decision": verdict("ACCEPTED", *allowed.rules),
    }
    return join(draft("result", event, after, body), follow(program, after, step, event))


# --- intents -------------------------------------------------------------------------------


def intend(program: Program, before: Snapshot, now: Snapshot, step: Step, event: Event) -> Decision:
    """Seal the intent of an effect, with the authority and the budget it needs, and owe it.

    Where the run still stands at another step, it is moved to this one.
    """
    attempt = now.attempt if now.step == step.name else 1
    tool, slots = step.tool, now.slots
    args: dict[str, Scalar] = {name: slots[s] for name, s in step.args.items() if s in slots}
    if step.call:
        call = _call(now)
        tool, args = call.tool, {**call.args, **args}  # type: ignore[dict-item]
    if tool in program.grants or step.kind == MODEL:
        at = now if now.step == step.name else now._replace(step=step.name, attempt=1, refused=0)
        return _intend_under_authority(program, before, at, step, tool, args, event)
    try:
        counted = program.gate.begin_step(now.begun, event.ledger, now.started_ms, event.at_ms)
    except RefusedError as error:
        at = now._replace(step=step.name, attempt=attempt, refused=0)
        return suspend(at, event, life.EXHAUSTED, error.code, error.text)
    key = effect_key(now, step.name, tool, attempt)
    owed = Effect(step.name, tool, attempt, key, MappingProxyType(args), event.at_ms)
    return _owe(before, now, owed, step, event, counted)


def _intend_under_authority(
    program: Program,
    before: Snapshot,
    now: Snapshot,
    step: Step,
    tool: str,
    args: dict[str, Scalar],
    event: Event,
) -> Decision:
    """The intent of a granted call, or of a question to the model: judged, and paid for."""
    granted = tool in program.grants
    judged = {name: args[name] for name in args if name in program.tools[tool].args}
    known = facts(now, event)
    if granted:
        try:
            program.gate.permit_own(Call(tool, judged), known)
        except RefusedError as error:
            return give_up(program, now, event, error.code, error.text)
    try:
        counted = program.gate.begin_step(now.begun, event.ledger, now.started_ms, event.at_ms)
        need = _need(program, now, step, tool if granted else "", judged)
        taken = program.gate.reserve(need, known)
    except RefusedError as error:
        return suspend(now, event, life.EXHAUSTED, error.code, error.text)
    key = effect_key(now, step.name, tool, now.attempt)
    owed = Effect(step.name, tool, now.attempt, key, MappingProxyType(args), event.at_ms)
    authority: Mapping[str, object] = {}
    if granted:
        owed = _warranted(program, now, owed, event)
        rules = now.allowed_by if step.call else ()  # no rule is asked about the program's own
        authority = _authority(rules, taken, owed, event)
    used = budget.own_use(now.used, taken)
    now = now._replace(reserved=(*now.reserved, *taken), used=used)
    shared = tuple(each for each in taken if not each.account.startswith(OWN))
    return _owe(before, now, owed, step, event, (*counted, *shared), authority)


def _need(
    program: Program, now: Snapshot, step: Step, granted: str, args: Args
) -> Mapping[str, int]:
    """What to freeze; another attempt keeps what the first one froze."""
    if now.reserved:
        return {}
    tokens = {"tokens": step.tokens_max} if step.kind == MODEL else {}
    return {**tokens, **program.gate.need(granted, args)} if granted else tokens


def _owe(
    before: Snapshot,
    now: Snapshot,
    owed: Effect,
    step: Step,
    event: Event,
    budgets: tuple[Reservation, ...],
    authority: Mapping[str, object] = MappingProxyType({}),
) -> Decision:
    """Seal the intent and hand the effect out."""
    deadline_ms = event.at_ms + step.timeout_ms
    refused = now.refused if now.step == owed.step else 0
    after = now._replace(
        step=owed.step,
        attempt=owed.attempt,
        refused=refused,
        owed=owed,
        deadline_ms=deadline_ms,
        begun=now.begun + 1,
    )
    body = {
        "step": owed.step,
        "state": between(before.state, event, after.state),
        "tool": owed.tool,
        "idempotency_key": owed.key,
        "in": owed.args,
        **authority,
    }
    return Decision(after, (draft("intent", event, after, body),), (owed,), budgets)


def _authority(
    rules: tuple[str, ...], taken: tuple[Reservation, ...], owed: Effect, event: Event
) -> Mapping[str, object]:
    """The decision, the reservation and the warrant that a granted call is sealed with."""
    reserved = {each.account: each.reserved for each in taken}
    ledger = event.ledger
    left = {name: ledger[name] - reserved[name] for name in reserved if name in ledger}
    return {
        "decision": verdict("ACCEPTED", *rules),
        "budget": MappingProxyType({"reserved": frozen(reserved), "left": frozen(left)}),
        **issued(owed),
    }


def _warranted(program: Program, now: Snapshot, owed: Effect, event: Event) -> Effect:
    """The effect under a new warrant: for exactly this call, and no longer than the grant."""
    bound = binding(now.run, program.hash, owed)
    ttl_ms = program.limits.warrant_ttl_ms
    expires_ms = program.grants[owed.tool].expires_ms
    if expires_ms:
        ttl_ms = min(ttl_ms, expires_ms - event.at_ms)
    return owed._replace(warrant=mint(bound, at_ms=event.at_ms, ttl_ms=ttl_ms))


def _call(now: Snapshot) -> Call:
    """The judged call; a run that has none is charged for nothing."""
    if now.call is None:
        raise RefusedError("FSM-004", "There is no judged call at this point of the run.")
    return Call(*now.call)


def _held(event: Event, now: Snapshot, rule: PolicyRule | None) -> Decision | None:
    if rule is None:
        return None
    text = f"{rule.why} (rule {rule.id})"
    return suspend(now, event, life.APPROVAL, "POL-020", text, held_by=rule.id)
