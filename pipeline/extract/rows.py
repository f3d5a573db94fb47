"""Pages as rows of cells, the way an eye reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pipeline.extract.dates import fold
from pipeline.extract.reader import Page

_CELL: Final = re.compile(r"\S+(?: \S+)*")
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
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


def rows_of(pages: Iterable[Page]) -> list[Row]:
    """The rows of all pages in order; a page without a layout gives its plain lines."""
    rows: list[Row] = []
    for page in pages:
        for line in (page.laid_out if page.laid_out.strip() else page.plain).splitlines():
            cells = tuple(
                Cell(text=match[0], start=match.start(), end=match.end())
                for match in _CELL.finditer(line.expandtabs(4))
            )
            if cells and len(rows) < _ROWS_MAX:
                rows.append(Row(page=page.number, cells=cells))
    return rows
