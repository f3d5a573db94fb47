"""Pages as rows of cells, the way an eye reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pipeline.steps.extract.page_text.dates import fold
from pipeline.steps.extract.reader import Page

_CELL: Final = re.compile(r"[^ ]+(?: [^ ]+)*")
_CONTINUED: Final = re.compile(r":$|\((?!\d)|(?:in|ex)[ck]l?\b\.?|(?:ohne|hors|sans|bez|zzgl\.?) ")
_TORN_LEFT: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[.,'’]\d{3})*[.,'’]?$")
_TORN_RIGHT: Final = re.compile(r"[.,'’]?\d{2,3}(?!\d)")
_GAP_MAX: Final = 3  # columns that a wide space inside a number can take
_WORD: Final = re.compile(r"\w+")
_ROWS_MAX: Final = 5_000  # 50 pages of 100 lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A piece of text that stands alone in its row, with its columns on the page."""

    text: str
    start: int
    end: int

    @property
    def folded(self) -> str:
        """The text as labels are compared: lower case, no accents."""
        return fold(self.text)

    def overlaps(self, other: "Cell") -> bool:
        """Whether one stands above or below the other."""
        return self.start < other.end + 2 and other.start < self.end + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a page; never without a cell."""

    page: int
    cells: tuple[Cell, ...]

    @property
    def torn(self) -> bool:
        """Whether a number may run over a gap, as in ``1  234,00``: then none is certain."""
        return any(
            right.start - left.end <= _GAP_MAX
            and _TORN_LEFT.search(left.text)
            and _TORN_RIGHT.match(right.text)
            for left, right in pairwise(self.cells)
        )

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


def rows_of(pages: Iterable[Page]) -> list[Row]:
    """The rows of all pages in order, then the lines that the layout of a page left out.

    A layout drops rotated text, such as a stamp, and knows no annotations.
    """
    rows: list[Row] = []
    for page in pages:
        seen = set(_WORD.findall(page.laid_out))
        lost = [line for line in page.plain.splitlines() if set(_WORD.findall(line)) - seen]
        for line in (*page.laid_out.splitlines(), *lost):
            cells = _cells(line.expandtabs(4))
            if cells and len(rows) < _ROWS_MAX:
                rows.append(Row(page=page.number, cells=cells))
    return rows


def _cells(line: str) -> tuple[Cell, ...]:
    """The pieces of a line; a colon or a remark such as "incl. VAT" belongs to its label."""
    cells: list[Cell] = []
    for match in _CELL.finditer(line):
        start, text = match.start(), match[0]
        if cells and _CONTINUED.match(text.casefold()) and not any(map(str.isdigit, text)):
            last = cells.pop()
            start, text = last.start, f"{last.text} {text}"
        cells.append(Cell(text=text, start=start, end=match.end()))
    return tuple(cells)
