"""The labelled amounts of a document: what its labels call each sum."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from itertools import combinations
from typing import Final, Literal

from reader.page_text import vocabulary
from reader.page_text.amounts import Amount, Separator, amounts_in
from reader.page_text.asked import asked
from reader.page_text.dates import fold, has_date
from reader.page_text.rows import Cell, Row

Kind = Literal["due", "total", "net", "tax", "off", "adjust", "round", "earlier", "aside", "stray"]
_ADDED: Final = re.compile(r"(?:zzgl|zuzugl|plus|add|\+|mas|piu|plius)\b|\+")
_SPECIFIC: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("aside", vocabulary.CONDITIONAL),
    ("earlier", vocabulary.EARLIER),
    ("due", vocabulary.DUE),
)
_LABEL_CHARS_MAX: Final = 120
_LABEL_CHARS_DUE: Final = 30
_STRAY_CHARS_MAX: Final = 60  # more is a sentence
_PRODUCT_SLACK: Final = Decimal("0.02")
_LINE_NUMBERS: Final = range(3, 9)
_RATE: Final = re.compile(r"(\d{1,2}(?:[.,]\d{1,3})?) ?%")
_CENT: Final = Decimal("0.01")
_ROWS_BELOW: Final = 3  # of a label, in which its amount can be
_POINTS_BELOW: Final = 45.0
_APART: Final = 15  # columns: what is further to the left is another block
_SHIFTED: Final = 8  # columns that an amount may begin to the right of its label's end


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A labelled amount; ``value`` is None where it cannot be read for certain.

    ``place`` is the row's number in the document.
    """

    kind: Kind
    value: Decimal | None
    amount: Amount
    row: Row
    cell: Cell
    place: int


@dataclass(slots=True, kw_only=True)
class Sums:
    """What a document's labels say about its amounts.

    ``strays`` are the amounts beside a label of unknown meaning, or beside none.
    """

    candidates: list[Candidate] = field(default_factory=list)
    strays: list[Candidate] = field(default_factory=list)
    every: set[Decimal] = field(default_factory=set)
    whole: bool = False  # whether sums are printed without decimals
    unfilled: list[tuple[Kind, int]] = field(default_factory=list)  # labels without a sum

    def of(self, kind: Kind) -> list[Candidate]:
        return [item for item in self.candidates if item.kind == kind]

    def values(self, kind: Kind) -> set[Decimal | None]:
        return {item.value for item in self.of(kind)}


def printed_as(rows: Sequence[Row], due: Decimal) -> Iterator[Candidate]:
    """Where an amount is printed that somebody says is due; the last place first."""
    for place, row in reversed([*enumerate(rows)]):
        for cell in row.cells:
            for amount in amounts_in(cell.text):
                if due in amount.readings:
                    yield Candidate(
                        kind="due", value=due, amount=amount, row=row, cell=cell, place=place
                    )


@lru_cache(maxsize=4_096)
def kind_of(label: str) -> Kind | None:
    """What a folded label announces, the most specific meaning first."""
    if len(label) > _LABEL_CHARS_MAX or not vocabulary.LABEL_LIKE.search(label):
        return None
    for kind, pattern in _SPECIFIC:
        if pattern.search(label):
            return "net" if kind == "due" and vocabulary.EXCLUDING.search(label) else kind
    return _sum_kind(label)


def _sum_kind(label: str) -> Kind | None:
    """What a label that names a total, a tax or a part of them announces."""
    total = bool(vocabulary.TOTAL.search(label))
    net, tax = bool(vocabulary.NET.search(label)), bool(vocabulary.TAX.search(label))
    if not total and (vocabulary.ROUNDING.search(label) or vocabulary.TAKEN_OFF.search(label)):
        return "round" if vocabulary.ROUNDING.search(label) else "off"
    if total and vocabulary.GROSS.search(label) and not net:
        return "total"
    if net or tax:
        return "tax" if tax and (not net or _ADDED.match(label)) else "net"
    adjusts = bool(vocabulary.ADJUSTMENT.search(label))
    if total:
        return "aside" if adjusts or vocabulary.OTHER.search(label) else "total"
    return "adjust" if adjusts else None


