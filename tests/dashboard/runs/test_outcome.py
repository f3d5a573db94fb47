"""The first screen of a run: amount, payee, status and decider; verdicts in their rows; tabs."""

import re
import uuid

import pytest

from dashboard.runs.views import TABS
from engine.queries.runs import RunHead
from pipeline.register.usual_amounts import Usual
from sabotage.models import Attack
from tests.dashboard.visitor import TRANSFER, Visitor, words

pytestmark = pytest.mark.usefixtures("db")


def outcome(owner: Visitor, run: RunHead) -> str:
    page = owner.read(f"/runs/{run.code}/")
    found = re.search(r'<section id="outcome".*?</section>', page, re.S)
    assert found is not None
    said = re.sub(r"\d\d:\d\d:\d\d", "hh:mm:ss", words(found[0]))
    return re.sub(r"-\d{5}-\d{5}", "-0", said)


def test_a_paid_run(owner: Visitor, paid: RunHead) -> None:
    assert outcome(owner, paid) == (
        "EUR 1,284.50 to Nordlicht Papier GmbH invoice NP-2026-0 PAID hh:mm:ss"
        " decided by rule within-limit"
    )


def test_a_run_on_hold_says_what_is_approved_and_who_approved(
    owner: Visitor, held: RunHead
) -> None:
    said = outcome(owner, held)
    assert said.startswith("EUR 18,400.00 to ")
    assert "ON HOLD: not paid" in said
    assert re.search(r"decided by rule \S+", said)
    payee = said.removeprefix("EUR 18,400.00 to ").partition(" invoice ")[0]
    page = words(owner.read(f"/runs/{held.code}/"))
    assert f"Approve EUR 18,400.00 to {payee}" in page


def test_a_hold_says_what_the_supplier_was_paid_before(owner: Visitor) -> None:
    first = owner.make("over_limit")
    assert "No earlier payment to this supplier" in outcome(owner, first)
    owner.command(first, "approve")
    owner.driven(first.code)
    again = owner.make("over_limit")
    said = "1 earlier payment to this supplier: median EUR 18,400.00 , from EUR 18,400.00 to EUR"
    assert said in outcome(owner, again)
    owner.command(again, "decline")
    assert "earlier payment" not in outcome(owner, owner.driven(again.code))


@pytest.mark.parametrize(("amount", "says"), [(199, ""), (200, "2.0"), (125_000, "1,250.0")])
def test_an_amount_is_unusual_from_twice_the_median(amount: int, says: str) -> None:
    assert Usual(count=3, amount_minor=amount, median_minor=100).times == says


def test_a_failed_run_names_the_rule(owner: Visitor) -> None:
    run = owner.make(model="compromised", proposal=TRANSFER)
    said = outcome(owner, run)
    assert "FAILED: not paid" in said
    assert f"decided by rule {run.reason[0]}" in said  # type: ignore[index]
    assert "<s>propose (CAP-001)</s>" in owner.read(f"/runs/{run.code}/")


def test_before_duplicates_are_fired_their_row_says_what_they_put_at_stake(
    owner: Visitor, ready: RunHead, paid: RunHead
) -> None:
    def row(run: RunHead) -> str:
        page = owner.read(f"/runs/{run.code}/")
        found = re.search(r'<div id="shot-double_exec".*?</div>', page, re.S)
        assert found is not None
        return words(found[0])

    assert row(paid) == "At stake: a second payment of EUR 1,284.50."
    later = "No money at stake yet. Fire this after step charge"
    assert row(ready) == f"{later}, or plan it for that step."
    assert '<option value="6" selected>6 charge' in owner.read(f"/runs/{ready.code}/")
    assert row(owner.paused("extract")) == f"{later}."
    assert row(owner.paused("charge")) == "At stake: a second payment of EUR 1,284.50."
    failed = owner.make(model="compromised", proposal=TRANSFER)
    assert row(failed).startswith("Nothing was paid.")


def test_an_attack_that_was_taken_is_not_counted_as_stopped(owner: Visitor, ready: RunHead) -> None:
    owner.fire(ready, "tool_injection")
    Attack.objects.update(verdict="ACCEPTED")
    assert "0 of 1 attack stopped" in outcome(owner, ready)
    assert "1 fired · 0 stopped" in words(owner.read(f"/runs/{ready.code}/"))


def test_what_stripe_was_not_asked_about_is_not_known(owner: Visitor, ready: RunHead) -> None:
    owner.fire(ready, "tool_injection")
    shot = Attack.objects.get()
    shot.evidence["far_side"] = {"reachable": False}
    shot.save()
    assert "unknown nanovm" in words(owner.read(f"/runs/{ready.code}/"))


def test_the_losses_are_those_of_all_attacks(owner: Visitor, ready: RunHead) -> None:
    owner.fire(ready, "tool_injection")
    shot = Attack.objects.get()
    for _ in range(59):
        shot.pk = uuid.uuid4()
        shot.idempotency_key = str(shot.pk)
        shot.save(force_insert=True)
    page = words(owner.read(f"/runs/{ready.code}/"))
    assert "ordinary agent: USD 3,000,000.00 lost" in page


@pytest.mark.parametrize("name", [name for name, _ in TABS])
def test_each_tab_has_an_address(owner: Visitor, paid: RunHead, name: str) -> None:
    page = owner.read(f"/runs/{paid.code}/?tab={name}")
    panels = re.findall(r'<div data-panel="(\w+)"[^>]*?( hidden)?>', page)
    assert [panel for panel, hidden in panels if not hidden] == [name]
    assert len(panels) == len(TABS)
