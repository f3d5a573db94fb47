"""Step 3: split the invoice into clear facts and personal values behind refs."""

import json
import re
from dataclasses import asdict

from django.db import transaction

from engine.store import records
from engine.work import Answer, Work, done
from nanovm_core.core.messages import Scalar
from pipeline.labels import NO_REFERENCE
from pipeline.register import known_text, usual_amounts
from pipeline.register.details import is_plain_line, one_line
from pipeline.steps import advise, identify, pointing, seal
from pipeline.steps.charge import accounts
from pipeline.steps.extract import read_again
from reader import Extraction, Invoice

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
PERSONAL = (
    *("seller", "seller_address", "seller_email", "buyer", "buyer_address"),
    *("invoice_number", "iban"),
)


def split(work: Work) -> Answer:
    """Store personal values behind refs, and return the other facts in the clear.

    Whom it pays comes from the register. While that does not know the supplier as the invoice
    names it, or a person has not accepted what the invoice says, the staging is kept: after an
    approval this step looks it up again.

    Raises:
        PermanentError: PII-002 where the register is not as the log says, and as ``account_of``.
        NotSentError: RUN-002, the machine did not let the invoice be read again.
    """
    document, workspace = work.opened("document"), work.run.workspace
    with accounts.register_failures():
        extraction = Extraction.from_json(work.opened("staging"))
        given = pointing.overrides(workspace, extraction, work.slots)
        if given:
            extraction = read_again(document, given)
        party = identify.supplier_of(workspace, extraction.fields)
        if party.state == identify.KNOWN and party.entry is not None:
            party = party._replace(entry=accounts.account_of(party.entry))
        facts = clear_facts(extraction, pointing.heard(work.slots))
        facts |= identify.clear_facts(workspace, extraction.fields, party)
        unseen, varied = identify.unseen(work.run, work.slots, extraction, party)
        facts |= {"unseen": len(unseen), "varied": len(varied), **dict(known_text.counted(unseen))}
        usual = usual_amounts.usual_of(str(work.run.id), facts)
        facts |= usual.facts() if usual else usual_amounts.NO_PAYMENTS
        facts |= advise.unasked(work.slots).facts()
        with transaction.atomic():  # under one lock: two runs are never both the first
            records.lock_log(workspace.id)
            facts |= identify.earlier(work.run, extraction.fields, party, document)
    fills = work.program.steps[work.effect.step].fills  # an earlier release's has fewer
    values = {} if "memo" in work.slots and not given else personal_values(extraction)
    values |= registered_values(party)
    sealed = work.sealed({name: values[name] for name in values if name in fills})
    is_seen = party.state == identify.KNOWN and not unseen
    if not is_seen or pointing.may_be_asked(extraction.fields):
        sealed |= work.sealed({"staging": extraction.to_json().encode()}, staging=True)
    return done(work, {name: facts[name] for name in facts if name in fills}, sealed)


def clear_facts(extraction: Extraction, said: pointing.Statement) -> dict[str, Scalar]:
    """The facts of an invoice that are stored in the clear: money, dates, means of payment."""
    fields = extraction.fields
    facts: dict[str, Scalar] = {
        "pay_status": fields.pay_status,
        "has_number": bool(fields.invoice_number) or "invoice_number" in said.values,
        "has_iban": bool(fields.iban and fields.iban_valid),
        "iban_faulty": fields.iban_valid is False,
        "hold": fields.hold or "",
    }
    dates = {"issue_date": fields.issue_date, "due_date": fields.due_date}
    facts |= {name: day for name, day in dates.items() if day and DATE.fullmatch(day)}
    money = {name: getattr(fields, name) for name in ("currency", "total_due", "amount_minor")}
    return facts | {name: value for name, value in money.items() if value is not None}


def personal_values(extraction: Extraction) -> dict[str, bytes]:
    """The values of an invoice that go behind refs, with the texts that are made from them."""
    fields = extraction.fields
    texts = {name: value for name in PERSONAL if (value := getattr(fields, name))}
    number = fields.invoice_number or "without a number"
    texts |= {
        "memo": f"Invoice {number}",
        "reference": reference_of(fields) or NO_REFERENCE,
        "notes": extraction.notes,
        "advice_subject": f"Payment of your invoice {number}",
        "advice_body": _advice(fields, number),
    }
    if extraction.crops:
        texts["crops"] = json.dumps([asdict(crop) for crop in extraction.crops])
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}


def registered_values(party: identify.Identified) -> dict[str, bytes]:
    """Whom the register has for an invoice, and under which address; none unless it is known."""
    if party.state != identify.KNOWN or party.entry is None:
        return {}
    details = party.entry.details
    texts = {
        "payee": details.name,
        "advice_to": details.email or "no e-mail address",
        "destination": details.account or accounts.UNKNOWN,
    }
    return {name: text.encode() for name, text in texts.items()}


def reference_of(fields: Invoice) -> str:
    """What the supplier wants the payment to bear; empty where that is no line of text."""
    return fields.reference if fields.reference and is_plain_line(fields.reference) else ""


def _advice(fields: Invoice, number: str) -> str:
    """The text of the remittance advice; what would break its lines fails before the payment."""
    name = one_line(fields.seller or "supplier")
    seal.require_line("name", name)
    seal.require_line("invoice number", number)
    return (
        f"Dear {name},\n\n"
        f"we have paid {fields.currency} {fields.total_due} for your invoice {number}.\n"
        + (f"Your reference: {reference}\n" if (reference := reference_of(fields)) else "")
    )
