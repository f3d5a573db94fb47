"""Invoices with coded data: the codes decide, the pages may only contradict them."""

import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from random import Random

import pytest

from reader import ExtractionError, Invoice
from reader.decide import invoice_from_xml
from reader.document import read
from reader.embedded_xml.cii import read_cii
from reader.embedded_xml.structured import Coded
from reader.embedded_xml.ubl import read_ubl
from reader.embedded_xml.xmltree import XML_BYTES_MAX, looks_like_xml, parse
from reader.holds import explained
from samples.facturx import cross_industry_invoice, embedded
from samples.invented import EN16931
from tests.kit.pdf_builder import invoice_lines, text_pdf
from tests.kit.reading import page_of, read_here

CII = cross_industry_invoice(EN16931).decode()
CODE = "</ram:InvoiceCurrencyCode>"
FACTOR = "<ram:PayeeTradeParty><ram:Name>Factoring AG</ram:Name></ram:PayeeTradeParty>"
PAYEE = (CODE, CODE + FACTOR)
DEPOSIT = "\nDeposit   EUR 100.00\nAC-20260311-08"
UBL = """\
<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
 xmlns:cac="urn:a" xmlns:cbc="urn:b"><cbc:ID>A-2026-17</cbc:ID>
 <cbc:IssueDate>2026-01-05</cbc:IssueDate>
 <cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode>
 <cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode>
 <cac:AccountingSupplierParty><cac:Party><cac:PartyLegalEntity>
 <cbc:RegistrationName>Acme Tools Ltd</cbc:RegistrationName></cac:PartyLegalEntity></cac:Party>
 </cac:AccountingSupplierParty>
 <cac:PaymentMeans><cbc:PaymentMeansCode>30</cbc:PaymentMeansCode>
 <cbc:PaymentDueDate>2026-02-04</cbc:PaymentDueDate><cac:PayeeFinancialAccount>
 <cbc:ID>AT611904300234573201</cbc:ID></cac:PayeeFinancialAccount></cac:PaymentMeans>
 <cac:LegalMonetaryTotal>
 <cbc:TaxInclusiveAmount currencyID="EUR">120.00</cbc:TaxInclusiveAmount>
 <cbc:PayableAmount currencyID="EUR">120.00</cbc:PayableAmount>
 </cac:LegalMonetaryTotal></Invoice>"""
SUMS = ("total", "prepaid", "rounding", "due")
HOSTILE = {
    "laughs": '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><Invoice>&c;</Invoice>',
    "file": '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><Invoice>&b;</Invoice>',
    "network": '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><Invoice/>',
    "parameter": '<!DOCTYPE a [<!ENTITY % b SYSTEM "file:///etc/passwd"> %b;]><Invoice/>',
    "plain": "<!DOCTYPE Invoice><Invoice/>",
}


def coded(*changes: tuple[str, str]) -> Coded:
    text = CII
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return read_cii(parse(text.encode()))


def invoice(*changes: tuple[str, str], page: str = "") -> Invoice:
    pages = [page_of(page + DEPOSIT)] if page else []
    return invoice_from_xml(coded(*changes), pages)[0]


def test_amount_due_is_paid_and_not_the_grand_total() -> None:
    found = invoice()
    assert (found.total_due, found.amount_minor, found.currency) == ("648.80", 64880, "EUR")
    assert (found.invoice_number, found.seller) == ("AC-20260311-08", "Atelier Clairval SARL")
    assert (found.issue_date, found.due_date) == ("2026-03-11", "2026-04-10")
    assert (found.iban, found.iban_valid) == ("FR1420041010050500013M02606", True)
    assert found.pay_status == "open"


def test_payee_of_the_invoice_is_kept_apart_from_the_seller() -> None:
    found = invoice(PAYEE)
    assert (found.payee, found.seller) == ("Factoring AG", "Atelier Clairval SARL")


@pytest.mark.parametrize(("page", "status"), [
    ("Seller: Atelier Clairval SARL\nAmount due   EUR 648.80\nPlease pay FACTORING AG.", "open"),
    ("Seller: Atelier Clairval SARL\nAmount due   EUR 648.80", "hybrid_mismatch"),
    ("scan", "open"),
])  # fmt: skip
def test_payee_that_no_page_shows_is_not_paid(page: str, status: str) -> None:
    assert invoice(PAYEE, page=page).pay_status == status


