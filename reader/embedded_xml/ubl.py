"""OASIS UBL 2.x Invoice and CreditNote, when a PDF carries one."""

from typing import Final

from reader.embedded_xml import structured
from reader.embedded_xml.structured import Coded, Party, amount, is_true, joined
from reader.embedded_xml.xmltree import Node
from reader.invoice import Evidence

_NAMESPACE: Final = "urn:oasis:names:specification:ubl:schema:xsd:"
_SUMS: Final = "LegalMonetaryTotal"
_SUMS_AT: Final = {
    "BT-106": f"{_SUMS}/LineExtensionAmount",
    "BT-107": f"{_SUMS}/AllowanceTotalAmount",
    "BT-108": f"{_SUMS}/ChargeTotalAmount",
    "BT-109": f"{_SUMS}/TaxExclusiveAmount",
    "BT-110": "TaxTotal/TaxAmount",
    "BT-112": f"{_SUMS}/TaxInclusiveAmount",
    "BT-113": f"{_SUMS}/PrepaidAmount",
    "BT-114": f"{_SUMS}/PayableRoundingAmount",
    "BT-131": "InvoiceLine|CreditNoteLine/LineExtensionAmount",
}
_CHANGES: Final = ("AllowanceCharge", "ChargeIndicator", "Amount")
_TAXES: Final = ("TaxTotal/TaxSubtotal", "TaxableAmount", "TaxCategory/Percent", "TaxAmount")
_PATHS: Final = {
    "invoice_number": "cbc:ID (BT-1)",
    "issue_date": "cbc:IssueDate (BT-2)",
    "type_code": "cbc:InvoiceTypeCode (BT-3)",
    "currency": "cbc:DocumentCurrencyCode (BT-5)",
    "due_date": "cbc:DueDate (BT-9)",
    "seller": "cac:AccountingSupplierParty (BT-27)",
    "seller_address": "cac:AccountingSupplierParty/PostalAddress (BG-5)",
    "seller_email": "cac:AccountingSupplierParty/Contact (BT-43)",
    "buyer": "cac:AccountingCustomerParty (BT-44)",
    "buyer_address": "cac:AccountingCustomerParty/PostalAddress (BG-8)",
    "payee": "cac:PayeeParty (BT-59)",
    "reference": "cac:PaymentMeans/PaymentID (BT-83)",
    "iban": "cac:PaymentMeans/PayeeFinancialAccount/ID (BT-84)",
    "total_due": "cac:LegalMonetaryTotal/PayableAmount (BT-115)",
}


def is_ubl(root: Node) -> bool:
    """Whether the root is a UBL invoice or credit note."""
    return root.name in ("Invoice", "CreditNote") and root.namespace.startswith(_NAMESPACE)


def read_ubl(root: Node) -> Coded:
    """The coded fields of a UBL document."""
    dues = [node for node in root.all(f"{_SUMS}/PayableAmount") if node.text]
    currencies = tuple(root.values("DocumentCurrencyCode"))
    account = "PaymentMeans/PayeeFinancialAccount/ID"
    return Coded(
        credit=root.name == "CreditNote",
        copy=any(map(is_true, root.values("CopyIndicator"))),
        numbers=tuple(root.values("ID")),
        type_codes=tuple(root.values("InvoiceTypeCode|CreditNoteTypeCode")),
        currencies=currencies,
        dues=tuple(amount(node.text or "") for node in dues),
        due_currencies=tuple(filter(None, (node.attribute("currencyID") for node in dues))),
        sums=structured.sums_at(root, _SUMS_AT, _CHANGES, currencies[0] if currencies else None),
        taxes=structured.taxes_at(root, *_TAXES),
        seller=_party(root, "AccountingSupplierParty/Party"),
        buyer=_party(root, "AccountingCustomerParty/Party"),
        payee=root.value("PayeeParty/PartyName/Name"),
        references=tuple(root.values("PaymentMeans/PaymentID")),
        means=tuple(root.values("PaymentMeans/PaymentMeansCode")),
        mandate=bool(root.values("PaymentMeans/PaymentMandate/ID")),
        ibans=tuple(root.values(account)),
        payer_ibans=tuple(
            root.values("PaymentMeans/PaymentMandate/PayerFinancialAccount/ID")
            + root.values("PaymentMeans/PayerFinancialAccount/ID")
        ),
        issue_date=structured.iso_date(root.value("IssueDate")),
        due_date=structured.iso_date(
            root.value("DueDate") or root.value("PaymentMeans/PaymentDueDate")
        ),
        terms=tuple(root.values("PaymentTerms/Note")),
        line_notes=tuple(root.values("InvoiceLine|CreditNoteLine/Note")),
        notes=tuple(root.values("Note")),
        evidence={name: Evidence(source="xml", path=at) for name, at in _PATHS.items()},
    )


def _party(root: Node, path: str) -> Party:
    address = f"{path}/PostalAddress"
    endpoints = (node for node in root.all(f"{path}/EndpointID") if node.text)
    town = [root.value(f"{address}/PostalZone"), root.value(f"{address}/CityName")]
    return Party(
        name=root.value(f"{path}/PartyLegalEntity/RegistrationName")
        or root.value(f"{path}/PartyName/Name"),
        address=joined(
            *root.values(f"{address}/StreetName|AdditionalStreetName"),
            " ".join(filter(None, town)),
            root.value(f"{address}/Country/IdentificationCode"),
        ),
        email=root.value(f"{path}/Contact/ElectronicMail")
        or next((n.text for n in endpoints if n.attribute("schemeID") == "EM"), None),
    )
