"""``double_exec``: redelivers the run's own messages, at once and late, and starts it twice."""

from collections import Counter
from typing import Any

from engine.models import AdapterCall, Run
from engine.runtime import api
from nanovm_core.core import lifecycle as life
from nanovm_core.core.messages import Decision
from sabotage.doors.redeliver import deliver
from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence, RunState, observe, sealed_since
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Param, Target
from sabotage.kit.integrity import record
from sabotage.kit.waiting import wait_until

NAME = "double_exec"
PAYING = frozenset({"charge", "seal"})  # the payment is to be made, or was
DELIVERY = "DeliveryReceived"
ANSWERED = frozenset({"ignored", "refused"})
SETTLED_MS_MAX = 30_000  # workers that answer at all may be slow


def inject(target: Target) -> Fired:
    """Start again, resume twice, redeliver; then wait until each delivery is accounted for."""
    times = int(target.values["redeliveries"])
    stake = _at_stake(target)
    decisions = _commanded(target)
    door = deliver(target.run_id, target.run.program_hash, times)
    if wait_until(lambda: _heard(target)):
        wait_until(lambda: _settled(target, times), SETTLED_MS_MAX)
    answered = _answered(target.run, target.before)
    if not _heard(target):
        raise InjectionError("No worker took a message in time. Check the worker and fire again.")
    drove = min(1, max(0, times - sum(answered.values()))) if _calls_grew(target) else 0
    refusals = [each.refusal.code if each.refusal else "" for each in decisions]
    return Fired(
        decisions=decisions,
        facts={
            "redeliveries": times,
            "at_step": target.before.step,
            "at_stake": stake,
            "door": door,
            **answered,
            "drove_the_run": drove,
            "unaccounted": max(0, times - sum(answered.values()) - drove),
            "commands_again": len(decisions),
            "commands_refused_by": sorted({code for code in refusals if code}),
            "commands_taken": sum(_taken(each) for each in decisions),
        },
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """IGNORED by the lease, by absorption or for want of anything owed; else it got through."""
    damage = next((each for each in found.sealed if each.kind == "integrity"), None)
    repeated = _repeated(found)
    facts = {
        "envelopes_grown": found.after.length - found.before.length,
        "effects_done_twice": repeated,
    }
    through = repeated or fired.facts["commands_taken"] or len(found.stripe.succeeded) > 1
    if through:
        return Assessment(verdict="ACCEPTED", rule="", where="", facts=facts)
    if damage is not None:
        rule = damage.rule
        return Assessment(
            verdict="DETECTED", rule=rule, where=where(rule), event=damage.number, facts=facts
        )
    rule = _rule(fired, found.after)
    late = next((e for e in found.sealed if e.event == DELIVERY and e.kind in ANSWERED), None)
    return Assessment(
        verdict="IGNORED",
        rule=rule,
        where=where(rule),
        event=late.number if late is not None else None,
        facts=facts,
    )


def _commanded(target: Target) -> tuple[Decision, ...]:
    """Start it again and resume it twice, wherever that is no ordinary command."""
    made: list[Decision] = []
    commands = (("RunStarted", api.start), *[("ResumeRequested", api.resume)] * 2)
    for event, command in commands:
        state = Run.objects.values_list("state", flat=True).get(id=target.run.id)
        if (state, event) not in life.TABLE:
            made.append(command(target.run_id, target.actor))
    return tuple(made)


def _at_stake(target: Target) -> dict[str, object]:
    """The payment that a duplicate could repeat; empty before there is one to make."""
    said = record(target.run)
    sums = [(each.currency, each.amount_minor) for each in said.intents if each.amount_minor]
    if not sums and said.invoice and target.before.step in PAYING and not target.before.ended:
        sums = [said.invoice]
    return {"currency": sums[-1][0], "amount_minor": sums[-1][1]} if sums else {}


def _heard(target: Target) -> bool:
    """Whether workers take messages: a delivery was answered, or the run went on."""
    return bool(sum(_answered(target.run, target.before).values())) or _calls_grew(target)


def _settled(target: Target, times: int) -> bool:
    """Every delivery is answered; where the run was free, one of them may be driving it."""
    missing = times - sum(_answered(target.run, target.before).values())
    free = not target.before.holder
    return missing <= 0 or (missing == 1 and free and _calls_grew(target))


def _answered(run: Run, before: RunState) -> dict[str, int]:
    """How the deliveries since were answered: by the lease, late, or with nothing owed."""
    after = observe(str(run.id))
    sealed = [each for each in sealed_since(run, before.length) if each.event == DELIVERY]
    counted = after.absorbed.get(DELIVERY, 0) - before.absorbed.get(DELIVERY, 0)
    received = counted + sum(each.kind in ANSWERED for each in sealed)
    late = received if after.ended else 0
    return {
        "absorbed_by_lease": after.lease_absorbed - before.lease_absorbed,
        "absorbed_after_the_end": late,
        "nothing_was_owed": received - late,
    }


def _calls_grew(target: Target) -> bool:
    return AdapterCall.objects.filter(run=target.run).count() > len(target.before.calls)


def _repeated(found: Evidence) -> int:
    """Effects that were acted on twice since; a try that found the outside silent is no act."""
    rows = AdapterCall.objects.filter(run=found.run).exclude(
        outcome__in=("TransientError", "NotSentError")
    )
    acts = Counter(rows.values_list("key", flat=True))
    return sum(acts[key] > 1 for key in {call.key for call in found.calls_since})


def _taken(decision: Decision) -> bool:
    """Whether a command moved the run from where no such command leads anywhere.

    A worker may bring the run to where it is an ordinary one, between our look and our word.
    """
    if decision.refusal is not None or decision.absorbed or not decision.drafts:
        return False
    state: Any = decision.drafts[0].body["state"]
    return (state["from"], state["event"]) not in life.TABLE


def _rule(fired: Fired, after: RunState) -> str:
    if fired.facts["absorbed_by_lease"]:
        return "FSM-008"
    return "FSM-003" if after.ended else "FSM-011"


INJECTOR = Injector(
    name=NAME,
    claim="An effect happens once, no matter how many duplicate messages arrive.",
    wants="Make the same invoice be paid twice.",
    stopped_by="Concurrent copies lose the lease; late copies are ignored.",
    params=(
        Param(name="redeliveries", label="Redeliveries", kind="int", default=50, low=1, high=500),
    ),
    inject=inject,
    assess=assess,
)
