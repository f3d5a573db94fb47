"""An invoice that is XML alone is paid like any other, and with the reference that it names."""

import pytest

from engine.privacy.erasure import erase_run
from nanovm_core.core import lifecycle as life
from samples.facturx import cross_industry_invoice
from samples.invented import EN16931
from tests.kit.house import House, invoice, payments, snapshot, succeeded
from tests.pipeline.register.test_known_text import approved, given

REFERENCE = "RF18 5390 0754 7034"
XML = cross_industry_invoice(EN16931).decode()
BEFORE = "<ram:InvoiceCurrencyCode>"


def data(number: str, reference: str, note: str = "Thank you.") -> bytes:
    named = f"<ram:PaymentReference>{reference}</ram:PaymentReference>{BEFORE}"
    text = XML.replace("AC-20260311-08", number).replace(BEFORE, named)
    text = text.replace(">20260311<", f">20260{number[-3:]}<").replace(">20260410<", ">20260630<")
    return text.replace("Thank you for your order.", note).encode()


def test_second_invoice_of_data_alone_is_paid_by_itself(house: House) -> None:
    first = given(house, data("R-2026-311", "AB-1000-1"))
    assert (first.state, snapshot(first).held_by) == (life.APPROVAL, "unseen-text")
    assert approved(first).state == life.COMPLETED
    second = given(house, data("R-2026-411", "AB-1000-2"), first)
    assert (second.state, succeeded(second)) == (life.COMPLETED, [(64_880, "eur")])
    assert payments(second)[0].description == "AB-1000-2"
    third = given(house, data("R-2026-511", "AB-1000-3", note="Paid in cash."), first)
    assert (third.state, snapshot(third).held_by) == (life.APPROVAL, "unseen-text")


def test_the_same_invoice_as_data_and_as_a_pdf_is_paid_once(house: House) -> None:
    first = house.run(data("R-2026-311", "AB-1000-1"))
    second = house.run(data("R 2026/311", "AB-1000-1"), workspace=first.workspace)
    assert (first.state, snapshot(second).held_by) == (life.COMPLETED, "duplicate")


@pytest.mark.parametrize("printed", ["", REFERENCE])
def test_reference_that_a_page_prints_goes_to_the_payment(house: House, printed: str) -> None:
    (payment,) = payments(house.run(invoice("Total  EUR 120.00", printed or "Thank you.")))
    assert payment.description == (printed or None)


def test_reference_goes_to_the_advice_and_is_erased_here(house: House) -> None:
    run = house.run(data("R-2026-311", REFERENCE))
    (mail,) = [*(house.folder / "mail").glob("*")]
    assert f"Your reference: {REFERENCE}" in mail.read_text()
    erase_run(str(run.id), "art17-1-a", "visitor")
    assert not [file for file, held in house.files() if REFERENCE.encode() in held]
