"""``forged_warrant``: an adapter is shown a warrant that the runtime did not sign for this call."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.clock import now_ms
from engine.entropy import random_bytes
from engine.models import Run, Workspace
from engine.work import Work
from nanovm_core.core import warrants
from nanovm_core.core.messages import Effect
from sabotage.gallery.kit import fixture, hostile_worker, invoices
from sabotage.gallery.kit.outcomes import assess_refusal
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit import assessment
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, Injector, Target, Value, choice

NAME = "forged_warrant"
FORGED_MINOR = 5_000_000
LIFE_MS = 900_000
AGAIN = "the genuine one, shown again at the end"


def first(workspace: Workspace, _values: Mapping[str, Value]) -> Run:
    """An ordinary run, stepped."""
    return hostile_worker.paced(fixture.fresh(workspace, invoices.plain_invoice(), stepping=True))


def inject(target: Target) -> Fired:
    """Show the adapter a warrant, then leave the run to honest workers."""
    how = str(target.values["how"])
    work = hostile_worker.take_charge(target.run)
    if how == AGAIN:
        hostile_worker.finish(target.run)
        tried = hostile_worker.call_adapter(replace(work, begun_before=True))
        hostile_worker.submit_answer(target, tried)
    else:
        tried = hostile_worker.call_adapter(FORGERIES[how](work))
        hostile_worker.finish(target.run)
    return Fired(
        facts={
            "how": how,
            "refused_by": tried.rule,
            "decided_in": tried.where,
            "asked_minor": work.effect.args["amount_minor"] if how == AGAIN else FORGED_MINOR,
        }
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED by the adapter; IGNORED where the same call again was the same payment."""
    if fired.facts["how"] == AGAIN and not fired.facts["refused_by"]:
        return assessment.assess_events(
            found, fired, events={"EffectDone"}, actor=f"attacker:{NAME}"
        )
    return assess_refusal(fired)


def _own_key(work: Work) -> Work:
    """A warrant for another amount, signed with a key of the attacker's."""
    effect = _other(work.effect)
    bound = warrants.binding(str(work.run.id), work.program.hash, effect)
    warrant = warrants.mint(bound, at_ms=now_ms(), ttl_ms=LIFE_MS)
    key = Ed25519PrivateKey.from_private_bytes(random_bytes(32))
    return replace(work, effect=effect, token=warrants.sign(warrant, bound, key))


def _edited(work: Work) -> Work:
    """The genuine warrant, its amount overwritten in the signed bytes."""
    amount = str(work.effect.args["amount_minor"]).encode()
    token = work.token.replace(amount, str(FORGED_MINOR).encode())
    return replace(work, effect=_other(work.effect), token=token)


def _other(effect: Effect) -> Effect:
    return effect._replace(args={**effect.args, "amount_minor": FORGED_MINOR})


FORGERIES: Mapping[str, Callable[[Work], Work]] = {
    "signed with the attacker's own key": _own_key,
    "the genuine one, for another amount": lambda w: replace(w, effect=_other(w.effect)),
    "the genuine one, its amount overwritten": _edited,
}

SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="An allowed tool runs only with a warrant that was signed for exactly this call.",
        wants="Make the adapter pay 50,000.00 with a forged or stolen warrant.",
        stopped_by="The adapter: it checks signature, call and time of every warrant.",
        params=(choice("how", "The warrant", (*FORGERIES, AGAIN)),),
        inject=inject,
        assess=assess,
    ),
    make_run=first,
)
