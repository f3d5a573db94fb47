"""Whom an invoice is from and to, compared with the supplier register: it identifies, no more."""

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from engine.clock import now_ms
from engine.errors import PermanentError
from engine.models import Run, Workspace
from engine.work import Work
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import VerificationError
from pipeline.register import bills, suppliers
from pipeline.register.bills import Claim, Facts
from pipeline.register.details import Details, compact, is_address, one_line, plain_name
from pipeline.register.known_text import KnownText
from pipeline.register.versions import Entry
from reader import Extraction, Invoice
from reader.known_text.unit import Unit

KNOWN, UNKNOWN, CHANGED, BLOCKED, SHARED = "known", "unknown", "changed", "blocked", "shared"
ISSUED_AHEAD = timedelta(days=31)
DUE_AHEAD = timedelta(days=366)
AGE = timedelta(days=3 * 366)


class Party(NamedTuple):
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


def supplier_of(workspace: Workspace, fields: Invoice) -> Party:
    """The registered supplier of an invoice.

    An account number with wrong check digits is not compared: another rule holds it.

    Raises:
        PermanentError: PII-002, where the register is not as the log says.
    """
    said = named_details(fields)
    try:
        entry = suppliers.find(workspace, said.identities())
        details = entry.details if entry else None
        other = suppliers.sharing(workspace, entry, details.iban if details else said.iban)
    except VerificationError as error:
        raise PermanentError(error.code, error.text) from error
    if entry is None or details is None:
        return Party(SHARED, None, other) if other else Party(UNKNOWN)
    if entry.row.state == suppliers.BLOCKED:
        return Party(BLOCKED, entry)
    if said.iban and said.iban != details.iban:
        return Party(CHANGED, entry, entry)
    return Party(SHARED if other else KNOWN, entry, other)


def clear_facts(workspace: Workspace, fields: Invoice, party: Party) -> dict[str, Scalar]:
    """What the register says of an invoice, without a name."""
    facts: dict[str, Scalar] = {
        "supplier_state": party.state,
        "buyer_is_us": _is_ours(workspace, fields.buyer),
        "dates_plausible": plausible(fields.issue_date, fields.due_date, today()),
    }
    return facts | ({"supplier": party.entry.id} if party.entry else {})


def unseen(work: Work, extraction: Extraction, party: Party) -> list[Unit]:
    """What of the document nobody accepted: of this supplier, or as whoever made this document."""
    if work.slots.get("text_accepted"):
        return []
    details = party.entry.details if party.entry else None
    known = details.known if details else KnownText()
    return known.unseen(extraction.units, str(work.run.id))


def earlier(run: Run, fields: Invoice, party: Party, document: bytes) -> dict[str, Scalar]:
    """Which run had this invoice before: claimed by this one, where its supplier is known.

    Until then it is only looked up: this step comes again after a person's approval. The caller
    holds the log's lock.

    Raises:
        PermanentError: PII-002, where a key by which earlier invoices are found is gone.
    """
    claim = Claim()
    details = party.entry.details if party.entry else None
    facts = Facts(
        number=fields.invoice_number or "",
        document=document,
        amount_minor=fields.amount_minor,
        currency=fields.currency or "",
        issued=fields.issue_date or "",
        account=named_details(fields).iban or (details.iban if details else ""),
        tax_id=compact(details.tax_id) if details else "",
    )
    if party.entry is not None:
        claims = bills.claim if party.state == KNOWN else bills.look_up
        try:
            claim = claims(run, party.entry.row, facts)
        except VerificationError as error:
            raise PermanentError(error.code, error.text) from error
    return {
        "duplicate_of": claim.duplicate_of,
        "duplicate_by": claim.matched,
        "bill": claim.sealed,
    }


def today() -> date:
    """The date at which an invoice is judged."""
    return datetime.fromtimestamp(now_ms() / 1000, UTC).date()


def plausible(issued: str | None, due: str | None, now: date) -> bool:
    """Whether an invoice of these dates can be due now; a date that it does not name can."""
    first, last = _day(issued), _day(due)
    if first and not now - AGE <= first <= now + ISSUED_AHEAD:
        return False
    if last and not now - AGE <= last <= now + DUE_AHEAD:
        return False
    return not (first and last and last < first)


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _is_ours(workspace: Workspace, buyer: str | None) -> bool:
    """Whether an invoice is to the workspace's own company; one that names nobody may be.

    Raises:
        PermanentError: PII-002, where the company's row is not as the log says.
    """
    try:
        own = suppliers.own(workspace)
    except VerificationError as error:
        raise PermanentError(error.code, error.text) from error
    if own is None or not buyer:
        return True
    return f" {plain_name(own.name)} " in f" {plain_name(buyer)} "
