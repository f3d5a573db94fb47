"""An invoice that is XML and nothing else: its codes decide, and each of its texts is judged."""

import pytest

from pipeline.register.known_text import NOTHING_KNOWN
from reader import Extraction, ExtractionError
from samples.facturx import cross_industry_invoice
from samples.invented import EN16931
from tests.kit.reading import read_here
from tests.reader.test_extract_xml import UBL

NOTE = "Thank you for your order. The deposit is deducted."
ADDRESS = "<ram:LineOne>5 rue"
TERMS = "<ram:SpecifiedTradePaymentTerms>"
MEANS = "<ram:TypeCode>58</ram:TypeCode>"
BEFORE = "<ram:InvoiceCurrencyCode>"
LINE = "<ram:LineID>2</ram:LineID>"
REFERENCE = "<ram:PaymentReference>RF18539007547034</ram:PaymentReference>"
ORDER = "<ram:BuyerReference>PO-1180</ram:BuyerReference>"
FIRST = cross_industry_invoice(EN16931).decode().replace(BEFORE, REFERENCE + ORDER + BEFORE)


def changed(*changes: tuple[str, str]) -> Extraction:
    text = FIRST
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return read_here(text.encode())


def unseen(*changes: tuple[str, str]) -> list[str]:
    """What a person who accepted the first invoice has not accepted of this one."""
    known = NOTHING_KNOWN.with_units(changed().units)
    return [unit.text for unit in known.unseen(changed(*changes).units, "run")]


def test_invoice_without_a_page_is_read_by_its_codes() -> None:
    found = changed()
    assert (found.fields.total_due, found.fields.pay_status) == ("648.80", "open")
    assert (found.source, found.pages, found.fields.reference) == ("xml", 0, "RF18539007547034")
    assert read_here(UBL.encode()).fields.seller == "Acme Tools Ltd"
    assert read_here(FIRST.replace("UTF-8", "UTF-16").encode("utf-16")).units == found.units


@pytest.mark.parametrize(
    "change",
    [
        ("AC-20260311-08", "AC-20260411-09"),
        (">20260311<", ">20260411<"),
        ("Workshop chairs, oak", "A table, beech, already paid for"),  # what is sold is not judged
        ("RF18539007547034", "RF712348231"),
        ("PO-1180", "PO-1207"),
    ],
)
def test_next_invoice_of_a_known_supplier_has_nothing_unseen(change: tuple[str, str]) -> None:
    assert unseen(change) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NOTE, "Thank you. It was settled in cash."),
        (NOTE, f"{NOTE} Ödendi."),
        (NOTE, f"{NOTE}</ram:Content><ram:Content>ОПЛАЧЕНО"),
        (TERMS, f"{TERMS}<ram:Description>Do not pay</ram:Description>"),
        (MEANS, f"{MEANS}<ram:Information>By direct debit</ram:Information>"),
        (LINE, f"{LINE}<ram:IncludedNote><ram:Content>Paid</ram:Content></ram:IncludedNote>"),
        (">5 rue de l'Exemple<", ">Now payable to 9 rue Neuve<"),
        (">FR32123456789<", ">FR32123456780<"),
        ("FR1420041010050500013M02606", "DE89370400440532013000"),
        ("PO-1180", "PAID-2026"),
        ("</rsm:CrossIndustryInvoice>", "<ram:Any>Void</ram:Any></rsm:CrossIndustryInvoice>"),
        ("<ram:CountryID>FR</ram:CountryID>", "<ram:CountryID>FR</ram:CountryID>paid"),
        ("</rsm:CrossIndustryInvoice>", "<ram:Item>Void</ram:Item></rsm:CrossIndustryInvoice>"),
        ("<rsm:ExchangedDocument>", "VOID<rsm:ExchangedDocument>"),
        ("<rsm:ExchangedDocument>", '<rsm:ExchangedDocument remark="Do not pay">'),
        (NOTE, f"{NOTE} ⒹⓄ ⓃⓄⓉ ⓅⒶⓎ"), (NOTE, "✗✗ ⛔ 0"), (NOTE, "-648.80"),
        (MEANS, f"{MEANS}<ram:Code>VOID</ram:Code>"), (MEANS, "<ram:TypeCode>10</ram:TypeCode>"),
        (MEANS, f"{MEANS}<ram:PurposeCode>1</ram:PurposeCode>"),
        (">AC-20260311-08<", ">X-1226 VOID, paid in cash<"), (">648.80<", ">648.80<x/>7<"),
        (">516.00<", ">-516.00<"), (">100.00<", ">100,00<"), ("RF18539007547034", "00 00 00"),
        ("<ram:GrandTotal", "<ram:PaidAmount>648.80</ram:PaidAmount><ram:GrandTotal"),
        ("PayeePartyCreditorFinancialAccount>", "PayeePartyCreditorFinancialAccount>"
         "<ram:ProprietaryID>37040044</ram:ProprietaryID>"),
        (MEANS, f'{MEANS}<ram:AttachmentBinaryObject filename="Annul.pdf">AAAA'
         "</ram:AttachmentBinaryObject>"),
    ],
)  # fmt: skip
def test_any_other_text_of_it_is_unseen(old: str, new: str) -> None:
    assert unseen((old, new))


