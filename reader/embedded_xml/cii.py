"""UN/CEFACT Cross Industry Invoice: ZUGFeRD 1.0, Factur-X and ZUGFeRD 2.x, XRechnung."""

from decimal import Decimal
from typing import Final

from reader.embedded_xml import structured
from reader.embedded_xml.structured import Coded, Party, amount, is_true, joined
from reader.embedded_xml.xmltree import Node
from reader.invoice import Evidence

_DOCUMENT: Final = "ExchangedDocument|HeaderExchangedDocument"
_DEAL: Final = "SupplyChainTradeTransaction|SpecifiedSupplyChainTradeTransaction"
_AGREEMENT: Final = f"{_DEAL}/ApplicableHeaderTradeAgreement|ApplicableSupplyChainTradeAgreement"
_SETTLEMENT: Final = f"{_DEAL}/ApplicableHeaderTradeSettlement|ApplicableSupplyChainTradeSettlement"
_SUMS: Final = (
    f"{_SETTLEMENT}/SpecifiedTradeSettlementHeaderMonetarySummation"
    "|SpecifiedTradeSettlementMonetarySummation"
)
_MEANS: Final = f"{_SETTLEMENT}/SpecifiedTradeSettlementPaymentMeans"
_TERMS: Final = f"{_SETTLEMENT}/SpecifiedTradePaymentTerms"
_LINE: Final = f"{_DEAL}/IncludedSupplyChainTradeLineItem"
_LINE_TEXT: Final = f"{_LINE}/AssociatedDocumentLineDocument"
_SUMS_AT: Final = {
    "BT-106": f"{_SUMS}/LineTotalAmount",
    "BT-107": f"{_SUMS}/AllowanceTotalAmount",
    "BT-108": f"{_SUMS}/ChargeTotalAmount",
    "BT-109": f"{_SUMS}/TaxBasisTotalAmount",
    "BT-110": f"{_SUMS}/TaxTotalAmount",
    "BT-112": f"{_SUMS}/GrandTotalAmount",
    "BT-113": f"{_SUMS}/TotalPrepaidAmount",
    "BT-114": f"{_SUMS}/RoundingAmount",
    "BT-131": f"{_LINE}/SpecifiedLineTradeSettlement"
    "/SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
    "BT-99": f"{_SETTLEMENT}/SpecifiedLogisticsServiceCharge/AppliedAmount",
}
_CHANGES: Final = (
    f"{_SETTLEMENT}/SpecifiedTradeAllowanceCharge",
    "ChargeIndicator/Indicator",
    "ActualAmount",
)
_RATE: Final = "RateApplicablePercent|ApplicablePercent"
_TAXES: Final = (f"{_SETTLEMENT}/ApplicableTradeTax", "BasisAmount", _RATE, "CalculatedAmount")
_PATHS: Final = {
    "invoice_number": "ExchangedDocument/ID (BT-1)",
    "issue_date": "ExchangedDocument/IssueDateTime (BT-2)",
    "type_code": "ExchangedDocument/TypeCode (BT-3)",
    "currency": "HeaderTradeSettlement/InvoiceCurrencyCode (BT-5)",
    "due_date": "SpecifiedTradePaymentTerms/DueDateDateTime (BT-9)",
    "seller": "SellerTradeParty/Name (BT-27)",
    "seller_address": "SellerTradeParty/PostalTradeAddress (BG-5)",
    "seller_email": "SellerTradeParty/DefinedTradeContact (BT-43)",
    "buyer": "BuyerTradeParty/Name (BT-44)",
    "buyer_address": "BuyerTradeParty/PostalTradeAddress (BG-8)",
    "payee": "PayeeTradeParty/Name (BT-59)",
    "reference": "HeaderTradeSettlement/PaymentReference (BT-83)",
    "iban": "PayeePartyCreditorFinancialAccount/IBANID (BT-84)",
}


def is_cii(root: Node) -> bool:
    """Whether the root is such an invoice, in any of the dialects that PDFs carry."""
    if root.name in ("CrossIndustryInvoice", "CrossIndustryDocument"):
        return True
    return root.name == "Invoice" and next(root.all(_DOCUMENT), None) is not None


