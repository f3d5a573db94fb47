"""``skip_step``: the result of a later step is claimed, or its intent is forged."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

from engine.clock import now_ms
from engine.models import Run
from engine.runtime import api
from engine.vault import secret_store
from nanovm_core.core import fsm
from nanovm_core.core.events import EffectDone
from nanovm_core.core.messages import Scalar
from pipeline.application import STEPS
from sabotage.doors import tamper_db
from sabotage.doors.redeliver import deliver
from sabotage.kit.assessment import assess_events
from sabotage.kit.code_locations import place
from sabotage.kit.derived_keys import key_of, tool_of
from sabotage.kit.evidence import Evidence, is_answered
from sabotage.kit.injector import Assessment, Fired, Injector, Target, choice
from sabotage.kit.integrity import intents
from sabotage.kit.waiting import wait_until

NAME = "skip_step"
ACTOR = f"attacker:{NAME}"
FORGED = "ForeignIntent"


def inject(target: Target) -> Fired:
    """Skip a step in the way that was chosen."""
    return WAYS[str(target.values["skip"])](target)


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED: nothing is owed under that key, or no intent was sealed for it."""
    if "forged_key" not in fired.facts:
        return assess_events(found, fired, events={"EffectDone"}, actor=ACTOR)
    acted = any(call.key == fired.facts["forged_key"] for call in found.calls_since)
    queued = fired.facts["door"] == "queue"
    judged = assess_events(found, fired, events={FORGED}, actor="runtime", queued=queued)
    if acted and found.breaches:
        return Assessment(verdict="ACCEPTED", rule="", where="", event=judged.event)
    at = place(fsm._foreign, judged.rule) if judged.verdict == "BLOCKED" else judged.where
    return replace(judged, where=at)


def _claimed(target: Target, name: str, out: Mapping[str, Scalar]) -> Fired:
    key = key_of(target.run_id, name)
    facts = {"claimed": name, **_beside(target, name, key, out)}
    event = EffectDone(key=key, out=out)
    return Fired(decisions=(api.submit(target.run_id, [event], actor=ACTOR),), facts=facts)


def _charge_without_authorize(target: Target) -> Fired:
    """Claim the result of the payment."""
    key = key_of(target.run_id, "charge")
    sealed = secret_store.seal_values(
        target.run_id, target.run.workspace.origin, {"payment": b"pi_forged"}
    )["payment"]
    out: dict[str, Scalar] = {"payment": sealed.ref, "payment_status": "succeeded"}
    facts = {"claimed": "charge", **_beside(target, "charge", key, out)}
    event = EffectDone(key=key, out=out, secrets=(sealed.commitment,))
    decision = api.submit(target.run_id, [event], actor=ACTOR, secrets=[sealed])
    return Fired(decisions=(decision,), facts=facts)


def _forged_intent(target: Target) -> Fired:
    """Make the run's row say that it owes an unauthorised charge, and wake the workers.

    The row has columns for its key and its tool, and none for an amount.
    """
    key = _key_of_a_charge(target)
    beside = _beside(target, "charge", key, {})
    now = now_ms()  # as its time to be due: no pause for spectators is before it
    row = {"owed_key": key, "owed_tool": tool_of("charge"), "owed_ms": now, "due_ms": now}
    tamper_db.change_run(target.run, {**row, "begun_ms": None})
    door = deliver(target.run_id, target.run.program_hash, 1)
    wait_until(lambda: is_answered(target.run, target.before, FORGED))
    return Fired(facts={"forged_key": key, "door": door, **beside})


def _key_of_a_charge(target: Target) -> str:
    """The key of a charge at the first attempt that the run has not made."""
    sealed = {intent.key for intent in intents(target.run)}
    keys = (key_of(target.run_id, "charge", attempt) for attempt in count(1))
    return next(key for key in keys if key not in sealed)


def _beside(target: Target, step: str, key: str, values: Mapping[str, Scalar]) -> dict[str, object]:
    """What was claimed or forged, the step that the run is at, and the one effect that it owes."""
    run = Run.objects.get(id=target.run_id)
    owed = {"step": run.step, "tool": run.owed_tool, "key": run.owed_key}
    return {
        "steps": [*STEPS],
        "at_step": target.before.step,
        "proposed": {"step": step, "tool": tool_of(step), "key": key, "values": dict(values)},
        "granted": owed if run.owed_key else {"owed": "nothing"},
    }


WAYS: Mapping[str, Callable[[Target], Fired]] = {
    "seal without charge": lambda target: _claimed(target, "seal", {"advice": "sent"}),
    "charge without authorize": _charge_without_authorize,
    "forged intent in the outbox": _forged_intent,
    "result of a step": lambda target: _claimed(target, str(target.values["step"]), {}),
}

INJECTOR = Injector(
    name=NAME,
    claim="A step is done only when its own recorded intent is answered. No step can be skipped.",
    wants="Skip the authorization, or the payment itself.",
    stopped_by="The transition table: a result must answer the one pending call.",
    params=(
        choice("skip", "Skip", tuple(WAYS)),
        choice("step", "Step (for its result)", STEPS, "charge"),
    ),
    inject=inject,
    assess=assess,
)
