"""The gallery as its page shows it: every exhibit with the visitor's last shot at it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count

from dashboard.verdicts import rule_of
from nanovm_core.rules import Rule
from pipeline.extract.currencies import decimal_text
from pipeline.models import Workspace
from sabotage.gallery import EXHIBITS
from sabotage.gallery.exhibit import Exhibit
from sabotage.models import Attack
from sabotage.shape import InjectionError
from sabotage.showing import show

__all__ = ["EXHIBITS", "InjectionError", "Piece", "Shown", "pieces", "show_to"]

# What every attack's evidence has; the card shows it elsewhere, or the run's own page does.
COMMON = frozenset(
    {
        "before",
        "after",
        "breaches",
        "calls",
        "calls_since",
        "event",
        "far_side",
        "head_after",
        "head_before",
        "length_after",
        "length_before",
        "paid",
        "payments",
        "proposal",
        "sealed_since",
        "seen_by_the_attack",
    }
)
SLOW = frozenset({"restored_snapshot"})  # five commands, each a process of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What came of a shot, in the fields of a card."""

    verdict: str
    headline: str
    rule: Rule
    where: str
    integrity: str
    breaches: tuple[str, ...]
    calls: int
    payments: str
    found: Mapping[str, Any]  # what this attack alone looks for
    params: Mapping[str, Any]
    run: str  # its code, where the run lies in the visitor's own workspace; else empty
    id: str
    created_ms: int
    control: Mapping[str, Any]  # what the naive loop did

    @property
    def breached(self) -> bool:
        return self.integrity == "BREACHED"

    @property
    def outcome(self) -> str:
        """What came of it in a sentence; a breach is never told as a refusal."""
        if self.breached:
            return "It got through."
        if self.verdict == "ACCEPTED":
            return "Nothing stopped it, and nothing was found to have got out."
        return f"{self.rule.title}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One exhibit on the page."""

    exhibit: Exhibit
    fired: int
    last: Shown | None

    @property
    def slow(self) -> bool:
        return self.exhibit.name in SLOW


def pieces(workspace: UUID | None) -> tuple[Piece, ...]:
    """Every exhibit, with the last shot of this workspace at it."""
    shots = Attack.objects.filter(workspace=workspace, injector__in=EXHIBITS).exclude(verdict="")
    counts = dict(shots.order_by().values_list("injector").annotate(Count("pk")))
    return tuple(
        Piece(
            exhibit=exhibit,
            fired=counts.get(name, 0),
            last=_last(workspace, name) if name in counts else None,
        )
        for name, exhibit in EXHIBITS.items()
    )


def show_to(owner: Workspace, name: str, params: Mapping[str, str], key: str) -> None:
    """Fire an exhibit for a visitor, once for this key.

    Raises:
        InjectionError: the attack cannot be made so.
    """
    show(owner, name, params, key)


def _last(workspace: UUID | None, name: str) -> Shown | None:
    rows = Attack.objects.filter(workspace=workspace, injector=name).exclude(verdict="")
    row = rows.select_related("run").order_by("-created_ms").first()
    return _shown(row) if row is not None else None


def _shown(row: Attack) -> Shown:
    evidence: Mapping[str, Any] = row.evidence
    breaches = (*evidence.get("breaches", ()), *evidence.get("seen_by_the_attack", ()))
    return Shown(
        verdict=row.verdict,
        headline=row.headline,
        rule=rule_of(row.rule),
        where=row.where,
        integrity=row.integrity,
        breaches=tuple(str(each) for each in breaches),
        calls=evidence.get("calls", 0),
        payments=_payments(evidence),
        found={name: value for name, value in evidence.items() if name not in COMMON},
        params=row.params,
        run=row.run.code if row.run.workspace_id == row.workspace_id else "",
        id=str(row.pk),
        created_ms=row.created_ms,
        control=row.control,
    )


def _payments(evidence: Mapping[str, Any]) -> str:
    """What Stripe's own list says was paid for the attack's runs, all of them."""
    far = evidence.get("far_side", {})
    if not far.get("reachable"):
        return "not known: Stripe could not be asked"
    made = [each for each in far.get("payments", ()) if each.get("status") == "succeeded"]
    listed = evidence.get("paid", made)
    sums = ", ".join(
        f"{decimal_text(each['amount_minor'], each['currency'])} {each['currency']}"
        for each in listed
    )
    return f"{len(listed)} ({sums})" if listed else "none"
