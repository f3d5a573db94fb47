"""UN/CEFACT Cross Industry Invoice: ZUGFeRD 1.0, Factur-X and ZUGFeRD 2.x, XRechnung."""

from decimal import Decimal
from typing import Final

from reader.embedded_xml.structured import Coded, Party, decimal_at, decimal_value, iso_date, joined
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
_LINE: Final = f"{_DEAL}/IncludedSupplyChainTradeLineItem/AssociatedDocumentLineDocument"
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
    evidence = {name: Evidence(source="xml", path=at) for name, at in _PATHS.items()}
    evidence["total_due"] = Evidence(source="xml", path=path)
    return Coded(
        numbers=tuple(root.values(f"{_DOCUMENT}/ID")),
        type_codes=tuple(root.values(f"{_DOCUMENT}/TypeCode")),
        currencies=tuple(root.values(f"{_SETTLEMENT}/InvoiceCurrencyCode")),
        dues=tuple(amount for amount, _ in dues),
        due_currencies=tuple(code for _, code in dues if code),
        grand_total=decimal_at(root, f"{_SUMS}/GrandTotalAmount"),
        prepaid=decimal_at(root, f"{_SUMS}/TotalPrepaidAmount"),
        rounding=decimal_at(root, f"{_SUMS}/RoundingAmount"),
        seller=_party(root, f"{_AGREEMENT}/SellerTradeParty"),
        buyer=_party(root, f"{_AGREEMENT}/BuyerTradeParty"),
        payee=root.value(f"{_SETTLEMENT}/PayeeTradeParty/Name"),
        means=tuple(root.values(f"{_MEANS}/TypeCode")),
        mandate=bool(root.values(f"{_TERMS}/DirectDebitMandateID")),
        ibans=tuple(root.values(f"{_MEANS}/PayeePartyCreditorFinancialAccount/IBANID")),
        payer_ibans=tuple(root.values(f"{_MEANS}/PayerPartyDebtorFinancialAccount/IBANID")),
        issue_date=_date(root, f"{_DOCUMENT}/IssueDateTime"),
        due_date=_date(root, f"{_TERMS}/DueDateDateTime"),
        terms=tuple(root.values(f"{_TERMS}/Description")),
        notes=tuple(root.values(f"{_DOCUMENT}/IncludedNote/Content")),
        line_notes=tuple(root.values(f"{_LINE}/IncludedNote/Content")),
        evidence=evidence,
    )


def _dues(root: Node) -> tuple[list[tuple[Decimal | None, str | None]], str]:
    """The amounts due (BT-115); ZUGFeRD 1.0 BASIC has none and means its grand total."""
    nodes = [node for node in root.all(f"{_SUMS}/DuePayableAmount") if node.text]
    path = "MonetarySummation/DuePayableAmount (BT-115)"
    if not nodes and root.name == "CrossIndustryDocument":
        nodes = [node for node in root.all(f"{_SUMS}/GrandTotalAmount") if node.text]
        path = "MonetarySummation/GrandTotalAmount (no DuePayableAmount)"
        if decimal_at(root, f"{_SUMS}/TotalPrepaidAmount"):
            return [(None, None)], path  # then the grand total is not what is due
    return [(decimal_value(n.text or ""), n.attribute("currencyID")) for n in nodes], path


def _date(root: Node, path: str) -> str | None:
    below = root.values(f"{path}/DateTimeString|DateTime|DateString")
    return next((day for day in map(iso_date, below or root.values(path)) if day), None)


def _party(root: Node, path: str) -> Party:
    address = f"{path}/PostalTradeAddress"
    lines = [root.value(f"{address}/{line}") for line in ("LineOne", "LineTwo", "LineThree")]
    town = [root.value(f"{address}/PostcodeCode"), root.value(f"{address}/CityName")]
    contact = f"{path}/DefinedTradeContact/EmailURIUniversalCommunication"
    mail = root.value(f"{contact}/URIID|CompleteNumber")
    endpoints = (n for n in root.all(f"{path}/URIUniversalCommunication/URIID") if n.text)
    mail = mail or next((n.text for n in endpoints if n.attribute("schemeID") == "EM"), None)
    return Party(
        name=root.value(f"{path}/Name"),
        address=joined(
            [*lines, " ".join(part for part in town if part), root.value(f"{address}/CountryID")]
        ),
        email=mail,
    )
