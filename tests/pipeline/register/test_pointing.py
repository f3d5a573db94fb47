"""What a person points at on a held invoice, and that the next one of the template needs nobody."""

from typing import Any

import pytest

from engine.models import Run, Secret
from engine.privacy.erasure import erase_run
from nanovm_core.core import lifecycle as life
from pipeline.register.details import DetailsError
from pipeline.reports import report
from pipeline.steps import approvals, pointing
from tests.kit.house import House, bodies, snapshot, succeeded
from tests.kit.pdf_builder import text_pdf
from tests.pipeline.register.test_known_text import approved, driven, given
from tests.reader.page_view.test_page_view import paper, scan_of

TURKISH = "Anadolu Makine Sanayi"


def bill(number: str, due: str = "1.234,00", *said: str, label: str = "Ödenecek tutar") -> bytes:
    """An invoice in a language of which the reader knows no label, without a company's form."""
    return text_pdf(
        [
            "FATURA",
            f"Belge: {number}",
            "Vida                                        100,00",
            f"{label}                              {due} TL",
            *said,
            TURKISH,
            "Atatürk Cad. 5, Izmir",
        ]
    )


def told(run: Run) -> Any:
    return report(run, "f.pdf")


def pointed(run: Run, **form: str) -> Run:
    approvals.approve(str(run.id), "clerk", form=form)
    return driven(run)


def place_of(run: Run, field: str, value: str) -> str:
    """The number of the reading that a person picks."""
    staged = approvals.staged_of(snapshot(run))
    assert staged is not None
    found = [n for n, e in enumerate(staged.candidates) if (e.field, e.value) == (field, value)]
    assert found, [(each.field, each.value) for each in staged.candidates]
    return str(found[0])


def first_paid(house: House) -> Run:
    run = given(house, bill("F-2026/17"))
    picks = {
        "pick_total_due": place_of(run, "total_due", "1234.00"),
        "pick_seller": place_of(run, "seller", TURKISH),
        "pick_invoice_number": place_of(run, "invoice_number", "F-2026/17"),
    }
    held = pointed(run, **picks, value_currency="EUR")
    assert snapshot(held).held_by == "first-payment"
    return approved(held)


def test_what_a_person_points_at_is_paid_and_the_next_invoice_needs_nobody(house: House) -> None:
    run = given(house, bill("F-2026/17"))
    said = told(run)
    assert (said["hold"], said["rules"][1:]) == ("no_amount", ["first-payment", "no-number"])
    assert "1234.00" in said["candidates"]["total_due"]
    first = first_paid(house)
    said = told(first)
    assert (first.state, said["paid"]["amount_minor"]) == (life.COMPLETED, 123_400)
    second = given(house, bill("F-2026/18", "567,80"), first)
    assert (second.state, len(succeeded(second))) == (life.COMPLETED, 1)
    said = told(second)
    paid, number = said["paid"]["amount_minor"], said["invoice"]["invoice_number"]
    assert (paid, number) == (56_780, "F-2026/18")


@pytest.mark.parametrize(
    ("document", "held_by"),
    [
        (bill("F-2026/18", "567,80", "ÖDENDİ"), "unseen-text"),
        (bill("F-2026/18", "567,80", label="Toplam"), "incomplete"),
        (bill("F-2026/18", "567,80", "Ödenecek tutar           99,00 TL"), "incomplete"),
        (bill("F-2026/18", "1.234"), "incomplete"),  # thousands or decimals: nobody knows
    ],
)
def test_a_remembered_place_decides_nothing_else(
    house: House, document: bytes, held_by: str
) -> None:
    second = given(house, document, first_paid(house))
    assert (second.state, snapshot(second).held_by) == (life.APPROVAL, held_by)
    assert succeeded(second) == []


@pytest.mark.reader
@pytest.mark.parametrize(("form", "paid"), [({}, 100_000), ({"value_total_due": "999"}, 99_900)])
def test_a_scan_is_paid_as_a_person_confirms_or_corrects_it(
    house: House, form: dict[str, str], paid: int
) -> None:
    run = given(house, scan_of(paper()))
    assert (snapshot(run).held_by, succeeded(run)) == ("incomplete", [])
    assert told(pointed(run, **form))["paid"]["amount_minor"] == paid


def test_what_a_person_says_of_a_known_supplier_is_claimed_and_paid_once(house: House) -> None:
    lines = ["Acme Tools Ltd          INVOICE", "Tel. +43 1 234567", "Belge: A-2026-17"]
    lines += ["Widgets            EUR 120.00", "Total  EUR 120.00"]
    first = given(house, text_pdf(lines))
    assert snapshot(first).held_by == "no-number"
    pick = place_of(first, "invoice_number", "A-2026-17")
    assert approved(pointed(first, pick_invoice_number=pick)).state == life.COMPLETED
    again = given(house, text_pdf(lines) + b"\n%", first)  # other bytes
    assert (again.state, snapshot(again).held_by) == (life.APPROVAL, "duplicate")


def test_what_a_person_says_is_sealed_of_their_origin_and_can_be_erased(house: House) -> None:
    run = first_paid(house)
    ref = snapshot(run).slots[pointing.SLOT]
    sealed = next(each for each in bodies(run) if each["kind"] == "resumed")
    assert (sealed["actor"], [each["ref"] for each in sealed["secrets"]]) == ("clerk", [ref])
    assert snapshot(run).origins[pointing.SLOT] == "person"
    assert TURKISH in pointing.heard(snapshot(run).slots).values["seller"]
    erase_run(str(run.id), "art17-1-b", "clerk")
    left = Secret.objects.get(ref=ref).ciphertext, pointing.heard(snapshot(run).slots).values
    assert left == (None, {})


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({}, "HLD-001"),
        ({"value_total_due": "-5"}, "HLD-001"),
        ({"value_total_due": "1e5"}, "HLD-001"),
        ({"value_total_due": "1.234", "value_currency": "EUR"}, "HLD-001"),
        ({"value_total_due": "5.50", "value_currency": "JPY", "value_seller": "A"}, "HLD-001"),
        ({"value_total_due": "5", "value_currency": "TL"}, "HLD-002"),
        ({"value_total_due": "5", "value_currency": "EUR", "value_seller": " "}, "HLD-003"),
        ({"value_total_due": "5", "value_currency": "EUR", "value_seller": "A\nB"}, "HLD-003"),
        ({"pick_total_due": "99999", "value_currency": "EUR"}, "HLD-001"),
        (
            {"value_total_due": "5", "value_currency": "EUR", "value_seller": "A"}
            | {"value_due_date": "?"},
            "HLD-005",
        ),
    ],
)
def test_what_is_no_value_changes_nothing(house: House, form: dict[str, str], code: str) -> None:
    run = given(house, bill("F-2026/17"))
    with pytest.raises(DetailsError) as refused:
        approvals.approve(str(run.id), "clerk", form=form)
    now = snapshot(run)
    assert (refused.value.code, now.held_by, pointing.SLOT in now.slots) == (
        code,
        "incomplete",
        False,
    )


def test_a_value_may_be_written_as_it_is_printed(house: House) -> None:
    run = given(house, bill("F-2026/17"))
    form = {"value_total_due": "1.234,00", "value_currency": "eur", "value_due_date": "31.12.2026"}
    form["value_seller"] = TURKISH
    said = pointing.heard(snapshot(pointed(run, **form)).slots)
    values = (said.values[name] for name in ("total_due", "currency", "due_date"))
    assert [*values] == ["1234.00", "EUR", "2026-12-31"]
    assert {*said.marks} == {"total_due", "currency", "seller"}  # all that stand there once
