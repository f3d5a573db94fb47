"""The card of an attack on a copy without its guards, beside the verdict here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dashboard.templatetags.show import money, took
from sabotage.ablation import copies, copy_queue
from sabotage.ablation.copy_process import CopyError as CopyError
from sabotage.ablation.copy_process import changes_of
from sabotage.ablation.guards import claim_of, why_none
from sabotage.gallery import SCENARIOS
from sabotage.models import Attack


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCard:
    """The card: whether a copy can be made, is being made, was made, or could not be."""

    state: str = ""  # empty: nobody asked yet
    why: str = ""  # why there is no outcome
    shows: str = ""
    word: str = ""  # BREACHED or HELD
    money: tuple[str, ...] = ()  # what the far side's own list holds
    noticed: tuple[str, ...] = ()
    end: str = ""  # empty where its runs are several, or none
    made_ms: int = 0  # when, where it was made for an equal attack
    place: copy_queue.QueuePlace | None = None  # in the queue, while it waits
    none: str = ""  # why no guard could be taken out for this form of the attack

    @property
    def under_way(self) -> bool:
        return self.state == copy_queue.ASKED

    @property
    def done(self) -> bool:
        return self.state == copy_queue.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyChanges:
    """How the copy differs from the product, or ``why`` that is not known here."""

    guards: Sequence[Mapping[str, str]] = ()
    files: Sequence[Mapping[str, Any]] = ()  # each with the lines of its diff
    tools: Sequence[str] = ()  # what the copy has and the product lacks
    slowed_ms: int = 0  # how long the copy's Stripe server waits before it answers
    why: str = ""

    @property
    def slowed(self) -> str:
        return took(self.slowed_ms) if self.slowed_ms else ""


def changed(attack_id: UUID) -> CopyChanges | None:
    """How the attack's copy differed; before it is made, how it will differ.

    None where there can be no copy. It may start a process: it is for an attack's own page.
    """
    row = Attack.objects.get(pk=attack_id)
    claim = claim_of(row.injector, row.params)
    if claim is None:
        return None
    kept = row.unguarded.get("outcome", {}).get("changes")
    try:
        return CopyChanges(**(kept or changes_of(claim.without)), slowed_ms=claim.far_side_ms)
    except CopyError as error:
        return CopyChanges(why=str(error))


def copy_card_of(
    injector: str, params: Mapping[str, Any], kept: Mapping[str, Any]
) -> CopyCard | None:
    """What is known of an attack's copy, or why there can be none; None where nothing is said."""
    claim = claim_of(injector, params)
    if claim is None:
        why = why_none(injector, params)
        return CopyCard(none=why) if why else None
    lost = kept.get("state") == copy_queue.ASKED and not copy_queue.under_way(kept)
    outcome, exhibit = kept.get("outcome", {}), SCENARIOS.get(injector)
    evidence = outcome.get("evidence", {})
    return CopyCard(
        state=copy_queue.FAILED if lost else kept.get("state", ""),
        why="The process that made the copy has stopped. Run it again."
        if lost
        else kept.get("why", ""),
        shows=claim.shows,
        word="BREACHED" if outcome.get("got_through") else "HELD",
        money=_sums(evidence),
        noticed=tuple(evidence.get("breaches", ())) or (str(evidence.get("headline", "")),),
        end="" if exhibit and exhibit.alone else str(evidence.get("after", "")),
        made_ms=kept.get("made_ms", 0),
        place=copy_queue.place_of(kept) if copy_queue.under_way(kept) else None,
    )


def ask(attack_id: UUID) -> None:
    """Have the attack made on a copy.

    Raises:
        CopyError: it cannot be; the text says why.
    """
    copies.ask(Attack.objects.get(pk=attack_id))


def paid(evidence: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Every payment that the far side lists; of all the attack's runs, where it made several."""
    made = evidence.get("far_side", {}).get("payments", ())
    own = [each for each in made if each.get("status") == "succeeded"]
    listed: list[Mapping[str, Any]] = evidence.get("paid", own)
    return listed


def _sums(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """What was paid, the same sums together: 5 × EUR 1,284.50."""
    counted = Counter(money(each["amount_minor"], each["currency"]) for each in paid(evidence))
    return tuple(f"{count} × {text}" for text, count in counted.items())
