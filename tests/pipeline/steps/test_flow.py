"""The whole flow, driven inline: what is paid, what is held, what is rejected and why."""

import pytest

from nanovm_core.core import lifecycle as life
from pipeline.reports import report
from samples import path
from tests.kit.house import (
    House,
    accounts,
    bodies,
    invoice,
    kinds,
    payments,
    reason,
    snapshot,
    succeeded,
)

HAPPY = [
    "genesis",
    *("intent", "result") * 2,
    *("message", "intent", "result"),  # the reader hands over to the payer,
    *("message", "intent", "result"),  # the payer to the reader,
    *("message", "result"),  # and the reader to the payer
    *("intent", "result") * 2,
    "terminal",
]


@pytest.mark.parametrize(
    ("name", "model", "decision", "code", "paid"),
    [
        ("plain", "faithful", "paid", "", (128_450, "eur")),
        ("en16931", "faithful", "paid", "", (64_880, "eur")),
        ("injected", "faithful", "paid", "", (96_000, "eur")),
        ("multi_page_gbp", "faithful", "paid", "", None),
        ("over_limit", "faithful", "held", "POL-020", None),
        ("injected", "gullible", "rejected", "FSM-005", None),
        ("plain", "gullible", "paid", "", (128_450, "eur")),
        ("plain", "compromised", "rejected", "FSM-005", None),
        ("scan", "faithful", "held", "POL-020", None),
        ("broken", "faithful", "rejected", "DOC-009", None),
    ],
)
def test_sample_ends_as_it_must(
    house: House, name: str, model: str, decision: str, code: str, paid: tuple[int, str] | None
) -> None:
    run = house.run(path(name).read_bytes(), file_name=f"{name}.pdf", model=model)
    said = report(run, name)
    assert (said["decision"], reason(run)) == (decision, code)
    made = succeeded(run)
    assert len(made) == (decision == "paid")
    assert len(payments(run)) == len(made)
    if paid:
        assert made == [paid]
    assert (said["paid"] is not None) == (decision == "paid")


@pytest.mark.postgres
def test_happy_run_seals_these_kinds_and_says_these_things(house: House) -> None:
    run = house.once(House.run)
    assert kinds(run) == HAPPY
    budget = accounts(run)["workspace/EUR"]
    assert (budget.reserved, budget.spent) == (0, 12_000)
    assert run.state == life.COMPLETED
    assert succeeded(run) == [(12_000, "eur")]
    (intent,) = payments(run)
    metadata = intent.metadata.to_dict()
    assert set(metadata) == {"run", "code", "key"}
    assert metadata["key"] == bodies(run)[13]["idempotency_key"]
    said = report(run, "invoice.pdf")
    assert said["invoice"] == {
        "invoice_number": "A-2026-17",
        "seller": "Acme Tools Ltd",
        "currency": "EUR",
        "total_due": "120.00",
        "due_date": "2026-02-04",
        "iban": "AT611904300234573201",
    }
    assert said["paid"] == {"amount_minor": 12_000, "currency": "EUR", "payment_intent": intent.id}


@pytest.mark.parametrize(
    ("card", "code"), [("pm_card_chargeDeclined", "STR-001"), ("pm_card_nobody_knows", "STR-003")]
)
def test_card_that_does_not_pay_fails_the_run_with_its_reason(
    house: House, card: str, code: str
) -> None:
    run = house.run(payment_method=card)
    assert (run.state, reason(run)) == (life.FAILED, code)
    assert kinds(run)[-2:] == ["failed", "terminal"]
    assert succeeded(run) == []
    budget = accounts(run)["workspace/EUR"]
    assert (budget.reserved, budget.spent) == (0, 0)


def test_currency_without_decimals_is_paid_in_its_own_units(house: House) -> None:
    run = house.run(invoice("Total  JPY 12,000"), policy="no_limits")
    assert snapshot(run).slots["amount_minor"] == 12_000
    assert succeeded(run) == [(12_000, "jpy")]
    assert report(run, "x")["paid"]["amount_minor"] == 12_000  # type: ignore[index]


@pytest.mark.parametrize(
    "name",
    [
        *("e" * 300 + ".pdf", "../../etc/passwd", "\ud800.pdf", ""),
        pytest.param("a\x00b", marks=pytest.mark.postgres),  # a column there takes no such text
    ],
)
def test_strange_file_name_does_no_harm(house: House, name: str) -> None:
    assert house.run(file_name=name).state == life.COMPLETED
    assert not (house.folder.parent / "etc").exists()
