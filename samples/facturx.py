"""Puts EN 16931 XML (Cross Industry Invoice) into a drawn invoice, as Factur-X does."""

import io
from typing import Final

from lxml import etree
from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    ByteStringObject,
    DictionaryObject,
    NameObject,
    StreamObject,
    TextStringObject,
)

from samples.drawing import Bill

_FILE: Final = "factur-x.xml"
_NAMES: Final = {
    "rsm": "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100",
    "ram": "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
    "udt": "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100",
}
_Tree = tuple[str, "str | list[_Tree]"] | tuple[str, "str | list[_Tree]", dict[str, str]]


def with_xml(pdf: bytes, bill: Bill) -> bytes:
    """The PDF with the bill's XML as an associated file; the same input, the same bytes."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    stream = StreamObject()
    stream.set_data(cross_industry_invoice(bill))
    stream[NameObject("/Type")] = NameObject("/EmbeddedFile")
    stream[NameObject("/Subtype")] = NameObject("/text/xml")
    held = writer._add_object(stream.flate_encode())
    spec = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Filespec"),
            NameObject("/F"): TextStringObject(_FILE),
            NameObject("/UF"): TextStringObject(_FILE),
            NameObject("/AFRelationship"): NameObject("/Alternative"),
            NameObject("/EF"): DictionaryObject({NameObject("/F"): held, NameObject("/UF"): held}),
        }
    )
    listed = writer._add_object(spec)
    names = ArrayObject([TextStringObject(_FILE), listed])
    root = writer._root_object
    root[NameObject("/AF")] = ArrayObject([listed])
    root[NameObject("/Names")] = DictionaryObject(
        {NameObject("/EmbeddedFiles"): DictionaryObject({NameObject("/Names"): names})}
    )
    mark = ByteStringObject(b"nanovm-sample-01")
    writer._ID = ArrayObject([mark, mark])
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def cross_industry_invoice(bill: Bill) -> bytes:
    """The bill in the EN 16931 profile of Factur-X."""
    guideline = "urn:cen.eu:en16931:2017"
    tree: _Tree = (
        "rsm:CrossIndustryInvoice",
        [
            (
                "rsm:ExchangedDocumentContext",
                [
                    (
                        "ram:GuidelineSpecifiedDocumentContextParameter",
                        [("ram:ID", guideline)],
                    )
                ],
            ),
            (
                "rsm:ExchangedDocument",
                [
                    ("ram:ID", bill.number),
                    ("ram:TypeCode", "380"),
                    ("ram:IssueDateTime", [_day(bill.issued)]),
                    (
                        "ram:IncludedNote",
                        [("ram:Content", "Thank you for your order. The deposit is deducted.")],
                    ),
                ],
            ),
            (
                "rsm:SupplyChainTradeTransaction",
                [
                    *(_line(bill, index) for index in range(len(bill.lines))),
                    _agreement(bill),
                    ("ram:ApplicableHeaderTradeDelivery", []),
                    _settlement(bill),
                ],
            ),
        ],
    )
    root = _element(tree)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _element(tree: _Tree) -> etree._Element:
    prefix, _, name = tree[0].partition(":")
    element = etree.Element(
        f"{{{_NAMES[prefix]}}}{name}", tree[2] if len(tree) == 3 else {}, nsmap=_NAMES
    )
    if isinstance(tree[1], str):
        element.text = tree[1]
    else:
        element.extend([_element(child) for child in tree[1]])
    return element


def _day(day: str) -> _Tree:
    return ("udt:DateTimeString", day.replace("-", ""), {"format": "102"})


def _rate(bill: Bill) -> list[_Tree]:
    return [
        ("ram:CategoryCode", "S"),
        ("ram:RateApplicablePercent", str(bill.vat_percent)),
    ]


def _line(bill: Bill, index: int) -> _Tree:
    line = bill.lines[index]
    return (
        "ram:IncludedSupplyChainTradeLineItem",
        [
            ("ram:AssociatedDocumentLineDocument", [("ram:LineID", str(index + 1))]),
            ("ram:SpecifiedTradeProduct", [("ram:Name", line.text)]),
            (
                "ram:SpecifiedLineTradeAgreement",
                [("ram:NetPriceProductTradePrice", [("ram:ChargeAmount", str(line.price))])],
            ),
            (
                "ram:SpecifiedLineTradeDelivery",
                [("ram:BilledQuantity", str(line.quantity), {"unitCode": "C62"})],
            ),
            (
                "ram:SpecifiedLineTradeSettlement",
                [
                    ("ram:ApplicableTradeTax", [("ram:TypeCode", "VAT"), *_rate(bill)]),
                    (
                        "ram:SpecifiedTradeSettlementLineMonetarySummation",
                        [("ram:LineTotalAmount", str(line.amount))],
                    ),
                ],
            ),
        ],
    )


def _agreement(bill: Bill) -> _Tree:
    seller: list[_Tree] = [
        ("ram:Name", bill.seller[0]),
        (
            "ram:DefinedTradeContact",
            [("ram:EmailURIUniversalCommunication", [("ram:URIID", bill.email)])],
        ),
        _address(*bill.seller[2].split(" ", 1), bill.seller[1], "FR"),
        (
            "ram:SpecifiedTaxRegistration",
            [("ram:ID", "FR32123456789", {"schemeID": "VA"})],
        ),
    ]
    buyer: list[_Tree] = [
        ("ram:Name", bill.buyer[0]),
        _address("EX1 2MP", "Exampletown", bill.buyer[2], "GB"),
    ]
    return (
        "ram:ApplicableHeaderTradeAgreement",
        [("ram:SellerTradeParty", seller), ("ram:BuyerTradeParty", buyer)],
    )


def _address(postcode: str, city: str, street: str, country: str) -> _Tree:
    return (
        "ram:PostalTradeAddress",
        [
            ("ram:PostcodeCode", postcode),
            ("ram:LineOne", street),
            ("ram:CityName", city),
            ("ram:CountryID", country),
        ],
    )


def _settlement(bill: Bill) -> _Tree:
    sums: list[_Tree] = [
        ("ram:LineTotalAmount", str(bill.net)),
        ("ram:TaxBasisTotalAmount", str(bill.net)),
        ("ram:TaxTotalAmount", str(bill.vat), {"currencyID": bill.currency}),
        ("ram:GrandTotalAmount", str(bill.total)),
        ("ram:TotalPrepaidAmount", str(bill.prepaid)),
        ("ram:DuePayableAmount", str(bill.total_due)),
    ]
    account: _Tree = (
        "ram:PayeePartyCreditorFinancialAccount",
        [("ram:IBANID", bill.iban.replace(" ", ""))],
    )
    return (
        "ram:ApplicableHeaderTradeSettlement",
        [
            ("ram:InvoiceCurrencyCode", bill.currency),
            ("ram:SpecifiedTradeSettlementPaymentMeans", [("ram:TypeCode", "58"), account]),
            (
                "ram:ApplicableTradeTax",
                [
                    ("ram:CalculatedAmount", str(bill.vat)),
                    ("ram:TypeCode", "VAT"),
                    ("ram:BasisAmount", str(bill.net)),
                    *_rate(bill),
                ],
            ),
            ("ram:SpecifiedTradePaymentTerms", [("ram:DueDateDateTime", [_day(bill.due)])]),
            ("ram:SpecifiedTradeSettlementHeaderMonetarySummation", sums),
        ],
    )
