"""The page of a run that the register holds: what is new, and the code that approves it."""

import re

from pipeline.models import Supplier
from tests.dashboard.visitor import Visitor, words
from tests.pipeline.pdf_builder import text_pdf

LINES = (
    "Nordlicht Papier GmbH                           INVOICE",
    "Invoice number: B-7",
    "Invoice date: 2026-03-05                 Due date: 2026-04-04",
    "IBAN DE02 1203 0000 0000 2020 51",
    "Total  EUR 120.00",
)


def test_another_account_is_shown_beside_the_registered_one_and_needs_the_code(
    owner: Visitor,
) -> None:
    run = owner.upload("changed.pdf", text_pdf([*LINES]))
    page = owner.read(f"/runs/{run.code}/")
    said = words(page)
    assert "Registered DE89 3704 0044 0532 0130 00" in said
    assert "the invoice names DE02 1203 0000 0000 2020 51" in said
    assert 'name="supplier_code"' in page
    (supplier,) = re.findall(r'href="/suppliers/([0-9a-f-]{36})/"', page)
    hold = {
        "hold": run.hold,
        "Idempotency-Key": "0123456789abcdef0123456789abcdef",
    }  # of one button
    refused = owner.post(f"/runs/{run.code}/approve/", {**hold, "supplier_code": "WRONG1"})
    assert refused["Location"] == f"/runs/{run.code}/?refused=SUP-004"
    code = Supplier.objects.get(id=supplier).code
    assert code in words(owner.read(f"/suppliers/{supplier}/"))
    good = owner.post(f"/runs/{run.code}/approve/", {**hold, "supplier_code": f" {code.lower()} "})
    assert good["Location"] == f"/runs/{run.code}/"
    assert owner.driven(run.code).label == "SUCCESS"
    assert "the invoice names" not in words(owner.read(f"/runs/{run.code}/"))


def test_a_first_payment_names_whom_it_registers(owner: Visitor) -> None:
    unknown = ("Nobody Knows Ltd                           INVOICE", *LINES[1:])
    run = owner.upload("unknown.pdf", text_pdf([*unknown]))
    page = owner.read(f"/runs/{run.code}/")
    assert "First payment to this supplier" in words(page)
    assert "Approve EUR 120.00 to Nobody Knows Ltd" in words(page)
    assert "registers it with DE02 1203 0000 0000 2020 51" in words(page)
    assert 'name="supplier_code"' not in page
    owner.post(f"/runs/{run.code}/approve/", {"hold": run.hold})
    assert owner.driven(run.code).label == "SUCCESS"
    assert "Nobody Knows Ltd" in words(owner.read("/suppliers/"))
