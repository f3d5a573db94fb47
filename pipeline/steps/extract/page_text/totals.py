"""Which amount a page asks for: labelled candidates, and a verdict that never guesses."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Final, Literal

from pipeline.steps.extract.page_text.amounts import Amount, Separator, amounts_in
from pipeline.steps.extract.page_text.dates import fold
from pipeline.steps.extract.page_text.rows import Cell, Row
from pipeline.steps.extract.page_text.vocabulary import (
    DUE,
    EARLIER,
    EXCLUDING,
    GROSS,
    LABEL_LIKE,
    NET,
    OTHER,
    TAKEN_OFF,
    TAX,
    TOTAL,
)

Kind = Literal["due", "total", "net", "tax", "off", "earlier"]
_LABEL_CHARS_MAX: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A labelled amount; ``value`` is None where it cannot be read for certain."""

    kind: Kind
    value: Decimal | None
    amount: Amount
    row: Row

    @property
    def page(self) -> int:
        return self.row.page


@dataclass(slots=True, kw_only=True)
class Sums:
    """What a document's labels say about its amounts."""

    candidates: list[Candidate] = field(default_factory=list)
    every: set[Decimal] = field(default_factory=set)

    def of(self, kind: Kind) -> list[Candidate]:
        return [item for item in self.candidates if item.kind == kind]

    def values(self, kind: Kind) -> set[Decimal | None]:
        return {item.value for item in self.of(kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The candidate to pay; ``certain`` is False where the page leaves any doubt."""

    candidate: Candidate | None
    certain: bool


def kind_of(label: str) -> Kind | None:
    """What a folded label announces, the most specific meaning first."""
    if len(label) > _LABEL_CHARS_MAX or not LABEL_LIKE.search(label):
        return None
    if EARLIER.search(label):
        return "earlier"
    if DUE.search(label):
        return "net" if EXCLUDING.search(label) else "due"
    if TAKEN_OFF.search(label):
        return "off"
    if GROSS.search(label) and TOTAL.search(label) and not NET.search(label):
        return "total"
    if NET.search(label):
        return "net"
    if TAX.search(label):
        return "tax"
    if TOTAL.search(label) and not OTHER.search(label):
        return "total"
    return None


def sums_of(rows: Sequence[Row], separator: Separator, decimals: int) -> Sums:
    """Collect every labelled amount, on the label's row or, for what is due, below it."""
    sums = Sums()
    for index, row in enumerate(rows):
        for amount in amounts_in(row.text):
            sums.every.update(abs(reading) for reading in amount.readings)
        for position, cell in enumerate(row.cells):
            label = _label(cell)
            kind = kind_of(label)
            if kind is None:
                continue
            found = _beside(row, position) or (_below(rows, index, cell) if kind == "due" else [])
            for amount in found:
                value = None if row.torn else amount.value(separator, decimals)
                value = _fitting(value, decimals)
                sums.candidates.append(Candidate(kind=kind, value=value, amount=amount, row=row))
    if not sums.of("due") and not sums.of("total"):
        sums.candidates += _in_tables(rows, separator, decimals)
    return sums


def _in_tables(rows: Sequence[Row], separator: Separator, decimals: int) -> Iterator[Candidate]:
    """Totals at the foot of a table's column, believed only where their row adds up to them."""
    for index, header in enumerate(rows):
        for cell in header.cells:
            if amounts_in(header.text) or kind_of(_label(cell)) != "total":
                continue
            for row in rows[index + 1 : index + 4]:
                firm = [amount for amount in amounts_in(row.text) if amount.firm]
                under = [c for c in row.cells if c.overlaps(cell) and amounts_in(c.text)]
                last = _last_of_sum(firm)
                if len(firm) > 2 and len(last) == 1 and under and under[-1] is row.cells[-1]:
                    value = _fitting(last[0].value(separator, decimals), decimals)
                    yield Candidate(kind="total", value=value, amount=last[0], row=row)


def _fitting(value: Decimal | None, decimals: int) -> Decimal | None:
    """The value, unless it has a fraction of the smallest coin, as unit prices do."""
    fits = value is not None and value.scaleb(decimals) == int(value.scaleb(decimals))
    return value if fits else None


def _label(cell: Cell) -> str:
    """The cell's words before its amount."""
    text = cell.text
    first = next((a for a in amounts_in(text) if a.firm and _worded(text[: a.start])), None)
    return fold(text[: first.start] if first else text).strip(" :.*•-")


def _worded(text: str) -> bool:
    return bool(LABEL_LIKE.search(fold(text)))


def _beside(row: Row, position: int) -> list[Amount]:
    """The amount that belongs to a label: after it in its cell, else to its right.

    Several to the right are a table's columns: the last one counts when it is
    the sum of two others, else all do, which leaves doubt.
    """
    cell = row.cells[position]
    inside = [a for a in amounts_in(cell.text) if a.firm and _worded(cell.text[: a.start])]
    if inside:
        return _last_of_sum(inside)
    right: list[Amount] = []
    for other in row.cells[position + 1 :]:
        here = amounts_in(other.text)
        if not here:
            if _worded(other.text) and len(other.text) > 3:
                break
            continue
        if kind_of(_label(other)) is not None:
            break
        right.extend(here)
    firm = [amount for amount in right if amount.firm] or right
    return _last_of_sum(firm)


def _last_of_sum(amounts: list[Amount]) -> list[Amount]:
    """The last amount alone where it is the sum of two before it; else all of them."""
    *parts, last = (amount.readings[0] for amount in amounts) if amounts else (Decimal(0),)
    if any(a + b == last for a, b in combinations(parts, 2)):
        return amounts[-1:]
    return amounts


def _below(rows: Sequence[Row], index: int, label: Cell) -> list[Amount]:
    for row in rows[index + 1 : index + 3]:
        for cell in row.cells:
            here = amounts_in(cell.text)
            if cell.overlaps(label) and here and not _worded(_without(cell.text, here)):
                return [amount for amount in here if amount.firm][:1]
    return []


def _without(text: str, amounts: Iterable[Amount]) -> str:
    for amount in reversed(list(amounts)):
        text = text[: amount.start] + text[amount.end :]
    return text


def judge(sums: Sums) -> Verdict:
    """Choose the amount to pay now, if the labels agree on one."""
    if any(item.value is None or item.value for item in sums.of("earlier")):
        return Verdict(candidate=_some(sums), certain=False)
    dues, totals = sums.of("due"), sums.of("total")
    if dues:
        return _judge_due(sums, dues, totals)
    if not totals:
        return Verdict(candidate=None, certain=False)
    best = _gross(sums, totals)
    if best is None or best.value is None or not _plain(best, sums):
        return Verdict(candidate=_some(sums), certain=False)
    off = {abs(value) for value in sums.values("off") if value is not None} - {Decimal(0)}
    doubtful = bool(off) or None in sums.values("off")
    return Verdict(candidate=best, certain=not doubtful and not _is_net(best.value, sums))


def _judge_due(sums: Sums, dues: list[Candidate], totals: list[Candidate]) -> Verdict:
    """What is due must be one amount, and either the total or the total less what was paid."""
    best = dues[0]
    if len(sums.values("due")) != 1 or best.value is None or not _plain(best, sums):
        return Verdict(candidate=best, certain=False)
    known = {value for value in sums.values("total") if value is not None}
    if not known or best.value in known:
        return Verdict(candidate=best, certain=bool(known) or not totals)
    off = [abs(value) for value in sums.values("off") if value]
    parts = {sum(some) for size in (1, 2, 3) for some in combinations(off[:8], size)}
    return Verdict(candidate=best, certain=any(best.value + part in known for part in parts))


def _gross(sums: Sums, totals: list[Candidate]) -> Candidate | None:
    """The one total; of several, the one that is another plus tax."""
    values = {item.value for item in totals}
    if len(values) == 1:
        return totals[-1]
    if None in values:
        return None
    taxes = [value for value in sums.values("tax") if value]
    top = max(totals, key=lambda item: item.value or Decimal(0))
    parts = {sum(some) for size in (1, 2, 3) for some in combinations(taxes[:8], size)}
    rest = values - {top.value}
    explained = all(value is not None and top.value - value in parts for value in rest if top.value)
    return top if explained and top.value else None


def _is_net(value: Decimal, sums: Sums) -> bool:
    """Whether a tax is listed that, added to this total, gives an amount of the document too."""
    return any(tax and tax > 0 and value + tax in sums.every for tax in sums.values("tax"))


def _plain(candidate: Candidate, sums: Sums) -> bool:
    """Whether the amount is clearly money, and not a count followed by an amount."""
    tail = candidate.amount.tail
    if tail is None or tail not in sums.every:
        return candidate.amount.firm
    repeated = [item for item in sums.candidates if item.value == candidate.value]
    added = {net + tax for net in sums.values("net") for tax in sums.values("tax") if net and tax}
    return len(repeated) > 1 or candidate.value in added


def _some(sums: Sums) -> Candidate | None:
    """Any amount to show beside a verdict of doubt; never paid."""
    usable = [*sums.of("due"), *sums.of("total"), *sums.of("earlier")]
    return next((item for item in usable if item.value is not None), None)
