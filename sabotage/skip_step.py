"""``skip_step``: the result of a later step is claimed, or its intent is forged."""

from collections.abc import Callable, Mapping

from nanovm_core import fsm
from nanovm_core.canonical import encode
from nanovm_core.events import EffectDone
from nanovm_core.fsm.flow import effect_key
from nanovm_core.messages import RunId, Snapshot
from pipeline import programs, runtime, vaultstore
from pipeline.models import Outbox
from pipeline.world import now_ms, random_bytes
from sabotage import raw
from sabotage.deciders import place
from sabotage.deliveries import delivering
from sabotage.evidence import Found, sealed_since, see
from sabotage.judging import answer
from sabotage.shape import Fired, Injector, Judgement, Param, Target
from sabotage.waiting import wait_until

NAME = "skip_step"
ACTOR = f"attacker:{NAME}"
FORGED = "ForeignIntent"
FORGED_MINOR = 5_000_000  # what the forged intent would pay
WARRANT_LIFE_MS = 900_000


def inject(target: Target) -> Fired:
    """Skip a step in the way that was chosen."""
    return WAYS[str(target.values["skip"])](target)


def judge(found: Found, fired: Fired) -> Judgement:
    """BLOCKED: nothing is owed under that key, or no intent was sealed for it."""
    if "forged_key" not in fired.facts:
        return answer(found, fired, events={"EffectDone"}, actor=ACTOR)
    acted = any(call.key == fired.facts["forged_key"] for call in found.calls_since)
    queued = fired.facts["door"] == "queue"
    judged = answer(found, fired, events={FORGED}, actor="runtime", queued=queued)
    if acted and found.breaches:
        return Judgement(verdict="ACCEPTED", rule="", where="", event=judged.event)
    at = place(fsm._foreign, judged.rule) if judged.verdict == "BLOCKED" else judged.where
    return Judgement(verdict=judged.verdict, rule=judged.rule, where=at, event=judged.event)


def _seal_without_charge(target: Target) -> Fired:
    """Say that the last step is done."""
    seal = programs.current().steps["seal"]
    key = _key(target, seal.name, seal.tool)
    event = EffectDone(at_ms=now_ms(), actor=ACTOR, key=key, out={"advice": "sent"})
    return Fired(decisions=(runtime.submit(target.run_id, [event]),), facts={"claimed": seal.name})


def _charge_without_authorize(target: Target) -> Fired:
    """Say that the payment was made."""
    key = _key(target, "charge", _charge_tool())
    sealed = vaultstore.seal_values(
        target.run_id, target.run.workspace.origin, {"payment": b"pi_forged"}
    )["payment"]
    event = EffectDone(
        at_ms=now_ms(),
        actor=ACTOR,
        key=key,
        out={"payment": sealed.ref, "payment_status": "succeeded"},
        secrets=(sealed.commitment,),
    )
    decision = runtime.submit(target.run_id, [event], secrets=[sealed])
    return Fired(decisions=(decision,), facts={"claimed": "charge"})


def _forged_intent(target: Target) -> Fired:
    """Put an unauthorised charge into the outbox, and have the workers look there."""
    row = _forged_row(target)
    raw.add_to_outbox(row)
    with delivering(target.run_id, target.run.program_hash, 1) as door:
        pass
    wait_until(lambda: _noticed(target))
    facts = {"forged_key": row.key, "forged_amount_minor": FORGED_MINOR, "door": door}
    return Fired(facts=facts)


def _forged_row(target: Target) -> Outbox:
    """A charge at the first attempt that the run has not made."""
    taken = Outbox.objects.filter(run=target.run, step="charge").values_list("attempt", flat=True)
    attempt = max(taken, default=0) + 1
    args = {"amount_minor": FORGED_MINOR, "currency": "USD", "payment_method": "pm_card_visa"}
    return Outbox(
        key=_key(target, "charge", _charge_tool(), attempt),
        run=target.run,
        step="charge",
        tool=_charge_tool(),
        attempt=attempt,
        args=encode(args),
        warrant_id=random_bytes(32).hex(),
        warrant_expires_ms=now_ms() + WARRANT_LIFE_MS,
        intent_ms=now_ms(),
    )


def _noticed(target: Target) -> bool:
    sealed = sealed_since(target.run, target.before.length)
    counted = see(target.run_id).absorbed.get(FORGED, 0)
    return any(each.event == FORGED for each in sealed) or counted > target.before.absorbed.get(
        FORGED, 0
    )


def _key(target: Target, step: str, tool: str, attempt: int = 1) -> str:
    """The key that the step would have; it is derived, so anybody can know it."""
    now = Snapshot(run=RunId(target.run_id), program="", policy="", state="", step=step)
    return effect_key(now, step, tool, attempt)


def _charge_tool() -> str:
    steps = programs.current().steps.values()
    return next(step.accepts[0] for step in steps if step.accepts)


WAYS: Mapping[str, Callable[[Target], Fired]] = {
    "seal without charge": _seal_without_charge,
    "charge without authorize": _charge_without_authorize,
    "forged intent in the outbox": _forged_intent,
}

INJECTOR = Injector(
    name=NAME,
    claim="A step is done when its own sealed intent was answered; none can be skipped.",
    wants="Jump over the authorization, or over the payment itself.",
    stopped_by="The transition table: a result is taken for the one intent that is owed.",
    params=(
        Param(
            name="skip",
            label="Skip",
            kind="choice",
            default="seal without charge",
            choices=tuple(WAYS),
        ),
    ),
    inject=inject,
    judge=judge,
)
