"""Fires an injector at a run, once per key, and computes the verdict from evidence."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from engine.clock import now_ms
from engine.entropy import uuid4
from engine.models import Run
from engine.runtime.api import MODEL
from engine.signals import announce
from engine.vault import secret_store
from nanovm_core.core.lifecycle import ACTIVE
from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from sabotage.kit.assessment import DUE, assess_events
from sabotage.kit.evidence import RunState, as_facts, gather, observe, sealed_since
from sabotage.kit.injector import Fired, InjectionError, Injector, Target, Value
from sabotage.kit.waiting import wait_until
from sabotage.models import Attack

VERDICT_MS_MAX = 10_000  # how long a repeat waits for the verdict of the first
KEY = "model {}"  # of a model's answer, by the run's id
PROPOSES = "tool_injection"  # the injector whose attack a model's own answer is
LASTING = ("after", "payments", "far_side", "breaches", "length_after", "head_after")


def fire(
    run_id: str,
    name: str,
    params: Mapping[str, str],
    idempotency_key: str,
    owner: UUID | None = None,
) -> Attack:
    """Fire an injector at a run and assess the outcome.

    The same key in the same workspace returns the same attack and does nothing. An empty
    key counts as one that was never used. ``owner`` is the workspace that the attack is kept
    in, where that is not its run's.

    Raises:
        InjectionError: the attack cannot be made so; nothing was done, the key stays free.
    """
    injector = _injector(name)
    values = injector.read(params)
    run = Run.objects.get(id=run_id)
    attack, new = _claimed(
        run, injector, idempotency_key or str(uuid4()), owner or run.workspace_id
    )
    if not new:
        verdict = Attack.objects.filter(id=attack.id).values_list("verdict", flat=True)
        wait_until(lambda: verdict.first() != "", VERDICT_MS_MAX)
        attack.refresh_from_db()
        return attack
    try:
        fired = _carried_out(attack, injector, values)
    except BaseException:
        attack.delete()
        raise
    announce(attack.run)  # judged and stored: the verdict waits for no comparison
    return _compared(attack, values, fired)


def judge_answer(run_id: str, refused: int) -> Attack | None:
    """A run's own model's refused answer as the attack that it is, judged once; or None.

    ``refused`` is the place of the refusal.

    Raises:
        VerificationError: the stored answer was changed.
    """
    key = KEY.format(run_id)
    attack = Attack.objects.filter(run_id=run_id, idempotency_key=key).first()
    if attack or (run := Run.objects.get(id=run_id)).erased_ms:
        return attack
    refs = sealed_since(run, refused)[0].refs  # of a damaged record they may be no secrets of it
    ref = run.secrets.filter(ref__in=refs).values_list("ref", flat=True).first()
    if ref is None:
        return None
    values: dict[str, Value] = {"proposal": secret_store.text(ref), "by": "compromised"}
    injector = replace(INJECTORS[PROPOSES], assess=partial(assess_events, events=DUE, actor=MODEL))
    attack, new = _claimed(run, injector, key, run.workspace_id)
    if new:
        fired = Fired(facts={"by": run.model}, proposal_ref=ref)
        before = replace(observe(run_id), state=ACTIVE, length=refused, absorbed={}, calls=())
        _assess(attack, injector, fired, before)
        attack.params, attack.proposal_ref = {**values, "proposal": ref}, ref
        attack.created_ms = run.ended_ms or now_ms()
        attack.save()
        _compared(attack, values, fired)
    return attack


def _compared(attack: Attack, values: Mapping[str, Value], fired: Fired) -> Attack:
    from sabotage import run_baseline  # with Stripe's SDK: only where something is fired

    attack.control = run_baseline.run_baseline(attack, values, fired.facts)
    attack.save(update_fields=["control"])
    announce(attack.run)  # for those who saw the verdict without it
    return attack


def look_again(attack: Attack) -> Attack:
    """Gather an attack's lasting evidence once more, after the run went on.

    The verdict stays what the runtime answered; what got out, and so the integrity, is
    computed anew.
    """
    run_id = str(attack.run_id)
    found = gather(run_id, observe(run_id))
    breached = dict.fromkeys((*attack.evidence.get("breaches", ()), *found.breaches))
    fresh = {**as_facts(found), "breaches": list(breached)}  # what got out once stays said
    attack.evidence = {**attack.evidence, **{name: fresh[name] for name in LASTING}}
    own = attack.evidence.get("seen_by_the_attack")
    attack.integrity = "BREACHED" if breached or own else "HELD"
    attack.state_after = found.after.state
    attack.save(update_fields=["evidence", "integrity", "state_after"])
    return attack


def _injector(name: str) -> Injector:
    if name in INJECTORS:
        return INJECTORS[name]
    if name in SCENARIOS:
        return SCENARIOS[name].injector
    raise InjectionError(f"There is no injector {name!r}; there are {', '.join(INJECTORS)}.")


def _claimed(run: Run, injector: Injector, key: str, owner: UUID) -> tuple[Attack, bool]:
    """The attack of this key: ours to carry out where it is new."""
    return Attack.objects.get_or_create(
        workspace_id=owner,
        idempotency_key=key,
        defaults={
            "id": uuid4(),
            "run": run,
            "injector": injector.name,
            "state_before": run.state,
            "created_ms": now_ms(),
        },
    )


def _carried_out(attack: Attack, injector: Injector, values: Mapping[str, Value]) -> Fired:
    run_id = str(attack.run_id)
    before = observe(run_id)
    target = Target(
        run=Run.objects.get(id=run_id),
        actor=f"attacker:{injector.name}",
        values=values,
        before=before,
    )
    fired = injector.inject(target)
    _assess(attack, injector, fired, before)
    texts = {param.name for param in injector.params if param.kind == "text"}
    kept = {**values, **dict.fromkeys(texts, fired.proposal_ref)}  # the ref, if the vault kept it
    attack.params = {
        param.name: kept[param.name] for param in injector.params if kept[param.name] != ""
    }
    attack.proposal_ref = fired.proposal_ref
    attack.created_ms = now_ms()
    attack.save()
    return fired


def _assess(attack: Attack, injector: Injector, fired: Fired, before: RunState) -> None:
    found = gather(str(attack.run_id), before)
    judgement = injector.assess(found, fired)
    attack.state_before, attack.state_after = before.state, found.after.state
    attack.verdict, attack.rule, attack.where = judgement.verdict, judgement.rule, judgement.where
    attack.integrity = "BREACHED" if found.breaches or judgement.breaches else "HELD"
    attack.evidence = {**as_facts(found), **fired.facts, **judgement.facts}
    if judgement.breaches:
        attack.evidence["seen_by_the_attack"] = list(judgement.breaches)
    if judgement.event is not None:
        attack.evidence["event"] = judgement.event
    if fired.proposal_ref:
        attack.evidence["proposal"] = fired.proposal_ref