class _Reader:
    """Reads amounts in the way of one document."""

    def __init__(self, rows: Sequence[Row], separator: Separator, decimals: int) -> None:
        self.rows, self.separator, self.decimals = rows, separator, decimals
        every = [abs(each) for row in rows for a in amounts_in(row.text) for each in a.readings]
        self.every = set(every)
        # The first reading of 1,155 is the one with thousands.
        self.whole = not any(a.readings[0] % 1 for row in rows for a in amounts_in(row.text))

    def candidate(self, kind: Kind, place: int, cell: Cell, amount: Amount) -> Candidate:
        row = self.rows[place]
        value = None if row.torn else self.value(amount)
        return Candidate(kind=kind, value=value, amount=amount, row=row, cell=cell, place=place)

    def value(self, amount: Amount) -> Decimal | None:
        """The value, unless it has a fraction of the smallest coin, as unit prices do."""
        value = amount.value(self.separator, self.decimals)
        fits = value is not None and value.scaleb(self.decimals) == int(value.scaleb(self.decimals))
        return value if fits else None


def sums_of(rows: Sequence[Row], separator: Separator, decimals: int) -> Sums:
    """Collect every labelled amount: on the label's row, below it, or in a sentence that asks."""
    reader = _Reader(rows, separator, decimals)
    sums = Sums(every=reader.every, whole=reader.whole)
    carried = _carried(rows)
    for place, row in enumerate(rows):
        if _is_line(row):
            continue
        for position in range(len(row.cells)):
            found = [*_labelled(reader, place, position, carried)]
            sums.candidates += found
            missing = None if found else _unfilled(row, position)
            sums.unfilled += [(missing, place)] if missing else []
    for place, cell, amount in asked(rows):
        sums.candidates.append(reader.candidate("due", place, cell, amount))
    taken = {(item.place, item.cell.start) for item in sums.candidates}
    sums.strays = [each for each in _strays(reader) if (each.place, each.cell.start) not in taken]
    return sums


def _labelled(
    reader: _Reader, place: int, position: int, carried: set[Decimal]
) -> Iterator[Candidate]:
    row = reader.rows[place]
    cell = row.cells[position]
    kind = kind_of(_label(cell))
    if kind is None or (kind == "due" and _dated(row, position)):
        return
    found = _beside(row, position) or _below(
        reader.rows, place, cell, strict=kind != "due", whole=reader.whole
    )
    for where, other, amount in found:
        here = reader.candidate(kind, place + where, other, amount)
        if kind == "adjust" and here.value and vocabulary.DISCOUNT.search(_label(cell)):
            here = replace(here, value=-abs(here.value))
        if vocabulary.CARRIED.search(_label(cell)) and carried & {
            abs(each) for each in amount.readings
        }:
            yield replace(here, kind="aside")
        elif kind in ("due", "total") and vocabulary.EXCLUDING.search(
            fold(other.text[amount.end :])
        ):
            yield replace(here, kind="net")
        else:
            yield here


def _unfilled(row: Row, position: int) -> Kind | None:
    """What a label without a sum announces, if it is the last of its row and no sentence."""
    label = _label(row.cells[position])
    if len(label) > _LABEL_CHARS_DUE or _dated(row, position) or any(map(str.isdigit, label)):
        return None
    kind = kind_of(label)
    return kind if kind == "due" or not row.cells[1:] else None


def _dated(row: Row, position: int) -> bool:
    """Whether a day follows the label: then it says when to pay."""
    here, *right = (cell.text for cell in row.cells[position : position + 2])
    if any(amount.firm for amount in amounts_in(here)):
        return False
    return has_date(here) or any(has_date(text) for text in right)


def _carried(rows: Sequence[Row]) -> set[Decimal]:
    """The sums at the end of a page that the next one begins with, called so on either."""
    pages: dict[Decimal, set[int]] = {}
    named: set[Decimal] = set()
    for row in rows:
        for amount in amounts_in(row.text):
            for value in map(abs, amount.readings):
                pages.setdefault(value, set()).add(row.page)
                if vocabulary.CARRIED.search(fold(row.text)):
                    named.add(value)
    return {value for value in named if len(pages[value]) > 1}


def _is_line(row: Row) -> bool:
    """Whether the row counts something: a number times a price is its amount."""
    numbers = [abs(amount.readings[-1]) for cell in row.cells for amount in amounts_in(cell.text)]
    if len(numbers) not in _LINE_NUMBERS:
        return False
    return any(
        abs(a * b - c) <= _PRODUCT_SLACK and c
        for place, c in enumerate(numbers)
        for a, b in combinations(numbers[:place], 2)
    )


def _strays(reader: _Reader) -> Iterator[Candidate]:
    """Amounts that end their row, alone or beside a label that says nothing known."""
    for place, row in enumerate(reader.rows):
        last = row.cells[-1]
        firm = [amount for amount in amounts_in(last.text) if amount.firm]
        if len(firm) != 1 or _is_line(row) or last.text[firm[0].end :].strip(" .)*"):
            continue
        before = last.text[: firm[0].start] or (row.cells[-2].text if row.cells[1:] else "")
        label = fold(before)
        if len(label) <= _STRAY_CHARS_MAX and kind_of(label) is None and not _numbers(row, last):
            yield reader.candidate("stray", place, last, firm[0])


