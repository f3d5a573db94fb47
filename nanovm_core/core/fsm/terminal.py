"""Events after the end of a run: absorbed, or erasure."""

from types import MappingProxyType

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.fsm import moves, results
from nanovm_core.core.messages import Decision, Refusal, Scalar, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import RefusedError

KEPT_BY_LAW = "PII-012"


def absorbed(program: Program, now: Snapshot, event: events.Event, cause: moves.Cause) -> Decision:
    """δ(terminal, anything): no change, no effect; sealed once a kind.

    A worker's own result is a kind of its own: no forged one uses up its place.
    """
    result = event if isinstance(event, events.EffectDone) and cause.context.by_holder else None
    kind = cause.event + ("FromWorker" if result else "")
    if kind in now.ignored:
        return Decision(snapshot=now, absorbed=kind)
    after = now._replace(ignored=tuple(sorted({*now.ignored, kind})))
    decision = moves.verdict("IGNORED", "FSM-003")
    late = _late(program, result) if result else {}
    body = moves.moved(now, cause, now.state, rule="FSM-003", decision=decision, **late)
    return Decision(after, (moves.draft("ignored", cause, after, body),), absorbed=kind)


def _late(program: Program, event: events.EffectDone) -> dict[str, object]:
    """The clear part of a worker's late result.

    Refs are left out: nothing enters the vault of an ended run. So is what no step could fill.
    """
    clear: dict[str, Scalar] = {}
    try:
        for name, value in event.out.items():
            if _is_clear(program, name, value):
                clear[name] = value
        events.require_slots(clear)
    except RefusedError:
        return {}
    return {"out": moves.frozen(clear)}


def _is_clear(program: Program, name: str, value: Scalar) -> bool:
    if name not in program.slots or program.slots[name].type == "ref":
        return False
    try:
        results.check_slot(program, name, value, ())
    except RefusedError:
        return False
    return True


def erasing(
    _: Program,
    now: Snapshot,
    event: events.ErasureRequested | events.ErasureDone | events.ErasureRefused,
    cause: moves.Cause,
) -> Decision:
    """Seal an erasure in an ended run, or its refusal in any; no state changes."""
    asked = {"refs": tuple(sorted(event.refs)), "reason": event.reason}
    body: dict[str, object] = {"in": MappingProxyType(asked)}
    if isinstance(event, events.ErasureRefused):
        kept = {"ground": event.ground, "until_ms": event.until_ms}
        body |= {"rule": KEPT_BY_LAW, "out": MappingProxyType(kept)}
        refusal = Refusal(code=KEPT_BY_LAW, text="A legal retention period still applies.")
        drafts = (moves.draft("erasure_refused", cause, now, body),)
        return Decision(now, drafts, refusal=refusal)
    if now.state not in life.TERMINAL:
        raise RefusedError("FSM-010", "The run has not ended; stop it first.")
    kind = "erasure_requested"
    if isinstance(event, events.ErasureDone):
        kind = "erasure_done"
        gone = {"destroyed": moves.frozen(event.destroyed), "kept": event.kept}
        body["out"] = MappingProxyType(gone)
    return Decision(now, (moves.draft(kind, cause, now, body),))
