"""The verdict on events that an attacker submitted, from the envelopes that bear them."""

from collections.abc import Collection

from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence, SealedEnvelope
from sabotage.kit.injector import Assessment, Fired, InjectionError

TAKEN = frozenset({"result", "resumed"})  # kinds by which an event moves a run on
ATTACKER = "attacker:"
DUE = frozenset({"ProposalReceived"})  # the table has a place for it, whichever model it comes from


def assess_events(
    found: Evidence, fired: Fired, *, events: Collection[str], actor: str, queued: bool = False
) -> Assessment:
    """The verdict on these events of this actor.

    From the envelopes that bear them: what moved the run is ACCEPTED, were it one event of
    many; a refusal is BLOCKED, an absorption IGNORED, damage that was found on the way
    DETECTED. What left no trace is ACCEPTED too: an attack that nobody wrote down was stopped
    by nobody. An attacker's event that moved the run is a breach besides, for the table has
    no place for it; a proposal is none, which may be what the invoice says.

    Raises:
        InjectionError: the attack is ``queued`` and no worker has answered it yet.
    """
    mine = [each for each in found.sealed if each.event in events and each.actor == actor]
    if fired.proposal_ref:
        mine = [each for each in mine if fired.proposal_ref in each.refs] or mine
    for verdict, kinds in (("ACCEPTED", TAKEN), ("BLOCKED", {"refused"}), ("IGNORED", {"ignored"})):
        for each in mine:
            if each.kind in kinds:
                return _assessment(verdict, each.rule, each, fired)
    if found.absorbed(*events):
        rule = "FSM-003" if found.after.ended else "FSM-011"
        return _assessment("IGNORED", rule, None, fired)
    damage = next((each for each in found.sealed if each.kind == "integrity"), None)
    if damage is not None:
        return _assessment("DETECTED", damage.rule, damage, fired)
    if queued:
        raise InjectionError(
            "No worker answered the attack in time. Check the worker and fire again."
        )
    return _assessment("ACCEPTED", "", None, fired)


def _assessment(
    verdict: str, rule: str, told_by: SealedEnvelope | None, fired: Fired
) -> Assessment:
    return Assessment(
        verdict=verdict,
        rule=rule,
        where=where(rule, *fired.decisions),
        event=told_by.number if told_by is not None else None,
        breaches=_off_the_table(told_by) if verdict == "ACCEPTED" and told_by is not None else (),
    )


def _off_the_table(taken: SealedEnvelope) -> tuple[str, ...]:
    if taken.event in DUE or not taken.actor.startswith(ATTACKER):
        return ()
    return (f"{taken.event} was taken from an attacker: no transition of the run allows it.",)
