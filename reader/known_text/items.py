"""The items of an invoice: the one run of amounts in one column that adds up to a sum below it.

What an item says is the supplier's goods and differs each time, so its text is no unit. What
only stands near the items is one: a row of zero or below, a line that could be a row of its own.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Final

from reader.known_text.mask import words_in
from reader.page_text.amounts import amounts_in
from reader.page_text.dates import MONTHS, fold
from reader.page_text.rows import Cell, Row
from reader.page_text.text import Printed
from reader.page_text.vocabulary import CARRIED
from reader.page_view.pdfium import Box

_ALIGNED: Final = 3.0  # points: the edges of one column
_EDGES: Final[tuple[Callable[[Box], float], ...]] = (
    *(lambda box: box.right, lambda box: box.left),
    lambda box: (box.left + box.right) / 2,
)
_OUTSIDE: Final = 6.0  # points that a cell may begin before the others, or end after them
_INDENT: Final = 4.0  # points
_SMALLER: Final = 0.93  # of the height of a row's text
_LARGER: Final = 1.2
_CLOSER: Final = 0.9  # of the distance between two rows
_LINES: Final = 2.0  # heights between a row and what belongs to it
_NUMBER: Final = re.compile(r"\W{0,2}(?:[^\W\d]{1,3}\W{0,2})?\d")  # a currency may be before it
_WORD: Final = re.compile(r"[^\W\d_]{5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The rows of items by their places in the document, and how far they reach across."""

    rows: frozenset[int] = frozenset()
    first: int = -1
    left: float = 0.0
    right: float = 0.0
    height: float = 0.0
    carried: frozenset[Decimal] = frozenset()  # what they come to before the last of them
    until: float = 0.0  # where the column of descriptions ends
    total: Decimal = Decimal(0)
    apart: frozenset[Cell] = frozenset()  # cells of these rows in none of their columns

    def hold(self, place: int, cell: Cell) -> bool:
        """Whether a cell is part of an item: in one of its rows, its column and its size."""
        box = cell.box
        return (
            place in self.rows
            and box is not None
            and cell not in self.apart
            and box.left >= self.left - _OUTSIDE
            and box.right <= self.right + _OUTSIDE
            and box.height <= self.height * _LARGER
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An amount that may be an item's: its row's place, its cell, its value."""

    place: int
    cell: Cell
    value: Decimal


def items_of(document: Printed) -> Items:
    """The items of a document; none where no column of amounts adds up to one of its sums."""
    sums = (each for each in document.sums.candidates if each.kind not in ("aside", "adjust"))
    summed = {each.place for each in sums}  # freight is an item where it is added like one
    targets = [
        (each.place, each.value)
        for each in (*document.sums.candidates, *document.sums.strays)
        if each.value
    ]
    runs = [
        run
        for column in _columns(document, summed)
        for run in _runs(column, targets)
        if any(entry.value > 0 for entry in run)
    ]
    best = max(runs, key=lambda run: (len(run), run[-1].cell.end), default=None)
    return Items() if best is None else _items(document.rows, best)


def _columns(document: Printed, summed: set[int]) -> Iterator[list[_Entry]]:
    """The amounts of each column: what shares its right edge, its left one or its middle."""
    found = [
        _Entry(place=place, cell=cell, value=value)
        for place, row in enumerate(document.rows)
        if place not in summed
        for cell in row.cells
        if cell.box is not None and (value := _amount(cell, whole=document.sums.whole)) is not None
    ]
    for edge in _EDGES:
        columns: list[list[_Entry]] = []
        for entry in sorted(found, key=lambda each: edge(_box(each.cell))):
            if columns and edge(_box(entry.cell)) - edge(_box(columns[-1][-1].cell)) <= _ALIGNED:
                columns[-1].append(entry)
            else:
                columns.append([entry])
        for column in columns:
            yield _not_carried(document.rows, sorted(column, key=lambda each: each.place))


def _amount(cell: Cell, *, whole: bool) -> Decimal | None:
    """The one amount that a cell is; None where it says more."""
    found = amounts_in(cell.text)
    if len(found) != 1 or not (found[0].firm or whole):
        return None
    rest = cell.text[: found[0].start] + cell.text[found[0].end :]
    return None if rest.strip(" .:*()|") else found[0].readings[0]


def _not_carried(rows: Sequence[Row], column: Sequence[_Entry]) -> list[_Entry]:
    """Without the running sums at the end and the head of a page, called so."""
    kept: list[_Entry] = []
    for entry in column:
        said = fold(rows[entry.place].text)
        if CARRIED.search(said) and entry.value == sum(each.value for each in kept):
            continue
        kept.append(entry)
    return kept


def _runs(
    column: Sequence[_Entry], targets: Iterable[tuple[int, Decimal]]
) -> Iterator[Sequence[_Entry]]:
    """The longest run of a column that adds up to each sum and ends above it."""
    until = [Decimal(0), *accumulate(entry.value for entry in column)]
    for place, target in targets:
        first: dict[Decimal, int] = {}
        best: Sequence[_Entry] = ()
        for end, total in enumerate(until):
            if end and column[end - 1].place >= place:
                break
            start = first.get(total - target)
            if start is not None and end - start > len(best):
                best = column[start:end]
            first.setdefault(total, end)
        if best:
            yield best


def _items(rows: Sequence[Row], run: Sequence[_Entry]) -> Items:
    own = {entry.place for entry in run if entry.value > 0}
    above = {
        place - 1
        for place in own
        if place and _is_wordless(rows[place]) and _describes(rows[place - 1], rows[place])
    }
    heights = sorted(_box(entry.cell).height for entry in run)
    items = Items(
        rows=frozenset(own),
        first=min(own | above),
        left=min(_usual(rows, places) for places in (own, above) if places),
        right=max(_box(entry.cell).right for entry in run),
        height=heights[len(heights) // 2],
        carried=frozenset([*accumulate(entry.value for entry in run)][:-1]),
        total=sum((entry.value for entry in run), Decimal(0)),
    )
    items = replace(items, until=_usual_end(rows, own, items))
    further = frozenset(_continuations(rows, own, items))
    items = replace(items, rows=items.rows | above | further)
    return replace(items, apart=frozenset(_apart(rows, own, items)))


def _apart(rows: Sequence[Row], own: Collection[int], items: Items) -> Iterator[Cell]:
    """The words in items that no cell of the head is above, nor of most items where none is."""
    head = [*_head(rows, items)]
    for place in own:
        others = head or [rows[other] for other in own if other != place]
        for cell in _inside(rows[place], items)[1:]:
            said = " ".join(word for word in cell.text.split() if fold(word) not in MONTHS)
            found = sum(any(share_column(cell.box, e.box) for e in row.cells) for row in others)
            if words_in(said) and not (found if head else 2 * found > len(others)):
                yield cell


def _head(rows: Sequence[Row], items: Items) -> Iterator[Row]:
    """The rows of several cells right above the items, each close to the next."""
    for below, above in pairwise(reversed(rows[: items.first + 1])):
        near = above.page == below.page and len(above.cells) > 1 and above.box and below.box
        if not near or _box(below).top - _box(above).top > _LINES * items.height:
            return
        yield above


def _usual_end(rows: Sequence[Row], own: Iterable[int], items: Items) -> float:
    """Where the first column of numbers begins: no description goes on under it."""
    found = [_inside(rows[place], items) for place in own]
    return min(_box(cells[min(1, len(cells) - 1)]).left for cells in found if cells)


def _usual(rows: Sequence[Row], places: Iterable[int]) -> float:
    """Where most of these rows begin; other columns may have lines to the left of some of them."""
    found = [_box(rows[place].cells[0]).left for place in places]
    counted = Counter(round(edge / _ALIGNED) for edge in found)
    most = max(counted, key=lambda each: (counted[each], each))
    return min(edge for edge in found if round(edge / _ALIGNED) == most)


def _continuations(rows: Sequence[Row], own: set[int], items: Items) -> Iterator[int]:
    """The lines without an amount that can only be more of the item above them.

    Lines of another column beside the items are none of theirs.
    """
    within = [(place, cells) for place, row in enumerate(rows) if (cells := _inside(row, items))]
    pairs = [
        (_box(below[0]).top - _box(above[0]).top, place)
        for (before, above), (place, below) in pairwise(within)
        if place in own and rows[before].page == rows[place].page
    ]
    further = [distance for distance, place in pairs if place != min(own)]
    apart = min(further or [distance for distance, _ in pairs], default=0.0)
    item: Cell | None = None
    page, bottom = 0, 0.0
    for place, cells in within:
        box = _box(cells[0])
        if place in own:
            item, page, bottom = cells[0], rows[place].page, box.top
            continue
        indented = item is not None and box.left >= _box(item).left + _INDENT
        smaller = box.height < items.height * _SMALLER
        closer = box.top - bottom <= apart * _CLOSER
        goes_on = (
            rows[place].page == page
            and len(cells) == 1
            and not any(each.firm for each in amounts_in(cells[0].text))
            and box.top - bottom <= _LINES * items.height
            and box.right <= items.until
            and (indented or smaller or closer)
        )
        if item is None or not goes_on:
            item = None
            continue
        yield place
        bottom = box.top


def share_column(one: Box | None, other: Box | None) -> bool:
    """Whether one stands above or below the other."""
    return bool(one and other and one.left < other.right and other.left < one.right)


def _inside(row: Row, items: Items) -> list[Cell]:
    """The cells of a row that stand where the items do."""
    return [
        cell
        for cell in row.cells
        if cell.box is not None
        and cell.box.left >= items.left - _OUTSIDE
        and cell.box.right <= items.right + _OUTSIDE
    ]


def _is_wordless(row: Row) -> bool:
    """Whether a row has a number and a price, and no description: that is above it."""
    return not _WORD.search(row.text) and all(_NUMBER.match(cell.text) for cell in row.cells)


def _describes(above: Row, row: Row) -> bool:
    """Whether the line above belongs to a row without words."""
    if above.box is None or row.box is None or above.page != row.page or len(above.cells) > 1:
        return False
    near = row.box.top - above.box.top <= _LINES * row.box.height
    return near and not any(each.firm for each in amounts_in(above.text))


def _box(part: Cell | Row) -> Box:
    if part.box is None:
        raise ValueError("it has no place on a page")
    return part.box
