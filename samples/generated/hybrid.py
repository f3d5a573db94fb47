"""EN 16931 XML (Cross Industry Invoice) in three profiles, embedded as Factur-X does."""

import io
from decimal import Decimal
from typing import Final
from xml.sax.saxutils import escape

from pypdf import PdfWriter
from pypdf.generic import ArrayObject, ByteStringObject

from samples import facturx
from samples.generated.money import plain
from samples.generated.sheet import Sheet

PROFILES: Final = {
    "MINIMUM": "urn:factur-x.eu:1p0:minimum",
    "BASIC WL": "urn:factur-x.eu:1p0:basicwl",
    "EN 16931": "urn:cen.eu:en16931:2017",
}
_MARK: Final = b"nanovm-generated"
_NAMESPACES: Final = (
    'xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100" '
    'xmlns:ram="urn:un:unece:uncefact:data:standard:'
    'ReusableAggregateBusinessInformationEntity:100" '
    'xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100"'
)


def node(name: str, *inner: str, **attributes: str) -> str:
    """One element; its inner texts are XML already."""
    marks = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{marks}>{''.join(inner)}</{name}>"


def leaf(name: str, value: str, **attributes: str) -> str:
    """One element with a text."""
    return node(f"ram:{name}", escape(value), **attributes)


def invoice_xml(sheet: Sheet, profile: str, due: Decimal | None = None, iban: str = "") -> bytes:
    """The sheet as XML; ``due`` and ``iban`` replace what the page shows."""
    agreement = node(
        "ram:ApplicableHeaderTradeAgreement",
        _party("SellerTradeParty", sheet.seller.name, sheet.seller.country, sheet.seller.tax_id),
        _party("BuyerTradeParty", sheet.buyer.name, sheet.buyer.country, ""),
    )
    when = _day("IssueDateTime", sheet.issued.strftime("%Y%m%d"))
    document = node(
        "rsm:ExchangedDocument", leaf("ID", sheet.number), leaf("TypeCode", "380"), when
    )
    context = node(
        "rsm:ExchangedDocumentContext",
        node(
            "ram:GuidelineSpecifiedDocumentContextParameter",
            leaf("ID", PROFILES[profile]),
        ),
    )
    lines = _lines(sheet) if profile == "EN 16931" else ""
    delivery = "<ram:ApplicableHeaderTradeDelivery/>"
    settlement = _settlement(sheet, profile, sheet.sums.due if due is None else due, iban)
    trade = node("rsm:SupplyChainTradeTransaction", lines, agreement, delivery, settlement)
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    body = f"<rsm:CrossIndustryInvoice {_NAMESPACES}>{context}{document}{trade}"
    return f"{head}{body}</rsm:CrossIndustryInvoice>".encode()


def _day(name: str, text: str) -> str:
    return node(f"ram:{name}", node("udt:DateTimeString", text, format="102"))


def _party(name: str, title: str, country: str, tax: str) -> str:
    address = node("ram:PostalTradeAddress", leaf("CountryID", country))
    number = "".join(sign for sign in tax if sign.isalnum())
    taxed = node("ram:SpecifiedTaxRegistration", leaf("ID", number, schemeID="VA")) if tax else ""
    return node(f"ram:{name}", leaf("Name", title), address, taxed)


def _lines(sheet: Sheet) -> str:
    tax = leaf("TypeCode", "VAT") + _category(sheet)
    return "".join(
        node(
            "ram:IncludedSupplyChainTradeLineItem",
            node("ram:AssociatedDocumentLineDocument", leaf("LineID", str(position))),
            node("ram:SpecifiedTradeProduct", leaf("Name", item.text)),
            node(
                "ram:SpecifiedLineTradeAgreement",
                node("ram:NetPriceProductTradePrice", leaf("ChargeAmount", str(item.price))),
            ),
            node(
                "ram:SpecifiedLineTradeDelivery",
                leaf("BilledQuantity", str(item.quantity), unitCode="C62"),
            ),
            node(
                "ram:SpecifiedLineTradeSettlement",
                node("ram:ApplicableTradeTax", tax),
                node(
                    "ram:SpecifiedTradeSettlementLineMonetarySummation",
                    leaf("LineTotalAmount", str(item.amount)),
                ),
            ),
        )
        for position, item in enumerate(sheet.items, start=1)
    )


