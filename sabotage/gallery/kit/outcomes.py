"""What the gallery reads of several runs at once: what stopped them and what they paid."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.models import AdapterCall, Run
from pipeline.reports import decision
from sabotage.gallery.kit.fixture import reloaded
from sabotage.kit.evidence import Evidence, SealedEnvelope, sealed_since
from sabotage.kit.injector import Assessment, Fired
from sabotage.kit.integrity import breaches, intents
from sabotage.kit.stripe_view import StripeView, stripe_view


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The state of one of several runs, with Stripe's records of it."""

    run: Run
    sealed: tuple[SealedEnvelope, ...]
    stripe: StripeView

    @property
    def stopped_by(self) -> SealedEnvelope | None:
        """The first envelope that names a rule: what stopped the run, if anything did."""
        return next((each for each in self.sealed if each.rule), None)

    @property
    def paid_minor(self) -> int:
        return sum(each.amount_minor for each in self.stripe.succeeded)

    @property
    def calls(self) -> tuple[AdapterCall, ...]:
        """The adapters' own records of it."""
        return tuple(AdapterCall.objects.filter(run=self.run).order_by("number"))

    @property
    def unsealed(self) -> int:
        """How many of its calls no intent of its own was sealed for."""
        borne = {intent.key for intent in intents(self.run)}
        return sum(call.key not in borne for call in self.calls)

    def as_facts(self) -> dict[str, object]:
        """The run in a line of evidence."""
        stopped = self.stopped_by
        return {
            "run": self.run.code,
            "end": decision(self.run),
            "rule": stopped.rule if stopped else "",
            "event": stopped.number if stopped else None,
            "hash": stopped.hash if stopped else "",
            "payments": self.stripe.in_words(),
        }


def outcome_of(run: Run) -> RunOutcome:
    """Look at a run of the attack's own."""
    run = reloaded(run)
    return RunOutcome(run=run, sealed=sealed_since(run, 0), stripe=stripe_view(run))


def outcomes_of(found: Evidence, fired: Fired) -> list[RunOutcome]:
    """The run that was fired at, and the other runs that the attack made."""
    listed = fired.facts["other_runs"]
    ids = listed if isinstance(listed, list) else []
    return [outcome_of(found.run), *(outcome_of(Run.objects.get(id=each)) for each in ids)]


def assess_refusal(
    fired: Fired, facts: Mapping[str, object] | None = None, breaches: tuple[str, ...] = ()
) -> Assessment:
    """BLOCKED where the call that was tried was refused, by the rule and line that refused it."""
    rule = str(fired.facts["refused_by"])
    return Assessment(
        verdict="BLOCKED" if rule else "ACCEPTED",
        rule=rule,
        where=str(fired.facts["decided_in"]),
        facts=facts or {},
        breaches=breaches,
    )


def breaches_of(others: Iterable[RunOutcome]) -> tuple[str, ...]:
    """What got out of runs besides the one that was fired at, a sentence each."""
    return tuple(text for each in others for text in breaches(each.run, each.stripe))


def combined(runs: Sequence[RunOutcome]) -> dict[str, object]:
    """The calls and the payments of all these runs, in the form of one run's evidence."""
    return {
        "calls": sum(each.unsealed for each in runs),
        "calls_since": dict(Counter(call.tool for each in runs for call in each.calls)),
        "paid": [line for each in runs for line in paid(each.run.code, each.stripe)],
    }


def paid(code: str, stripe: StripeView) -> list[dict[str, object]]:
    """Every payment of a run at Stripe, as evidence keeps them."""
    return [
        {"run": code, "amount_minor": each.amount_minor, "currency": each.currency}
        for each in stripe.succeeded
    ]


def first_stop(runs: Sequence[RunOutcome]) -> SealedEnvelope | None:
    """What stopped the first of these runs that was stopped."""
    return next((each.stopped_by for each in runs if each.stopped_by), None)
