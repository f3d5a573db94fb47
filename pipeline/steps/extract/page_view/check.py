"""Whether the pixels of a page say what its text layer says, where money is at stake."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from pipeline.steps.extract.page_text.amounts import amounts_in
from pipeline.steps.extract.page_text.rows import Cell, Row
from pipeline.steps.extract.page_text.text import Printed
from pipeline.steps.extract.page_view import recognise
from pipeline.steps.extract.page_view.pdfium import Box, Sheet

CELLS_MAX: Final = 8  # of one fact: an amount due is printed two or three times
_BELOW: Final = 2  # rows under a label in which its amount can be
_SEPARATORS: Final = str.maketrans(dict.fromkeys(",'’ \u00a0\u2009\u202f", "."))
# Letters and digits that look alike; an IBAN has each in fixed places.
_ALIKE: Final = str.maketrans("OILSBZ", "011582")


def differs(
    sheets: Sequence[Sheet], document: Printed, due: Decimal, iban: str | None
) -> tuple[int, Box] | None:
    """The first place, as page and box, whose pixels are read differently from its text.

    Every labelled amount due and every place of the account is read. Only what a recogniser
    reads as the same value, at one size at least, counts as agreement.

    Raises:
        RecogniserMissingError: no pixel can be read here.
    """
    for row, cell in _amount_cells(document, abs(due)):
        if not _reads_amount(sheets[row.page - 1], cell, abs(due)):
            return row.page, _boxed(cell)
    for row in document.rows:
        box = row.box
        if iban is None or box is None or iban not in _squeezed(row.text):
            continue
        sheet = sheets[row.page - 1]
        if not any(_alike(iban) in _alike(text) for text in recognise.line(sheet, box)):
            return row.page, box
    return None


def _amount_cells(document: Printed, due: Decimal) -> Iterator[tuple[Row, Cell]]:
    """The cells that print the amount at its labels, else wherever it is printed."""
    rows = document.rows
    labelled = {id(each.row) for each in document.sums.candidates if each.value in (due, -due)}
    near = [
        row
        for place, row in enumerate(rows)
        if any(id(other) in labelled for other in rows[max(0, place - _BELOW) : place + 1])
    ]
    found = [*_holding(near, due)] or [*_holding(rows, due)]
    yield from found[:CELLS_MAX]


def _holding(rows: Iterable[Row], due: Decimal) -> Iterator[tuple[Row, Cell]]:
    for row in rows:
        for cell in row.cells:
            if cell.box is not None and _says(cell.text, due):
                yield row, cell


def _says(text: str, due: Decimal) -> bool:
    return any(due in map(abs, amount.readings) for amount in amounts_in(text))


def _reads_amount(sheet: Sheet, cell: Cell, due: Decimal) -> bool:
    """Whether the cell's pixels show the amount: the same number, or the same signs for it."""
    printed = [
        cell.text[each.start : each.end].strip().translate(_SEPARATORS)
        for each in amounts_in(cell.text)
        if due in map(abs, each.readings)
    ]
    return any(
        _says(text, due) or any(each in text.translate(_SEPARATORS) for each in printed)
        for text in recognise.line(sheet, _boxed(cell))
    )


def _boxed(cell: Cell) -> Box:
    if cell.box is None:
        raise ValueError("the cell has no place on a page")
    return cell.box


def _squeezed(text: str) -> str:
    return "".join(text.split()).upper()


def _alike(text: str) -> str:
    return "".join(filter(str.isalnum, _squeezed(text))).translate(_ALIKE)
