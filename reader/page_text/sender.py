"""Whose name is whose on a page: by labels, by its place in a letter, by what is printed below."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import median
from typing import Final

from reader.page_text.dates import fold
from reader.page_text.rows import Cell, Row
from reader.page_text.vocabulary import INVOICE_NAME, words

SELLER: Final = re.compile(
    rf"^(?:{words('seller')})(?: (?:provider|seller|supplier|vendor))?(?:/\S+)?\s*(?::\s*|$)"
)
_BOUGHT_BY: Final = words("bought_by")
BUYER: Final = re.compile(
    rf"^(?:{_BOUGHT_BY}|to|an|aan|till?)\b(?: (?:purchaser|buyer|customer|address))?(?:/\S+)?"
    r"\s*(?::\s*|$)"
)
# Who receives a letter, or a payment: an account beside it says which.
_ADDRESSEE: Final = re.compile(
    rf"^(?:{_BOUGHT_BY}|to|an|aan|till?|(?:adresse|destinataire)\b.*|exmo.*|modtager|mottaker"
    r"|mottagare|vastaanottaja|cimzett)\s*:?$"
)
_ADDRESSED: Final = re.compile(rf"^(?:{_BOUGHT_BY}) \W*\w")  # "Bill to Acme Ltd"
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
_TOWN: Final = re.compile(r"(?=.*[^\W\d]{2})(?=.*\d.*\d)")
_LARGE: Final = 1.2  # of the height of most text
_SAME: Final = 0.05  # of its height by which a line of the same name may be larger
_NAME_LINES: Final = 2  # that a name may have before its last one
_BLOCK_ROWS: Final = 2  # a name is this far below its label at most
_OWN_ROWS: Final = 4  # in which a sender's telephone, e-mail or tax id is below the name
_BLOCK_LINES_MAX: Final = 10  # rows of a page, in which other columns have lines, too
_LINES_APART: Final = 14.0  # points between lines of one block
_BESIDE: Final = 40  # columns from a label to its value
_WINDOW: Final = (75.0, 260.0)  # points from the top: where a letter's window shows the address


def names_company(text: str) -> bool:
    """Whether a piece of text is the name of a company, by its legal form."""
    return bool(COMPANY.search(text)) and len(text) <= NAME_CHARS_MAX


def senders(rows: Sequence[Row], buyer: str) -> Iterator[tuple[int, Cell, str]]:
    """Each company that is not only addressed, with its row, its cell and its name.

    It is addressed below or beside a label that no sender has, or in the window of a letter.
    """
    found = [_begun(rows, *each) for each in _cells(rows) if _company(each[1].text)]
    theirs = {name for index, cell, name in found if _is_addressed(rows, index, cell, buyer)}
    own = {name for index, cell, name in found if _is_sender(rows, index, cell)}
    out = [name for name in {buyer, *theirs} - own if name]
    for index, cell, name in found:
        if not any(other in name for other in out):
            yield index, cell, name


def _is_addressed(rows: Sequence[Row], index: int, cell: Cell, buyer: str) -> bool:
    """Whether what is printed around a name says that the page is meant for it."""
    labels = [*_labels(rows, index, cell)]
    if any(_names_sender(label, rows, index) for label in labels):
        return False
    if any(_ADDRESSEE.match(label.folded) for label in labels):
        return True
    if buyer or _has_own(rows, index, cell):
        return False
    unknown = any(label.text.endswith(":") and not _is_title(label) for label in labels)
    return unknown or _in_window(rows, index, cell)


def is_in_address(rows: Sequence[Row], index: int, cell: Cell, buyer: str) -> bool:
    """Whether a line is the addressee's name, or is printed closely below it."""
    block = [(index, cell), *islice(_above(rows, index, cell), _OWN_ROWS)]
    return any(_is_addressed(rows, place, line, buyer) for place, line in block)


def _cells(rows: Sequence[Row]) -> Iterator[tuple[int, Cell]]:
    return ((index, cell) for index, row in enumerate(rows) for cell in row.cells)


def _company(text: str) -> str:
    """The name of a company, where a piece of text begins with it."""
    name = PARTED.split(text)[0].strip()
    addressed = _ADDRESSED.match(fold(name))
    return name if names_company(name) and not addressed else ""


def _begun(rows: Sequence[Row], index: int, cell: Cell) -> tuple[int, Cell, str]:
    """A company with the line that its name begins in, which is one or two lines above.

    So it is set in large type in a narrow column, or where the legal form has a line of its own.
    """
    name = _company(cell.text)
    whole = is_large(rows, index, cell) or COMPANY.match(cell.text)
    for place, above in islice(_above(rows, index, cell), _NAME_LINES if whole else 0):
        if not _same_type(above, cell) or names_company(above.text) or _is_no_name(above):
            break
        index, cell, name = place, above, f"{above.text} {name}"
    return index, cell, name


def rest_of_name(rows: Sequence[Row], index: int, cell: Cell) -> Iterator[str]:
    """The lines below in which a name in large type goes on."""
    lines = _column(rows, range(index + 1, len(rows)), cell, at_start=True)
    large = is_large(rows, index, cell)
    for _, line in islice(lines, _NAME_LINES if large else 0):
        if not _same_type(line, cell) or _is_no_name(line):
            return
        yield line.text


