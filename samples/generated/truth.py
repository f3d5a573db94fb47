"""What a generated invoice says, as a person reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The facts that a person sees on the page, and whether they may be paid.

    ``total_due`` is empty and ``amount_minor`` is 0 where a person sees no amount due.
    ``forged`` is what a parser reads in its place: a sum, an IBAN, a currency or a name.
    """

    invoice_number: str
    seller: str
    buyer: str
    iban: str
    currency: str
    total_due: str
    amount_minor: int
    issue_date: str
    due_date: str | None
    payable: bool
    reason: str
    forged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One invoice: its name says seed, kind, layout and language."""

    name: str
    kind: str
    layout: str
    language: str
    pdf: bytes
    truth: Truth