@pytest.mark.parametrize(("page", "status"), [
    ("ATELIER Clairval S.A.R.L.\nAmount due   EUR 648.80", "open"),
    ("Seller: Quartz Software GmbH\nAmount due   EUR 648.80", "hybrid_mismatch"),
])  # fmt: skip
def test_seller_of_the_page_is_the_seller_of_the_data(page: str, status: str) -> None:
    assert invoice(page=page).pay_status == status


def test_invalid_account_is_reported_as_found_and_does_not_hold() -> None:
    found = invoice(("FR1420041010050500013M02606", "FR00 2004 1010"))
    assert (found.iban, found.iban_valid, found.pay_status) == ("FR0020041010", False, "open")


@pytest.mark.parametrize(("changes", "status"), [
    ([(">380<", ">384<")], "correction"),
    ([(">380<", ">381<")], "correction"),
    ([(">380<", ">389<")], "self_billed"),
    ([(">380<", ">751<")], "not_payable_info_only"),
    ([("urn:cen.eu:en16931:2017", "urn:factur-x.eu:1p0:minimum")], "open"),
    ([(">648.80<", ">-648.80<")], "negative"),
    ([(">648.80<", ">0.00<")], "nothing_due"),
    ([(">58<", ">59<")], "direct_debit"),
    ([(">58<", ">49<")], "direct_debit"),
    ([(">58<", ">48<")], "paid"),
    ([(">380<", ">999<")], "ambiguous"),
    ([(">648.80<", ">748.80<")], "ambiguous"),
    ([("</ram:DuePay", "</ram:DuePayableAmount><ram:DuePayableAmount>1</ram:DuePay")], "ambiguous"),
    ([("<ram:DuePayableAmount>", '<ram:DuePayableAmount currencyID="USD">')], "ambiguous"),
    ([(">380<", ">326<")], "open"),
    ([(">380<", ">575<")], "open"),
])  # fmt: skip
def test_codes_decide_whether_it_may_be_paid(changes: list[tuple[str, str]], status: str) -> None:
    assert invoice(*changes).pay_status == status


def test_free_text_that_says_paid_does_not_overrule_the_codes() -> None:
    note = (
        "Thank you for your order. The deposit is deducted.",
        "Der Betrag wurde bereits beglichen.",
    )
    page = page_of(f"Invoice AC-20260311-08\nAmount due   EUR 648.80{DEPOSIT}\n{note[1]}")
    fields, _ = invoice_from_xml(coded(note), [page])
    assert fields.pay_status == "open"


