"""From the fourth payment on, an amount far above what a supplier usually gets waits."""

import pytest

from engine.models import Run
from engine.queries import why
from engine.queries.runs import head_of
from nanovm_core.core import lifecycle as life
from pipeline.register.usual_amounts import Usual, usual_of
from pipeline.steps import approvals
from tests.kit.house import House, bodies, snapshot
from tests.pipeline.register.test_duplicates import bill

PAID = ("100.00", "90.00", "110.00")  # their median is 100.00


def after(house: House, paid: tuple[str, ...], total: str) -> Run:
    """A run for this sum, after invoices of the same supplier that were paid."""
    run = house.run(bill("A-1", total=paid[0]))
    for place, each in enumerate(paid[1:], 2):
        run = house.run(bill(f"N{place}-{place}34{place}", total=each), workspace=run.workspace)
        assert run.state == life.COMPLETED
    return house.run(bill("Z-9981", total=total), workspace=run.workspace)


@pytest.mark.parametrize(
    ("paid", "total", "facts", "held_by"),
    [
        (PAID, "500.00", (3, 5), ""),
        (PAID, "500.01", (3, 6), "unusual-amount"),
        (PAID[:2], "900.00", (2, 10), ""),
    ],
)
def test_more_than_five_times_the_usual_amount_waits_for_a_person(
    house: House, paid: tuple[str, ...], total: str, facts: tuple[int, int], held_by: str
) -> None:
    run = after(house, paid, total)
    now = snapshot(run)
    assert (now.slots["payments_before"], now.slots["times_usual"]) == facts
    assert now.held_by == held_by
    assert run.state == (life.APPROVAL if held_by else life.COMPLETED)
    usual = usual_of(str(run.id), now.slots) or Usual(count=-1)
    assert usual.count == facts[0]  # its own payment is none of those before


def test_the_checks_of_an_approved_unusual_amount_say_who_lifted_it(house: House) -> None:
    run = after(house, PAID, "900.00")
    approvals.approve(str(run.id), "visitor")
    house.drive(run)
    assert run.state == life.COMPLETED
    judged = next(each for each in bodies(run) if each.get("outcome") == "authorized")
    *_, anomaly, audit = why.checks_of(head_of(run), judged)
    assert "Approved by a person." in [each.text for each in anomaly.findings]
    assert (anomaly.state, audit.state) == ("passed", "passed")