def read_cii(root: Node) -> Coded:
    """The coded fields of a Cross Industry Invoice."""
    dues, path = _dues(root)
    currencies = tuple(root.values(f"{_SETTLEMENT}/InvoiceCurrencyCode"))
    evidence = {name: Evidence(source="xml", path=at) for name, at in _PATHS.items()}
    evidence["total_due"] = Evidence(source="xml", path=path)
    return Coded(
        copy=any(map(is_true, root.values(f"{_DOCUMENT}/CopyIndicator/Indicator"))),
        numbers=tuple(root.values(f"{_DOCUMENT}/ID")),
        type_codes=tuple(root.values(f"{_DOCUMENT}/TypeCode")),
        currencies=currencies,
        dues=tuple(amount for amount, _ in dues),
        due_currencies=tuple(code for _, code in dues if code),
        sums=_sums(root, currencies[0] if currencies else None),
        taxes=structured.taxes_at(root, *_TAXES),
        seller=_party(root, f"{_AGREEMENT}/SellerTradeParty"),
        buyer=_party(root, f"{_AGREEMENT}/BuyerTradeParty"),
        payee=root.value(f"{_SETTLEMENT}/PayeeTradeParty/Name"),
        references=tuple(root.values(f"{_SETTLEMENT}/PaymentReference")),
        means=tuple(root.values(f"{_MEANS}/TypeCode")),
        mandate=bool(root.values(f"{_TERMS}/DirectDebitMandateID")),
        ibans=tuple(root.values(f"{_MEANS}/PayeePartyCreditorFinancialAccount/IBANID")),
        payer_ibans=tuple(root.values(f"{_MEANS}/PayerPartyDebtorFinancialAccount/IBANID")),
        issue_date=_date(root, f"{_DOCUMENT}/IssueDateTime"),
        due_date=_date(root, f"{_TERMS}/DueDateDateTime"),
        terms=tuple(root.values(f"{_TERMS}/Description")),
        notes=tuple(root.values(f"{_DOCUMENT}/IncludedNote/Content")),
        line_notes=tuple(root.values(f"{_LINE_TEXT}/IncludedNote/Content")),
        evidence=evidence,
    )


def _sums(root: Node, currency: str | None) -> dict[str, tuple[Decimal, ...]]:
    """The sums; of lines that only head or explain others (EXTENDED), none is made."""
    found = structured.sums_at(root, _SUMS_AT, _CHANGES, currency)
    if root.values(f"{_LINE_TEXT}/LineStatusReasonCode"):
        found.pop("BT-131", None)
    return found


def _dues(root: Node) -> tuple[list[tuple[Decimal | None, str | None]], str]:
    """The amounts due (BT-115); ZUGFeRD 1.0 BASIC has none and means its grand total."""
    nodes = [node for node in root.all(f"{_SUMS}/DuePayableAmount") if node.text]
    path = "MonetarySummation/DuePayableAmount (BT-115)"
    if not nodes and root.name == "CrossIndustryDocument":
        nodes = [node for node in root.all(f"{_SUMS}/GrandTotalAmount") if node.text]
        path = "MonetarySummation/GrandTotalAmount (no DuePayableAmount)"
        if any(map(amount, root.values(f"{_SUMS}/TotalPrepaidAmount"))):
            return [(None, None)], path  # then the grand total is not what is due
    return [(amount(n.text or ""), n.attribute("currencyID")) for n in nodes], path


def _date(root: Node, path: str) -> str | None:
    below = root.values(f"{path}/DateTimeString|DateTime|DateString")
    return next((day for day in map(structured.iso_date, below or root.values(path)) if day), None)


def _party(root: Node, path: str) -> Party:
    address = f"{path}/PostalTradeAddress"
    contact = f"{path}/DefinedTradeContact/EmailURIUniversalCommunication"
    endpoints = (n for n in root.all(f"{path}/URIUniversalCommunication/URIID") if n.text)
    mail = next((n.text for n in endpoints if n.attribute("schemeID") == "EM"), None)
    return Party(
        name=root.value(f"{path}/Name"),
        address=joined(
            *root.values(f"{address}/LineOne|LineTwo|LineThree"),
            " ".join(root.values(f"{address}/PostcodeCode|CityName")),
            root.value(f"{address}/CountryID"),
        ),
        email=root.value(f"{contact}/URIID|CompleteNumber") or mail,
    )
