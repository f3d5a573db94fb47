"""Whom an invoice is from and to, compared with the supplier register: it identifies, no more.

Where the register is not as the log says, all of this raises VerificationError (PII-002).
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from engine.clock import now_ms
from engine.models import Run, Workspace
from nanovm_core.core.messages import Scalar
from pipeline.register import bills, suppliers
from pipeline.register.bills import EarlierUse, InvoiceFacts
from pipeline.register.details import Details, compact, is_address, one_line, plain_name
from pipeline.register.known_text import NOTHING_KNOWN
from pipeline.register.versions import Entry
from reader import Extraction, Invoice
from reader.known_text.unit import Unit

KNOWN, UNKNOWN, CHANGED, BLOCKED, SHARED = "known", "unknown", "changed", "blocked", "shared"
ISSUED_AHEAD = timedelta(days=31)
DUE_AHEAD = timedelta(days=366)
AGE = timedelta(days=3 * 366)


class Identified(NamedTuple):
    """The supplier of an invoice: what the register says of it, and its entry."""

    state: str
    entry: Entry | None = None
    typed: Entry | None = None  # whose code an approval needs: its own, or another's of its account


def named_details(fields: Invoice) -> Details:
    """What an invoice says of its supplier: of the payee where it names one, else the seller."""
    email = fields.seller_email or ""
    return Details(
        name=one_line(fields.payee or fields.seller or ""),
        iban=compact(fields.iban or "") if fields.iban_valid else "",
        email=email if is_address(email) else "",
    )


def supplier_of(workspace: Workspace, fields: Invoice) -> Identified:
    """The registered supplier of an invoice.

    An account number with wrong check digits is not compared: another rule holds it.
    """
    said = named_details(fields)
    entry = suppliers.find(workspace, said.identities())
    other = suppliers.sharing(workspace, entry, (entry.details if entry else said).iban)
    if entry is None:
        return Identified(SHARED, None, other) if other else Identified(UNKNOWN)
    if entry.row.state == suppliers.BLOCKED:
        return Identified(BLOCKED, entry)
    if said.iban and said.iban != entry.details.iban:
        return Identified(CHANGED, entry, entry)
    return Identified(SHARED if other else KNOWN, entry, other)


def clear_facts(workspace: Workspace, fields: Invoice, party: Identified) -> dict[str, Scalar]:
    """What the register says of an invoice, without a name."""
    facts: dict[str, Scalar] = {
        "supplier_state": party.state,
        "buyer_is_us": _is_ours(workspace, fields.buyer),
        "dates_plausible": plausible(fields.issue_date, fields.due_date, today()),
    }
    return facts | ({"supplier": party.entry.id} if party.entry else {})


def unseen(
    run: Run, slots: Mapping[str, Scalar], extraction: Extraction, party: Identified
) -> tuple[list[Unit], list[Unit]]:
    """What nobody accepted of the document: neither for this supplier nor as its maker.

    And those of it that are new values where a person lets one vary.
    """
    if slots.get("text_accepted"):
        return [], []
    known, code = party.entry.details.known if party.entry else NOTHING_KNOWN, str(run.id)
    return known.unseen(extraction.units, code), known.varied(extraction.units, code)


def earlier(run: Run, fields: Invoice, party: Identified, document: bytes) -> dict[str, Scalar]:
    """Which run had this invoice before: claimed by this one, where its supplier is known.

    Until then it is only looked up: this step comes again after a person's approval. The caller
    holds the log's lock.
    """
    details = party.entry.details if party.entry else None
    facts = InvoiceFacts(
        number=fields.invoice_number or "",
        document=document,
        amount_minor=fields.amount_minor,
        currency=fields.currency or "",
        issued=fields.issue_date or "",
        account=named_details(fields).iban or (details.iban if details else ""),
        tax_id=compact(details.tax_id) if details else "",
    )
    claims = bills.claim if party.state == KNOWN else bills.look_up
    claim = claims(run, party.entry.row, facts) if party.entry else EarlierUse()
    return {"duplicate_of": claim.duplicate_of, "duplicate_by": claim.matched, "bill": claim.sealed}


def today() -> date:
    """The date at which an invoice is judged."""
    return datetime.fromtimestamp(now_ms() / 1000, UTC).date()


def plausible(issued: str | None, due: str | None, now: date) -> bool:
    """Whether an invoice of these dates can be due now; a date that it does not name can."""
    first, last = _day(issued), _day(due)
    for day, ahead in ((first, ISSUED_AHEAD), (last, DUE_AHEAD)):
        if day and not now - AGE <= day <= now + ahead:
            return False
    return not (first and last and last < first)


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _is_ours(workspace: Workspace, buyer: str | None) -> bool:
    """Whether an invoice is to the workspace's own company; one that names nobody may be."""
    own = suppliers.own_company(workspace)
    if own is None or not buyer:
        return True
    return f" {plain_name(own.name)} " in f" {plain_name(buyer)} "