def _category(sheet: Sheet) -> str:
    category, rate = ("S", sheet.sums.rate) if sheet.sums.vat else ("Z", "0")
    return leaf("CategoryCode", category) + leaf("RateApplicablePercent", rate)


def _settlement(sheet: Sheet, profile: str, due: Decimal, iban: str) -> str:
    parts = [leaf("InvoiceCurrencyCode", sheet.currency.code)]
    if profile != "MINIMUM":
        account = leaf("IBANID", iban or sheet.iban)
        means = node("ram:PayeePartyCreditorFinancialAccount", account)
        parts.append(
            node("ram:SpecifiedTradeSettlementPaymentMeans", leaf("TypeCode", "58"), means)
        )
        parts += _tax_and_terms(sheet)
    parts.append(
        node(
            "ram:SpecifiedTradeSettlementHeaderMonetarySummation",
            *(_summation(sheet, profile, due)),
        )
    )
    return node("ram:ApplicableHeaderTradeSettlement", *parts)


def _tax_and_terms(sheet: Sheet) -> list[str]:
    sums = sheet.sums
    tax = [
        leaf("CalculatedAmount", plain(sheet.currency, sums.vat)),
        leaf("TypeCode", "VAT"),
        leaf("BasisAmount", plain(sheet.currency, sums.net - sums.discount)),
        _category(sheet),
    ]
    parts = [node("ram:ApplicableTradeTax", *tax)]
    if sums.discount:
        reduced = [
            node("ram:ChargeIndicator", node("udt:Indicator", "false")),
            leaf("ActualAmount", plain(sheet.currency, sums.discount)),
            leaf("Reason", "Discount"),
            node("ram:CategoryTradeTax", leaf("TypeCode", "VAT"), _category(sheet)),
        ]
        parts.append(node("ram:SpecifiedTradeAllowanceCharge", *reduced))
    if sheet.due_date:
        when = _day("DueDateDateTime", sheet.due_date.strftime("%Y%m%d"))
        parts.append(node("ram:SpecifiedTradePaymentTerms", when))
    return parts


def _summation(sheet: Sheet, profile: str, due: Decimal) -> list[str]:
    sums, code = sheet.sums, sheet.currency.code
    whole = profile != "MINIMUM"
    values: list[tuple[str, Decimal, bool]] = [
        ("LineTotalAmount", sums.net, whole),
        ("AllowanceTotalAmount", sums.discount, whole and bool(sums.discount)),
        ("TaxBasisTotalAmount", sums.net - sums.discount, True),
        ("TaxTotalAmount", sums.vat, True),
        ("RoundingAmount", sums.rounding, profile == "EN 16931" and bool(sums.rounding)),
        ("GrandTotalAmount", sums.total, True),
        ("TotalPrepaidAmount", sums.prepaid, whole and bool(sums.prepaid)),
        ("DuePayableAmount", due, True),
    ]
    marked = {"TaxTotalAmount": {"currencyID": code}}
    return [
        leaf(name, plain(sheet.currency, amount), **marked.get(name, {}))
        for name, amount, wanted in values
        if wanted
    ]


def embedded(pdf: bytes, xml: bytes) -> bytes:
    """The PDF with the XML as its associated file; the same input, the same bytes."""
    return facturx.embedded(pdf, xml, _MARK)


def written(writer: PdfWriter) -> bytes:
    """The bytes of a changed document, with an id that does not change."""
    writer._ID = ArrayObject([ByteStringObject(_MARK)] * 2)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
