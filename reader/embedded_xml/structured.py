"""An invoice as its embedded XML codes it, before anything is decided about it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from reader.embedded_xml.xmltree import Node
from reader.invoice import Evidence, Given

_DECIMAL: Final = re.compile(r"[+-]?\d{1,15}(\.\d{1,12})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A seller or buyer as the XML names it."""

    name: str | None = None
    address: str | None = None
    email: str | None = None


class Tax(NamedTuple):
    """The tax of one rate (BG-23): what it is reckoned on, the rate, and the tax itself."""

    base: Decimal | None
    percent: Decimal | None
    amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """The coded fields; lists where the standard allows one and a hostile file has several.

    ``sums`` are the amounts of the document, its lines, allowances and charges by the terms of
    EN 16931, such as ``BT-112``; a term without an amount is not among them.
    """

    credit: bool = False
    copy: bool = False
    numbers: tuple[str, ...] = ()
    type_codes: tuple[str, ...] = ()
    currencies: tuple[str, ...] = ()
    dues: tuple[Decimal | None, ...] = ()
    due_currencies: tuple[str, ...] = ()
    sums: Mapping[str, tuple[Decimal, ...]] = field(default_factory=dict)
    taxes: tuple[Tax, ...] = ()
    seller: Party = Party()
    buyer: Party = Party()
    payee: str | None = None
    references: tuple[str, ...] = ()
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

    def completed(self, given: Given) -> "Coded":
        """With the seller and the number that a person says, where the data has none."""
        coded = self
        if given.get("invoice_number") and not coded.numbers:
            coded = replace(coded, numbers=(given["invoice_number"],))
        if given.get("seller") and not coded.seller.name:
            coded = replace(coded, seller=replace(coded.seller, name=given["seller"]))
        return coded

    def sum_of(self, term: str) -> Decimal:
        """The document's first amount of a term, zero where it has none."""
        return self.sums.get(term, (Decimal(0),))[0]


def amount(text: str) -> Decimal | None:
    """An XML decimal; None for exponents, infinities, thousands separators, rubbish."""
    return Decimal(text) if _DECIMAL.fullmatch(text.strip()) else None


def is_true(text: str) -> bool:
    """Whether it says so, as ``xs:boolean`` or carelessly."""
    return text.casefold() in ("true", "1")


def iso_date(text: str | None) -> str | None:
    """``20180305``, ``2018-03-05`` and ``2018-03-05T00:00:00`` as an ISO date; else None."""
    match = re.match(r"(\d{4})-?(\d\d)-?(\d\d)(?:\D|$|\d{4,6}$)", (text or "").strip())
    if not match:
        return None
    try:
        return date(*map(int, match.groups())).isoformat()
    except ValueError:
        return None


def sums_at(
    root: Node, paths: Mapping[str, str], changes: tuple[str, str, str], currency: str | None
) -> dict[str, tuple[Decimal, ...]]:
    """The amounts by their terms: at paths, and of allowances and charges.

    ``changes`` are the paths of those, of what tells one from the other, and of their amounts.
    An amount in another currency than the invoice's, such as that of accounting, is left out.
    """
    path, indicator, value = changes
    nodes = {term: [*root.all(path)] for term, path in paths.items()}
    for term, said in (("BT-92", "false"), ("BT-99", "true")):
        found = [each for each in root.all(path) if each.value(indicator) == said]
        nodes[term] = [*nodes.get(term, ()), *(node for each in found for node in each.all(value))]
    own = (None, "", currency)
    return {
        term: values
        for term, found in nodes.items()
        if (values := tuple(_amounts(e for e in found if e.attribute("currencyID") in own)))
    }


def _amounts(nodes: Iterable[Node]) -> Iterator[Decimal]:
    values = (amount(node.text or "") for node in nodes)
    return (value for value in values if value is not None)


def taxes_at(root: Node, path: str, *parts: str) -> tuple[Tax, ...]:
    """The tax of each rate, by the paths of its base, its rate and its amount."""
    return tuple(
        Tax(*(next(_amounts(each.all(part)), None) for part in parts)) for each in root.all(path)
    )


def joined(*parts: str | None) -> str | None:
    """Address parts on one line."""
    return ", ".join(" ".join(part.split()) for part in parts if part) or None