@pytest.mark.parametrize(("shown", "status"), [
    ("Invoice number: AC-20260311-08\nAmount due   EUR 648.80", "open"),
    ("Facture AC 20260311 08\nNet à payer   648,80 €\nMerci beaucoup", "open"),
    ("Invoice number: AC-20260311-08\nAmount due   EUR 6,488.00", "hybrid_mismatch"),
    ("Invoice number: AC-20260311-08\nTotal 648.80\nAmount due   EUR 100.00", "hybrid_mismatch"),
    ("Invoice number: ZZ-1\nAmount due   EUR 648.80", "hybrid_mismatch"),
    ("Invoice number: AC-20260311-08\nAmount due   USD 648.80", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nIBAN DE89370400440532013000", "hybrid_mismatch"),
    ("Invoice number: AC-20260311-08\nAmount due   EUR 748.80\nEUR 648.80", "hybrid_mismatch"),
    ("Orders this year   EUR 648.80\nNet   EUR 60.00\nAll in all   EUR 64.88", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nInvoice number: AC-20260311-080", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nInvoice no. ZZ-1\nInvoice no. AC-20260311-08", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nDue date: 10 April 2026", "open"),
    ("Amount due   EUR 648.80\nDue date: 04/10/2026", "open"),
    ("Amount due   EUR 648.80\nDue date: 10 April 1999", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nRechnungsdatum   11.03.1999", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nBill to:\nHarbour Analytics Ltd", "open"),
    ("Amount due   EUR 648.80\nRechnung an:\nMallory Ltd", "hybrid_mismatch"),
    ("Amount due   EUR 648.80\nBill to:\nMallory Ltd\nShip to:\nHarbour Analytics Ltd",
     "hybrid_mismatch"),
    ("Quartz GmbH\nTel. 1\nAtelier Clairval SARL\nDue   EUR\nAmount due   EUR 648.80", "open"),
    ("Amount due   EUR 648.80\nTotal   EUR 999.80", "hybrid_mismatch"),
    ("scan", "open"),
])  # fmt: skip
def test_pages_that_contradict_the_xml_hold_it(shown: str, status: str) -> None:
    assert invoice(page=shown).pay_status == status


@pytest.mark.parametrize("number", ["AC", "08", "20260311", "Paris", "75001"])
def test_part_of_a_number_or_another_word_of_the_page_is_no_number(number: str) -> None:
    page = "Atelier Clairval SARL\n75001 Paris\nInvoice no. AC-20260311-08\nAmount due   EUR 648.80"
    found = invoice((">AC-20260311-08<", f">{number}<"), page=page)
    assert found.hold == "page_and_data_differ"


def test_names_are_compared_with_their_marks() -> None:
    for named, hold in (("तिवारी ट्रेडर्स", None), ("तुवारी ट्रेडर्स", "page_and_data_differ")):
        page = "Seller: तिवारी ट्रेडर्स\nAmount due   EUR 648.80"
        assert invoice((">Atelier Clairval SARL<", f">{named}<"), page=page).hold == hold


@pytest.mark.parametrize(("changes", "hold"), [
    ([(">516.00</ram:Line", ">515.00</ram:Line")], "br_co_10"),
    ([("<ram:TaxBasisTotalAmount>624.00", "<ram:TaxBasisTotalAmount>623.00")], "br_co_13"),
    ([(">124.80</ram:TaxTotal", ">124.70</ram:TaxTotal")], "br_co_14"),
    ([(">748.80</ram:Grand", ">749.80</ram:Grand")], "br_co_15"),
    ([(">648.80</ram:Due", ">648.70</ram:Due")], "br_co_16"),
    ([("Percent>20", "Percent>30")], "br_co_17"),
    ([("Percent>20", "Percent>20.1")], None),  # validators allow what rounding each line makes
])  # fmt: skip
def test_sums_of_the_data_add_up(changes: list[tuple[str, str]], hold: str | None) -> None:
    found = invoice(*changes)
    assert found.hold == hold
    assert hold is None or hold.upper().replace("_", "-") in explained(hold)


@pytest.mark.parametrize(("changes", "code"), [
    ([("<ram:InvoiceCurrencyCode>EUR", "<ram:InvoiceCurrencyCode>")], "DOC-012"),
    ([("<ram:InvoiceCurrencyCode>EUR", "<ram:InvoiceCurrencyCode>XYZ")], "DOC-012"),
    ([(">648.80<", "><")], "DOC-011"),
    ([(">648.80<", ">6.4880E2<")], "DOC-011"),
    ([(">648.80<", ">NaN<")], "DOC-011"),
    ([(">648.80<", ">648,80<")], "DOC-011"),
    ([(">648.80<", ">648.805<")], "DOC-016"),
])  # fmt: skip
def test_codes_that_do_not_say_what_to_pay_are_a_reason(
    changes: list[tuple[str, str]], code: str
) -> None:
    with pytest.raises(ExtractionError) as caught:
        invoice(*changes)
    assert caught.value.code == code


def test_ubl_invoice_and_credit_note() -> None:
    fields, evidence = invoice_from_xml(read_ubl(parse(UBL.encode())), [])
    assert (fields.total_due, fields.pay_status, fields.seller) == (
        "120.00",
        "open",
        "Acme Tools Ltd",
    )
    assert (fields.due_date, fields.iban_valid) == ("2026-02-04", True)
    assert evidence["total_due"].path == "cac:LegalMonetaryTotal/PayableAmount (BT-115)"
    note = UBL.replace("<Invoice ", "<CreditNote ").replace("</Invoice>", "</CreditNote>")
    assert invoice_from_xml(read_ubl(parse(note.encode())), [])[0].pay_status == "correction"


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_document_type_declarations_are_refused(name: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        parse(HOSTILE[name].encode())
    assert caught.value.code == "DOC-014"


@pytest.mark.parametrize(
    "data", [b"<a", b"", b"<a></b>", b"\x00\x01", b"<a>" * 300 + b"</a>" * 300]
)
def test_broken_xml_is_a_reason(data: bytes) -> None:
    with pytest.raises(ExtractionError) as caught:
        parse(data)
    assert caught.value.code == "DOC-013"


def test_xml_size_limit_holds_at_the_limit_and_one_above() -> None:
    fill = XML_BYTES_MAX - len(b"<a></a>")
    assert parse(b"<a>" + b" " * fill + b"</a>").name == "a"
    with pytest.raises(ExtractionError):
        parse(b"<a>" + b" " * (fill + 1) + b"</a>")


@pytest.mark.parametrize("data", [
    b"\xef\xbb\xbf" + CII.encode(),
    CII.replace("UTF-8", "UTF-16").encode("utf-16"),
    b"\xef\xbb\xbf" + CII.replace("UTF-8", "UTF-16").encode(),
    CII.replace("UTF-8", "no-such-encoding").encode(),
    CII.replace("UTF-8", "ISO-8859-1").encode("latin-1"),
])  # fmt: skip
def test_byte_order_marks_and_odd_encodings_are_read(data: bytes) -> None:
    assert looks_like_xml("data.bin", data)
    assert read_cii(parse(data)).numbers == ("AC-20260311-08",)


def test_nothing_but_the_amount_due_of_the_page_is_open() -> None:
    """Sums of every sign: the XML may take off, add and round as it likes."""
    rng, seen = Random(7), Counter[str]()  # noqa: S311 - no secret
    steps = [Decimal(each) for each in ("0", "0.01", "0.02", "0.05", "0.99", "1", "100", "9251.20")]
    for syntax in (cii_of, ubl_of) * 400:
        due = rng.choice((Decimal("748.80"), Decimal("10000.00"), Decimal("0.01")))
        prepaid, rounding, charges = (rng.choice(steps) * rng.choice((-1, 1)) for _ in range(3))
        asked = due + rng.choice((Decimal(0), Decimal(0), -prepaid, rounding, charges))
        total = rng.choice((asked + prepaid - rounding, asked, due + charges))
        shown = rng.choice(("", f"\nDeposit paid   EUR {abs(prepaid)}"))
        shown += rng.choice(("", f"\nRounding   EUR {abs(rounding)}"))
        page = f"Invoice A-2026-17\nAmount due   EUR {due}{shown}"
        sums = {"total": total, "prepaid": prepaid, "rounding": rounding, "due": asked}
        found = invoice_from_xml(syntax(sums), [page_of(page)])[0] if asked > 0 else None
        if found is None or found.pay_status != "open":
            seen["held"] += 1
            continue
        paid = Decimal(found.total_due or 0)
        less = prepaid if prepaid > 0 and str(prepaid) in shown else Decimal(0)
        assert paid in (due, due - less), (sums, page)
        seen["as the page" if paid == due else "less what the page shows as paid"] += 1
    assert all(seen[kind] >= 10 for kind in ("held", "as the page")), seen


@pytest.mark.parametrize(("prepaid", "rounding", "shown", "hold"), [
    ("-9251.20", "0", "", "negative_prepaid"),
    ("-9251.20", "0", "\nDeposit   EUR 9,251.20", "negative_prepaid"),
    ("-0.01", "0", "\nDeposit   EUR 0.01", "negative_prepaid"),
    ("0", "9251.20", "\nRounding   EUR 9,251.20", "unclear_data"),
    ("0", "-1.00", "\nRounding   EUR -1.00", "unclear_data"),
    ("0", "0.02", "", "page_and_data_differ"),
    ("0", "0.02", "\nRounding   EUR 0.02", None),
    ("0", "0.01", "", None),
    ("100.00", "0", "", "page_and_data_differ"),
    ("100.00", "0", "\nDeposit   EUR 100.00", None),
])  # fmt: skip
def test_what_is_taken_off_is_positive_and_shown_and_rounding_is_small(
    prepaid: str, rounding: str, shown: str, hold: str | None
) -> None:
    total = Decimal("748.80") + Decimal(prepaid) - Decimal(rounding)
    sums = {"total": total, "prepaid": prepaid, "rounding": rounding, "due": "748.80"}
    page = page_of(f"Invoice A-2026-17\nAmount due   EUR 748.80{shown}")
    for syntax in (cii_of, ubl_of):
        assert invoice_from_xml(syntax(sums), [page])[0].hold == hold, syntax.__name__


def cii_of(sums: Mapping[str, object]) -> Coded:
    start, end = CII.rindex("<ram:LineTotalAmount>"), CII.index("</ram:SpecifiedTradeSettlementH")
    tags = ("GrandTotalAmount", "TotalPrepaidAmount", "RoundingAmount", "DuePayableAmount")
    amounts = [f"<ram:{tag}>{sums[name]}</ram:{tag}>" for tag, name in zip(tags, SUMS, strict=True)]
    text = (CII[:start] + "".join(amounts) + CII[end:]).replace("AC-20260311-08", "A-2026-17")
    return read_cii(parse(re.sub(r"(?s)<ram:ApplicableTradeTax>.*?Tax>", "", text).encode()))


def ubl_of(sums: Mapping[str, object]) -> Coded:
    start, end = UBL.index("<cbc:TaxInclusiveAmount"), UBL.index(" </cac:LegalMonetaryTotal>")
    tags = ("TaxInclusiveAmount", "PrepaidAmount", "PayableRoundingAmount", "PayableAmount")
    amounts = [f"<cbc:{tag}>{sums[name]}</cbc:{tag}>" for tag, name in zip(tags, SUMS, strict=True)]
    return read_ubl(parse((UBL[:start] + "".join(amounts) + UBL[end:]).encode()))


def read_pdf(files: dict[str, bytes], *lines: str) -> Invoice:
    return read(text_pdf(invoice_lines(*lines), files=files), pages_max=50).fields


def test_embedded_invoice_is_found_whatever_its_name_and_two_are_ambiguous() -> None:
    fields = read_pdf({"annex.dat": UBL.encode(), "note.txt": b"hello"})
    assert (fields.type_code, fields.pay_status) == ("380", "open")
    other = UBL.replace("A-2026-17", "A-2026-18")
    assert read_pdf({"a.xml": UBL.encode(), "b.xml": other.encode()}).pay_status == "ambiguous"
    assert read_pdf({"a.xml": UBL.encode(), "b.xml": f"{UBL} ".encode()}).pay_status == "open"


@pytest.mark.parametrize(("data", "code"), [
    (b"<Invoice><ID>1", "DOC-013"),
    (HOSTILE["laughs"].encode(), "DOC-014"),
    (b"<Order xmlns='urn:x'/>", "DOC-015"),
])  # fmt: skip
def test_unreadable_embedded_data_is_not_replaced_by_the_page(data: bytes, code: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        read_pdf({"factur-x.xml": data})
    assert caught.value.code == code


def test_xml_that_is_no_business_document_leaves_the_page_to_decide() -> None:
    assert read_pdf({"settings.xml": b"<settings/>"}).type_code is None


@pytest.mark.parametrize(("lines", "hold"), [
    ([], "scanned"),
    (["Invoice AC-20260311-08 of Atelier Clairval"], "page_and_data_differ"),
    (["Invoice AC-20260311-08", "of Atelier Clairval", "Amount due  EUR 648.80"],
     "page_and_data_differ"),
    (["Invoice AC-20260311-08", "Deposit  EUR -100.00", "Amount due  EUR 648.80"], None),
])  # fmt: skip
def test_sum_that_the_page_does_not_show_is_not_paid(lines: list[str], hold: str | None) -> None:
    data = CII.encode()
    assert read_here(embedded(text_pdf(lines), data, b"test")).fields.hold == hold


def test_payment_reference_of_the_data_is_accepted_or_has_right_check_digits() -> None:
    code = "<ram:InvoiceCurrencyCode>"
    lines = ["Invoice AC-20260311-08", "Deposit  EUR -100.00", "Amount due  EUR 648.80"]

    def said(reference: str) -> set[str]:
        named = f"<ram:PaymentReference>{reference}</ram:PaymentReference>{code}"
        data = CII.replace(code, named).encode()
        return {unit.mark for unit in read_here(embedded(text_pdf(lines), data, b"test")).units}

    first = said("RF18539007547034")
    assert said("RF712348231") == first
    assert said("Account 0532013000 of M. Mallory") - first