def is_large(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether a cell is printed in larger type than most, or than what is closely below it."""
    heights = [median(each.box.height for _, each in _cells(rows) if each.box)] if cell.box else []
    below = islice(_column(rows, range(index + 1, len(rows)), cell, at_start=True), _NAME_LINES)
    heights += [each.box.height for _, each in below if each.box]
    return cell.box is not None and cell.box.height >= _LARGE * min(heights)


def _same_type(one: Cell, other: Cell) -> bool:
    """Whether two cells are printed in one size."""
    if one.box is None or other.box is None:
        return False
    return abs(one.box.height - other.box.height) < _SAME * one.box.height


def _is_no_name(cell: Cell) -> bool:
    label = SELLER.match(cell.folded) or _ADDRESSEE.match(cell.folded) or _is_title(cell)
    return bool(label) or ":" in cell.text or any(map(str.isdigit, cell.text))


def _labels(rows: Sequence[Row], index: int, cell: Cell) -> Iterator[Cell]:
    """The label at the left of a name, and the lines closely above it in its column."""
    cells = rows[index].cells
    left = cells[cells.index(cell) - 1] if cells.index(cell) else None
    if (
        left is not None
        and cell.start - left.end <= _BESIDE
        and not _heads_column(rows, index, left)
    ):
        yield left
    for _, above in islice(_above(rows, index, cell), _BLOCK_ROWS):
        if any(map(str.isdigit, above.text)):
            return
        yield above


def _heads_column(rows: Sequence[Row], index: int, label: Cell) -> bool:
    """Whether a label's own value is below it, so that it says nothing of what is beside it."""
    below = rows[index + 1].cells if index + 1 < len(rows) else ()
    return any(abs(other.start - label.start) <= 1 and _company(other.text) for other in below)


def _names_sender(label: Cell, rows: Sequence[Row], index: int) -> bool:
    """Whether it labels who sells or who is paid; "recipient" is either, so an account decides."""
    if SELLER.match(label.folded):
        return True
    around = rows[max(0, index - _OWN_ROWS) : index + _OWN_ROWS + 1]
    return bool(PAYEE.match(label.folded)) and any("iban" in fold(row.text) for row in around)


def _is_sender(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    labels = [*_labels(rows, index, cell)]
    if any(_ADDRESSEE.match(label.folded) for label in labels):
        return any(_names_sender(label, rows, index) for label in labels)
    return _has_own(rows, index, cell)


def prints_own(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether a name has beside or below it what a sender prints of itself."""
    return bool(_OWN.search(fold(rows[index].text))) or _has_own(rows, index, cell)


def _has_own(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether a name's lines have what a sender prints of itself."""
    return any(_OWN.search(fold(text)) for text in (cell.text, *_below(rows, index, cell)))


def _below(rows: Sequence[Row], index: int, cell: Cell) -> list[str]:
    lines = _column(rows, range(index + 1, len(rows)), cell, at_start=False)
    return [other.text for _, other in islice(lines, _OWN_ROWS)]


def _above(rows: Sequence[Row], index: int, cell: Cell) -> Iterator[tuple[int, Cell]]:
    return _column(rows, range(index - 1, -1, -1), cell, at_start=True)


def _column(
    rows: Sequence[Row], places: range, cell: Cell, *, at_start: bool
) -> Iterator[tuple[int, Cell]]:
    """The lines of a block on from one; other columns may have lines between them."""
    last = cell
    for place in places[:_BLOCK_LINES_MAX]:
        cells = rows[place].cells
        found = [other for other in cells if _aligned(other, cell, at_start)]
        apart = _apart(last, (found or cells)[0])
        if apart > _LINES_APART or (not found and apart < 0):
            return
        if found:
            last = found[0]
            yield place, last


def _aligned(other: Cell, cell: Cell, at_start: bool) -> bool:
    return abs(other.start - cell.start) <= 1 if at_start else other.overlaps(cell)


def _apart(one: Cell, other: Cell) -> float:
    """Points between two lines; below zero where it is not known."""
    if one.box is None or other.box is None:
        return -1.0
    return max(0.0, max(one.box.top, other.box.top) - min(one.box.bottom, other.box.bottom))


def _is_title(label: Cell) -> bool:
    return bool(INVOICE_NAME.fullmatch(label.folded.strip(" :")))


def _in_window(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether an address is where a window shows it, and no other address is beside it."""
    if rows[index].page != rows[0].page or not _is_address(rows, index, cell):
        return False
    return not any(
        other.start != cell.start and _is_address(rows, place, other)
        for place, other in _cells(rows[: index + _OWN_ROWS])
    )


def _is_address(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """A name in the upper part of a page with a street and a town below it, and nothing else."""
    top, bottom = _WINDOW
    if cell.box is None or not top <= cell.box.top <= bottom or any(map(str.isdigit, cell.text)):
        return False
    lines = _below(rows, index, cell)[1:3]
    return any(_TOWN.search(line) and ":" not in line for line in lines)
