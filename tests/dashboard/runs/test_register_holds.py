"""The page of a run that the register holds: what is new, and the code that approves it."""

import re

from pipeline.models import Supplier
from pipeline.register import suppliers, versions
from samples.facturx import cross_industry_invoice, embedded
from samples.invented import EN16931
from tests.dashboard.visitor import Visitor, seen, words
from tests.kit.pdf_builder import text_pdf

LINES = (
    "Nordlicht Papier GmbH                           INVOICE",
    "Invoice number: B-7",
    "Invoice date: 2026-03-05                 Due date: 2026-04-04",
    "IBAN AT61 1904 3002 3457 3201",
    "Total  EUR 120.00",
)
OTHER = "FR14 2004 1010 0505 0001 3M02 606"


def test_another_account_is_shown_beside_the_registered_one_and_needs_the_code(
    owner: Visitor,
) -> None:
    run = owner.upload("changed.pdf", text_pdf([*LINES]))
    page = owner.read(f"/runs/{run.code}/")
    said = words(page)
    assert "Nordlicht Papier GmbH: registered DE89 3704 0044 0532 0130 00" in said
    assert "the invoice names AT61 1904 3002 3457 3201" in said
    assert 'name="supplier_code"' in page
    supplier = _supplier_of(owner, run.code)
    hold = {**seen(run), "Idempotency-Key": "0123456789abcdef0123456789abcdef"}  # of one button
    refused = owner.post(f"/runs/{run.code}/approve/", {**hold, "supplier_code": "WRONG1"})
    assert refused["Location"] == f"/runs/{run.code}/?refused=SUP-004"
    code = Supplier.objects.get(id=supplier).code
    assert code in words(owner.read(f"/suppliers/{supplier}/"))
    good = owner.post(f"/runs/{run.code}/approve/", {**hold, "supplier_code": f" {code.lower()} "})
    assert good["Location"] == f"/runs/{run.code}/"
    assert owner.driven(run.code).label == "SUCCESS"
    assert "the invoice names" not in words(owner.read(f"/runs/{run.code}/"))


def test_a_first_payment_names_whom_it_registers(owner: Visitor) -> None:
    iban = "IE29 AIBK 9311 5212 3456 78"
    number = "Invoice number: C-4471"
    unknown = ("Nobody Knows Ltd      INVOICE", number, LINES[2], f"IBAN {iban}", LINES[4])
    run = owner.upload("unknown.pdf", text_pdf([*unknown]))
    page = owner.read(f"/runs/{run.code}/")
    assert "First payment to this supplier" in words(page)
    assert "Approve EUR 120.00 to Nobody Knows Ltd (first payment)" in words(page)
    assert f"Nobody Knows Ltd, {iban}" in words(page)
    assert 'name="supplier_code"' not in page
    owner.post(f"/runs/{run.code}/approve/", seen(run))
    assert owner.driven(run.code).label == "SUCCESS"
    assert "Nobody Knows Ltd" in words(owner.read("/suppliers/"))


def test_a_payee_with_the_sellers_account_is_named_and_needs_the_sellers_code(
    owner: Visitor,
) -> None:
    payee = b"</ram:InvoiceCurrencyCode><ram:PayeeTradeParty><ram:Name>Nobody Factoring AG"
    data = cross_industry_invoice(EN16931).replace(
        b"</ram:InvoiceCurrencyCode>", payee + b"</ram:Name></ram:PayeeTradeParty>"
    )
    shown = [f"Invoice number: {EN16931.number}", "Seller: Atelier Clairval SARL"]
    shown += ["Pay Nobody Factoring AG.", "Deposit paid  EUR -100.00", "Amount due  EUR 648.80"]
    run = owner.upload("factored.pdf", embedded(text_pdf(shown), data, b"test"))
    said = words(owner.read(f"/runs/{run.code}/"))
    assert "Approve EUR 648.80 to Nobody Factoring AG (first payment)" in said
    one = f"Nobody Factoring AG and Atelier Clairval SARL have one account, {OTHER}"
    assert one in said
    assert "Code of Atelier Clairval SARL" in said
    assert "to Atelier" not in said
    code = Supplier.objects.get(id=_supplier_of(owner, run.code)).code
    owner.post(f"/runs/{run.code}/approve/", {**seen(run), "supplier_code": code})
    assert owner.driven(run.code).label == "SUCCESS"
    assert "EUR 648.80 to Nobody Factoring AG" in words(owner.read(f"/runs/{run.code}/"))


def test_a_blocked_supplier_is_named_and_a_damaged_register_hides_no_run(owner: Visitor) -> None:
    quartz = ("Quartz Software GmbH                           INVOICE", *LINES[1:3])
    run = owner.upload("one.pdf", text_pdf([*quartz, f"IBAN {OTHER}", LINES[4]]))
    row = Supplier.objects.get(id=_supplier_of(owner, run.code))
    (entry,) = versions.open_entries(row.workspace, [row])
    suppliers.block(entry, actor="visitor")
    owner.post(f"/runs/{run.code}/approve/", seen(run))
    assert owner.driven(run.code).held_by == "blocked-supplier"
    page = owner.read(f"/runs/{run.code}/")
    assert "Quartz Software GmbH in the supplier register" in words(page)
    assert 'name="supplier_code"' not in page
    Supplier.objects.filter(id=row.id).update(commitment="0" * 64)
    assert "ON HOLD" in words(owner.read(f"/runs/{run.code}/"))


def _supplier_of(owner: Visitor, code: str) -> str:
    (supplier,) = re.findall(r'href="/suppliers/([0-9a-f-]{36})/"', owner.read(f"/runs/{code}/"))
    return str(supplier)
