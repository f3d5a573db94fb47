"""Pages as rows of cells, the way an eye reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from reader.page_text.dates import fold
from reader.page_view.lines import COLUMN, Line
from reader.page_view.page import Page
from reader.page_view.pdfium import Box
from reader.reader import clean

_CELL: Final = re.compile(r"[^ ]+(?: [^ ]+)*")
_CONTINUED: Final = re.compile(r":$|\((?!\d)|(?:in|ex)[ck]l?\b\.?|(?:ohne|hors|sans|bez|zzgl\.?) ")
_TORN_LEFT: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[.,'’]\d{3})*[.,'’]?$")
_TORN_RIGHT: Final = re.compile(r"[.,'’]?\d{2,3}(?!\d)")
_GAP_MAX: Final = 3  # columns that a wide space inside a number can take
_ROWS_MAX: Final = 5_000  # 50 pages of 100 lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A piece of text that stands alone in its row, with its columns on the page."""

    text: str
    start: int
    end: int
    box: Box | None = None  # where it is printed upright on the page
    signs: tuple[Box, ...] = ()  # where each of its characters is, without spaces

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

    @property
    def box(self) -> Box | None:
        """Where the whole row is printed upright on its page."""
        found = None
        for cell in self.cells:
            found = cell.box if found is None or cell.box is None else found.around(cell.box)
        return found


def rows_of(pages: Iterable[Page]) -> list[Row]:
    """The rows of all pages in order; text that is turned comes after its page's lines."""
    rows: list[Row] = []
    for page in pages:
        lines = [*(_cells(line) for line in page.lines), *map(cells_in, page.aside)]
        rows += [Row(page=page.number, cells=cells) for cells in lines if cells]
    return rows[:_ROWS_MAX]


def noted_rows(pages: Iterable[Page]) -> list[Row]:
    """What pages carry beside their printed text, line by line."""
    lines = [(page.number, cells_in(line)) for page in pages for line in page.noted.splitlines()]
    return [Row(page=number, cells=cells) for number, cells in lines if cells][:_ROWS_MAX]


def cells_in(line: str) -> tuple[Cell, ...]:
    """The pieces of a line of text, in which two spaces or more part columns."""
    return _joined(
        Cell(text=match[0], start=match.start(), end=match.end())
        for match in _CELL.finditer(line.expandtabs(4))
    )


def _cells(line: Line) -> tuple[Cell, ...]:
    return _joined(
        Cell(
            text=clean(piece.text),
            start=round(piece.box.left / COLUMN),
            end=round(piece.box.right / COLUMN),
            box=piece.box,
            signs=piece.signs,
        )
        for piece in line
    )


def _joined(pieces: Iterable[Cell]) -> tuple[Cell, ...]:
    """A colon or a remark such as "incl. VAT" belongs to the label before it."""
    cells: list[Cell] = []
    for cell in pieces:
        text = cell.text
        if cells and _CONTINUED.match(text.casefold()) and not any(map(str.isdigit, text)):
            last = cells.pop()
            box = last.box and cell.box and last.box.around(cell.box)
            cell = Cell(
                text=f"{last.text} {text}",
                start=last.start,
                end=cell.end,
                box=box,
                signs=last.signs + cell.signs,
            )
        cells.append(cell)
    return tuple(cells)
