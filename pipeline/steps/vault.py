"""Step 3: split the invoice into clear facts and personal values behind refs."""

import json
import re
from dataclasses import asdict

from nanovm_core.core.messages import Scalar
from pipeline.steps.extract import Extraction, Invoice
from pipeline.steps.work import Answer, Work, done

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
PERSONAL = (
    "seller",
    "seller_address",
    "seller_email",
    "buyer",
    "buyer_address",
    "invoice_number",
    "iban",
)


def split(work: Work) -> Answer:
    """Store personal values behind refs, and return the other facts in the clear."""
    extraction = Extraction.from_json(work.opened("staging"))
    return done(work, clear_facts(extraction), work.sealed(personal_values(extraction)))


def clear_facts(extraction: Extraction) -> dict[str, Scalar]:
    """The facts of an invoice that are stored in the clear: money, dates, means of payment."""
    fields = extraction.fields
    facts: dict[str, Scalar] = {
        "pay_status": fields.pay_status,
        "currency": fields.currency,
        "amount_minor": fields.amount_minor,
        "total_due": fields.total_due,
        "has_iban": bool(fields.iban and fields.iban_valid),
        "iban_faulty": fields.iban_valid is False,
        "hold": fields.hold or "",
    }
    dates = {"issue_date": fields.issue_date, "due_date": fields.due_date}
    return facts | {name: day for name, day in dates.items() if day and DATE.fullmatch(day)}


def personal_values(extraction: Extraction) -> dict[str, bytes]:
    """The values of an invoice that go behind refs, with the texts that are made from them."""
    fields = extraction.fields
    named = {name: getattr(fields, name) for name in PERSONAL}
    texts = {name: value for name, value in named.items() if value}
    number = fields.invoice_number or "without a number"
    texts |= {
        "payee": fields.payee or fields.seller or "",
        "memo": f"Invoice {number}",
        "notes": extraction.notes,
        "advice_to": fields.seller_email or "no e-mail address on the invoice",
        "advice_subject": f"Payment of your invoice {number}",
        "advice_body": _advice(fields, number),
    }
    if extraction.crops:
        texts["crops"] = json.dumps([asdict(crop) for crop in extraction.crops])
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}


def _advice(fields: Invoice, number: str) -> str:
    return (
        f"Dear {fields.seller or 'supplier'},\n\n"
        f"we have paid {fields.currency} {fields.total_due} for your invoice {number}.\n"
    )
