"""An invoice as its embedded XML codes it, before anything is decided about it."""

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Final

from reader.embedded_xml.xmltree import Node
from reader.invoice import Evidence

_DECIMAL: Final = re.compile(r"[+-]?\d{1,15}(\.\d{1,12})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A seller or buyer as the XML names it."""

    name: str | None = None
    address: str | None = None
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """The coded fields; lists where the standard allows one and a hostile file has several."""

    credit: bool = False
    numbers: tuple[str, ...] = ()
    type_codes: tuple[str, ...] = ()
    currencies: tuple[str, ...] = ()
    dues: tuple[Decimal | None, ...] = ()
    due_currencies: tuple[str, ...] = ()
    grand_total: Decimal | None = None
    prepaid: Decimal | None = None
    rounding: Decimal | None = None
    seller: Party = Party()
    buyer: Party = Party()
    payee: str | None = None
    means: tuple[str, ...] = ()
    mandate: bool = False
    ibans: tuple[str, ...] = ()
    payer_ibans: tuple[str, ...] = ()
    issue_date: str | None = None
    due_date: str | None = None
    terms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    line_notes: tuple[str, ...] = ()
    evidence: dict[str, Evidence] = field(default_factory=dict)


def decimal_value(text: str) -> Decimal | None:
    """An XML decimal; None for exponents, infinities, thousands separators, rubbish."""
    return Decimal(text) if _DECIMAL.fullmatch(text.strip()) else None


def iso_date(text: str | None) -> str | None:
    """``20180305``, ``2018-03-05`` and ``2018-03-05T00:00:00`` as an ISO date; else None."""
    match = re.match(r"(\d{4})-?(\d\d)-?(\d\d)(?:\D|$|\d{4,6}$)", (text or "").strip())
    if not match:
        return None
    try:
        return date(*map(int, match.groups())).isoformat()
    except ValueError:
        return None


def decimal_at(root: Node, path: str) -> Decimal | None:
    """The amount at a path; None where there is none."""
    text = root.value(path)
    return decimal_value(text) if text else None


def joined(parts: list[str | None]) -> str | None:
    """Address parts on one line."""
    return ", ".join(" ".join(part.split()) for part in parts if part) or None