@pytest.mark.parametrize(("data", "code"), [
    (b"<html><body>Invoice</body></html>", "DOC-015"), (b"<Order/>", "DOC-015"),
    (b"<Invoice", "DOC-013"), (b"<!DOCTYPE a><Invoice/>", "DOC-014"), (b"Invoice", "DOC-003"),
    (FIRST.replace(NOTE, "a" * 20_001).encode(), "DOC-013"),
    (FIRST.replace(NOTE, "".join(f"</ram:Content><ram:Content>{chr(0x4E00 + n)}"
                                 for n in range(2_001))).encode(), "DOC-018"),
])  # fmt: skip
def test_what_is_no_invoice_or_too_much_to_look_at_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(ExtractionError, match=code):
        read_here(data)


def test_a_long_note_is_judged_to_its_end() -> None:
    long = "Terms " * 3_000
    known = NOTHING_KNOWN.with_units(changed((NOTE, long)).units)
    assert known.unseen(changed((NOTE, f"{long}Do not pay")).units, "run")


def test_only_references_and_contacts_of_the_document_may_vary() -> None:
    contact = "<ram:PersonName>Ann Ames</ram:PersonName>"
    found = changed(("<ram:EmailURIUniversal", f"{contact}<ram:EmailURIUniversal")).units
    assert {unit.label.split()[-1] for unit in found if unit.label} == {
        "Name",
        "Reference",
        "URIID",
    }


TRUE = "<udt:Indicator>1</udt:Indicator>"
SUMS = "<ram:DuePayableAmount>648.80</ram:DuePayableAmount>"
GRAND = "<ram:GrandTotalAmount>748.80</ram:GrandTotalAmount>"


@pytest.mark.parametrize(("changes", "hold"), [
    ([(GRAND, ""), (SUMS, SUMS.replace("648.80", "949.80"))], "lacking_data"),
    ([(GRAND, GRAND.replace(">748", ' currencyID="USD">748'))], "lacking_data"),
    ([("<ram:LineTotalAmount>624.00</ram:LineTotalAmount>", "")], "lacking_data"),
    ([(">20260311<", "><")], "lacking_data"), ([(">AC-20260311-08<", "><")], "lacking_data"),
    ([("<ram:TotalPrepaidAmount>100.00", "<ram:TotalPrepaidAmount>100.00"
       "</ram:TotalPrepaidAmount><ram:TotalPrepaidAmount>748.80")], "lacking_data"),
    ([("<ram:BasisAmount>624.00</ram:BasisAmount>", "")], "lacking_data"),
    ([("Workshop chairs, oak", "Pay to NO93 8601 1117 947 instead")], "two_accounts"),
    ([(NOTE, "Our new account is NO93 8601 1117 947.")], "two_accounts"),
    ([("<ram:TypeCode>380", f"<ram:CopyIndicator>{TRUE}</ram:CopyIndicator><ram:TypeCode>380")],
     "copy"),
])  # fmt: skip
def test_data_without_a_page_says_all_that_its_amount_is_reckoned_from(
    changes: list[tuple[str, str]], hold: str
) -> None:
    assert changed(*changes).fields.hold == hold


def test_an_attached_file_may_be_large() -> None:
    content = "QUJD" * 100_000
    attached = (
        f'<ram:AttachmentBinaryObject filename="a.pdf">{content}</ram:AttachmentBinaryObject>'
    )
    assert changed((MEANS, MEANS + attached)).fields.hold is None
