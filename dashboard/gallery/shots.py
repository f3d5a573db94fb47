"""The gallery as its pages show it: every exhibit with the visitor's last shot, and every shot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from dashboard.verdicts import ablation, narration
from dashboard.verdicts.verdict_card import rule_of
from pipeline.steps.reasons import Rule
from sabotage.ablation.guards import decided_in
from sabotage.gallery import SCENARIOS as SCENARIOS
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.injector import InjectionError as InjectionError
from sabotage.models import Attack

# What every attack's evidence has; the card shows it elsewhere, or the run's own page does.
COMMON = frozenset(
    [
        *("before", "after", "breaches", "calls", "calls_since", "event", "far_side", "head_after"),
        *("head_before", "length_after", "length_before", "paid", "payments", "proposal"),
        *("sealed_since", "seen_by_the_attack"),
    ]
)
NOTHING_CHANGED = "It changed nothing"  # where no rule had to refuse it
# What the attacks with runs of their own tell of each of them.
EACH_RUN = ("agents_ended", "runs_ended")
TAKES = {  # by attack; the others make a few runs
    **dict.fromkeys(("restored_snapshot", "error_storm"), "about ten seconds"),
    "crash_loop": "about twenty seconds, one at a time",
    "rogue_mcp_client": "about ten seconds, one at a time",
    "moonlight_payment": "about twenty seconds",
}
GOALS = {  # what an attacker wants, and the attacks that try it
    "Pay wrongly": (
        *("split_limit", "drained_budget", "forged_warrant", "poisoned_invoice", "hidden_text"),
        *("changed_bank_details", "bribed_advisor"),
    ),
    "Pay twice": ("same_invoice_again", "crash_loop"),
    "Hide it": ("edited_ledger", "restored_snapshot", "moonlight_payment"),
    "Read erased data": ("resurrected_pii",),
    "Take over an agent": (
        *("confused_deputy", "widened_grant", "colluding_agents", "error_storm"),
        "rogue_mcp_client",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What came of a shot, in the fields of a card.

    ``run`` is empty where the shot's runs lie in a workspace of their own: this says all of
    them that its visitor is told.
    """

    name: str
    verdict: str
    rule: Rule
    where: tuple[str, ...]
    integrity: str
    breaches: tuple[str, ...]
    calls: int
    payments: str
    evidence: Mapping[str, Any]
    params: Mapping[str, Any]
    run: str  # its code, where the run lies in the visitor's own workspace; else empty
    fired_at: str  # the run's code, wherever it lies
    id: str
    created_ms: int
    control: Mapping[str, Any]  # what the ordinary agent did
    careful: Mapping[str, Any]  # what the careful agent did
    beside: ablation.CopyCard | None  # what it did to a copy without its guard

    @property
    def url(self) -> str:
        return url_of(self.name, self.id)

    @property
    def wants(self) -> str:
        return SCENARIOS[self.name].injector.wants

    @property
    def found(self) -> Mapping[str, Any]:
        """What this attack alone looks for."""
        return {name: value for name, value in self.evidence.items() if name not in COMMON}

    @property
    def runs(self) -> Sequence[Mapping[str, Any]]:
        """How each of its runs ended, where it made several."""
        return next((self.evidence[name] for name in EACH_RUN if name in self.evidence), ())

    @property
    def paid(self) -> Sequence[Mapping[str, Any]]:
        """Each payment that the far side lists."""
        return ablation.paid(self.evidence)

    @property
    def event(self) -> int | None:
        """The number of the envelope that records the answer, in the run that was fired at."""
        number = self.evidence.get("event")
        return number if isinstance(number, int) else None

    @property
    def breached(self) -> bool:
        return self.integrity == "BREACHED"

    @property
    def headline(self) -> str:
        """What came of it in a sentence; a breach is never told as a refusal."""
        if self.breached:
            return "It got through."
        if self.verdict == "ACCEPTED":
            return "No check stopped it, and no unauthorized call was made."
        return f"{self.rule.title or NOTHING_CHANGED}."


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryItem:
    """One exhibit on the page."""

    exhibit: Scenario
    fired: int
    last: Shown | None

    @property
    def takes(self) -> str:
        return TAKES.get(self.exhibit.name, "a few seconds")


def pieces(workspace: UUID | None) -> tuple[GalleryItem, ...]:
    """Every exhibit, with the last shot of this workspace at it."""
    counts = dict(_judged(workspace).order_by().values_list("injector").annotate(Count("pk")))
    return tuple(
        GalleryItem(
            exhibit=exhibit,
            fired=counts.get(name, 0),
            last=_last(workspace, name) if name in counts else None,
        )
        for name, exhibit in SCENARIOS.items()
    )


def by_goal(shown: Sequence[GalleryItem]) -> Mapping[str, Sequence[GalleryItem]]:
    """The exhibits of the page, grouped by what an attacker wants."""
    named = {each.exhibit.name: each for each in shown}
    return {goal: [named[name] for name in names] for goal, names in GOALS.items()}


def find(workspace: UUID | None, name: str, attack_id: UUID) -> Attack | None:
    """A judged shot at this exhibit, if this workspace fired it."""
    return _judged(workspace).filter(injector=name, pk=attack_id).select_related("run").first()


def url_of(name: str, attack_id: UUID | str) -> str:
    """The page of a shot, for as long as it is kept."""
    return f"/attack/gallery/{name}/{attack_id}/"


def _judged(workspace: UUID | None) -> "QuerySet[Attack]":
    """The shots of a workspace, and of those that a restore closed and that it goes on for."""
    if workspace is None:
        return Attack.objects.none()
    mine = Q(workspace=workspace) | Q(workspace__successor=workspace)
    return Attack.objects.filter(mine, injector__in=SCENARIOS).exclude(verdict="")


def _last(workspace: UUID | None, name: str) -> Shown | None:
    rows = _judged(workspace).filter(injector=name).select_related("run")
    row = rows.order_by("-created_ms").first()
    return shown_of(row) if row else None


def shown_of(row: Attack) -> Shown:
    """A judged shot, in the fields of its card."""
    evidence: Mapping[str, Any] = row.evidence
    breaches = (*evidence.get("breaches", ()), *evidence.get("seen_by_the_attack", ()))
    return Shown(
        name=row.injector,
        verdict=row.verdict,
        rule=rule_of(row.rule),
        where=decided_in(row.injector, row.params, row.rule, row.where),
        integrity=row.integrity,
        breaches=tuple(str(each) for each in breaches),
        calls=evidence.get("calls", 0),
        payments=narration.payments(evidence),
        evidence=evidence,
        params=row.params,
        run=row.run.code if row.run.workspace_id == row.workspace_id else "",
        fired_at=row.run.code,
        id=str(row.pk),
        created_ms=row.created_ms,
        control=row.ordinary,
        careful=row.careful,
        beside=ablation.copy_card_of(row.injector, row.params, row.unguarded),
    )
