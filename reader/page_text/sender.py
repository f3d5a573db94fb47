"""How a page names who sells and who buys: labels, and what only a sender prints of itself."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from statistics import median
from typing import Final

from reader.page_text.dates import fold
from reader.page_text.rows import Cell, Row
from reader.page_text.vocabulary import words

SELLER: Final = re.compile(
    rf"^(?:{words('seller')})(?: (?:provider|seller|supplier|vendor))?(?:/\S+)?\s*(?::\s*|$)"
)
_BOUGHT_BY: Final = words("bought_by")
BUYER: Final = re.compile(
    rf"^(?:{_BOUGHT_BY}|to|an|aan|till?)\b(?: (?:purchaser|buyer|customer|address))?(?:/\S+)?"
    r"\s*(?::\s*|$)"
)
PAYEE: Final = re.compile(rf"^(?:{words('payee')})\s*(?::\s*|$)")
# Short forms are words, too, unless they are written as a name's end.
COMPANY: Final = re.compile(
    r"(?<![\w.])(?:(?i:gmbh|mbh|ohg|e\.k\.|inc\.?|llc|ltd\.?|limited|corp\.?|plc|llp|b\.v\.|n\.v\."
    r"|s\.r\.o\.|spol\. s r\.o\.|a\.s\.|v\.o\.s\.|k\.s\.|sarl|s\.a\.r\.l\.|s\.a\.s\.?|s\.a\."
    r"|eurl|sasu"
    r"|s\.r\.l\.|srl|s\.p\.a\.|s\.n\.c\.|s\.l\.u?\.?|ltda\.?|lda\.?|unipessoal|oyj|aps|a/s|asa"
    r"|sp\. ?z ?o\. ?o\.|sp\.j\.|kft\.?|zrt\.?|nyrt\.?|gbr|pty|v\.o\.f\.|gesmbh|e\.u\.|dac)"
    r"|[A&]G|K[Gg]|OG|eG|SE|UG|CO\.|Co\.|BV|NV|SAS|SA|SpA|SPA|SL|Oy|OY|AB|Ab|AS|ApS|VOF|SNC|Bt\.?|BT|KK)"
    r"(?=\s*(?:$|[,&(+–-]))"
)
PARTED: Final = re.compile(r"\s[-–·●|•]\s")
NAME_CHARS_MAX: Final = 60
_OWN: Final = re.compile(words("own"))
_LARGE: Final = 1.2  # of the height of most text
_LABEL_ROWS: Final = 2  # a name is this far below its label at most
_OWN_ROWS: Final = 4  # in which a sender's telephone, e-mail or tax id is below the name
_BLOCK_LINES_MAX: Final = 10  # rows of a page, in which other columns have lines, too
_LINES_APART: Final = 14.0  # points between lines of one block
_BESIDE: Final = 40  # columns from a label to its value


def names_company(text: str) -> bool:
    """Whether a piece of text is the name of a company, by its legal form."""
    return bool(COMPANY.search(text)) and len(text) <= NAME_CHARS_MAX


def is_large(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether a cell is printed in larger type than most, or than what is closely below it."""
    next_line = line_below(rows, index, cell)
    if cell.box is None:
        return False
    heights = [median(each.box.height for row in rows for each in row.cells if each.box)]
    heights += [next_line.box.height] if next_line and next_line.box else []
    return cell.box.height >= _LARGE * min(heights)


def line_below(rows: Sequence[Row], index: int, cell: Cell) -> Cell | None:
    """The line closely below a cell that begins where it does."""
    return next(_column(rows, range(index + 1, len(rows)), cell, at_start=True), None)


def labels_of(rows: Sequence[Row], index: int, cell: Cell) -> Iterator[Cell]:
    """What may label a name: the cell at its left, and the lines closely above it."""
    cells = rows[index].cells
    left = cells[cells.index(cell) - 1] if cells.index(cell) else None
    if left is not None and cell.start - left.end <= _BESIDE:
        yield left
    above = _column(rows, range(index - 1, -1, -1), cell, at_start=True)
    labels = islice(above, _LABEL_ROWS)
    yield from takewhile(lambda label: not any(map(str.isdigit, label.text)), labels)


def prints_own(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether a name has beside or below it what a sender prints of itself."""
    lines = _column(rows, range(index + 1, len(rows)), cell, at_start=False)
    below = (other.text for other in islice(lines, _OWN_ROWS))
    return any(_OWN.search(fold(text)) for text in (rows[index].text, *below))


def _column(rows: Sequence[Row], places: range, cell: Cell, *, at_start: bool) -> Iterator[Cell]:
    """The lines of a block on from one; other columns may have lines between them."""
    last = cell
    for place in places[:_BLOCK_LINES_MAX]:
        cells = rows[place].cells
        found = [
            other
            for other in cells
            if (abs(other.start - cell.start) <= 1 if at_start else other.overlaps(cell))
        ]
        apart = _apart(last, (found or cells)[0])
        if apart > _LINES_APART or (not found and apart < 0):
            return
        if found:
            last = found[0]
            yield last


def _apart(one: Cell, other: Cell) -> float:
    """Points between two lines; below zero where it is not known."""
    if one.box is None or other.box is None:
        return -1.0
    return max(0.0, max(one.box.top, other.box.top) - min(one.box.bottom, other.box.bottom))