def _numbers(row: Row, last: Cell) -> bool:
    """Whether there are numbers before the last cell, as in the lines of a table."""
    others = [cell for cell in row.cells if cell is not last]
    return any(amounts_in(cell.text) and not _worded(cell.text) for cell in others)


def _label(cell: Cell) -> str:
    """The cell's words before its amount."""
    text = cell.text
    first = next((a for a in amounts_in(text) if a.firm and _worded(text[: a.start])), None)
    return fold(text[: first.start] if first else text).strip(" :.*•-=>")


def _worded(text: str) -> bool:
    return bool(vocabulary.LABEL_LIKE.search(fold(text)))


_Place = tuple[int, Cell, Amount]


def _beside(row: Row, position: int) -> list[_Place]:
    """The amount that belongs to a label: after it in its cell, else to its right.

    Several to the right are a table's columns, which leave doubt.
    """
    cell = row.cells[position]
    inside = [a for a in amounts_in(cell.text) if a.firm and _worded(cell.text[: a.start])]
    if inside:
        named = [(0, cell, amount) for amount in inside]
        beyond = [(0, each, a) for each in row.cells[position + 1 :] for a in amounts_in(each.text)]
        return _taxes([*named, *beyond], cell) or named
    right: list[_Place] = []
    for other in row.cells[position + 1 :]:
        here = amounts_in(other.text)
        if not here:
            if _worded(other.text) and len(other.text) > 3:
                break
            continue
        if kind_of(_label(other)) is not None:
            break
        right.extend((0, other, amount) for amount in here)
    firm = [each for each in right if each[2].firm] or right
    return _taxes(firm, cell) or firm


def _taxes(places: Sequence[_Place], label: Cell) -> list[_Place]:
    """Of amounts beside a tax's label, the one that is its rate of another; none of several."""
    if kind_of(_label(label)) != "tax":
        return []
    rates = [Decimal(each.replace(",", ".")) for each in _RATE.findall(label.text)]
    values = [abs(amount.readings[0]) for *_, amount in places]
    found = [
        place
        for place, value in zip(places, values, strict=True)
        if any(
            abs(value - base * rate / 100) <= _coin(place[2]) / 2
            for rate in rates
            for base in values
            if base != value
        )
    ]
    return found if len(found) == 1 else []


def _coin(amount: Amount) -> Decimal:
    """The smallest difference between two amounts that are printed so."""
    return _CENT if amount.cents else Decimal(1)


def _below(
    rows: Sequence[Row], index: int, label: Cell, *, strict: bool, whole: bool
) -> list[_Place]:
    """The amount under a label; ``strict`` asks that all of its row is below such labels."""
    if strict and amounts_in(rows[index].text):
        return []
    for step, row in enumerate(rows[index + 1 : index + 1 + _ROWS_BELOW], start=1):
        if strict and amounts_in(row.text) and len(row.cells) == len(rows[index].cells):
            row_cells = [(p, c) for p, c in enumerate(row.cells) if rows[index].cells[p] is label]
        else:
            row_cells = [*enumerate(row.cells)]
        for position, cell in row_cells:
            alone = not position or cell.start - row.cells[position - 1].end > _APART
            shifted = alone and label.start <= cell.start <= label.end + _SHIFTED
            here = amounts_in(cell.text)
            pure = bool(here) and not _worded(_without(cell.text, here))
            if cell.overlaps(label) and not pure:
                return []
            if not pure or not (cell.overlaps(label) or (shifted and not strict)):
                continue
            if row.page != rows[index].page or not _near(cell, label):
                return []
            if strict and _is_table(rows[index], row):
                return []
            return [(step, cell, amount) for amount in here if amount.firm or whole]
    return []


def _is_table(header: Row, row: Row) -> bool:
    """Whether words are below one of the header's cells, as in the lines of a table."""
    worded = [cell for cell in row.cells if not amounts_in(cell.text)]
    return _is_line(row) or any(cell.overlaps(each) for cell in worded for each in header.cells)


def _near(cell: Cell, label: Cell) -> bool:
    if cell.box is None or label.box is None:
        return True
    return cell.box.top - label.box.bottom <= _POINTS_BELOW


def _without(text: str, amounts: Iterable[Amount]) -> str:
    for amount in reversed(list(amounts)):
        text = text[: amount.start] + text[amount.end :]
    return text
