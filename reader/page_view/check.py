"""Whether the pixels of a page say what its text layer says, where money is at stake."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Final

from reader.invoice import Invoice
from reader.page_text.amounts import SYMBOLS, UNCERTAIN, amounts_in
from reader.page_text.dates import fold
from reader.page_text.labelled import ibans, wrapped_ibans
from reader.page_text.rows import Cell, Row, rows_of
from reader.page_text.sender import names_company
from reader.page_text.text import Printed
from reader.page_text.vocabulary import ASKS, DUE
from reader.page_view.agree import AHEAD, boxed, reads_account, reads_amount, squeezed
from reader.page_view.overlaps import drawn_beside
from reader.page_view.page import Page
from reader.page_view.pdfium import Box, Sheet
from reader.page_view.recognise import LINE_SIZES, at_height

CELLS_MAX: Final = 8  # of one fact: an amount due is printed two or three times
_FIELD_WORDS_MAX: Final = 6  # a label and its amount; prose in another currency is no sum of it
_FIELD_LETTERS_MIN: Final = 3
_BELOW: Final = 4  # rows under a label in which its amount, or what is left of it, can be


def competes(shown: Printed, rows: Sequence[Row], invoice: Invoice) -> bool:
    """Whether hidden text or a note names an account, a sum or a company that is not shown.

    Hidden text, annotations, form fields and alternative texts may say anything else: it is
    no fact, and reaches a model alone. The sums are those in the invoice's currency, and those
    of a field or of a sentence that asks for payment.
    """
    accounts = {each.value for each in ibans(rows)}
    if accounts - {each.value for each in ibans(shown.rows)}:
        return True
    lines = [squeezed(row.text) for row in shown.rows]
    companies = (squeezed(text) for text in _texts(rows) if names_company(text))
    if any(not any(name in line for line in lines) for name in companies):
        return True
    own = {None, *(mark for mark, code in SYMBOLS.items() if code == invoice.currency)}
    own |= {*UNCERTAIN, str(invoice.currency).casefold()}
    every = {abs(v) for text in _texts(shown.rows) for a in amounts_in(text) for v in a.readings}
    due = abs(Decimal(invoice.total_due or 0))
    for text in _texts(rows):
        said = fold(text)
        asks = bool(ASKS.search(said) or DUE.search(said))
        for each in amounts_in(text):
            values, known = {*map(abs, each.readings)}, {due} if asks else every
            if each.firm and (each.mark in own or asks or is_field(text)) and not known & values:
                return True
            if each.firm and each.mark not in own and due in values:
                return True
    return False


def is_field(text: str) -> bool:
    """Whether a line is a field of a document, such as a label with its value, and no prose.

    A letter or two that something covers are none.
    """
    signs = [*filter(str.isalnum, text)]
    digits = sum(map(str.isdigit, signs))
    return (digits > 0 or len(signs) >= _FIELD_LETTERS_MIN) and (
        len(text.split()) <= _FIELD_WORDS_MAX or digits > len(signs) / 2
    )


def _texts(rows: Iterable[Row]) -> Iterator[str]:
    return (cell.text for row in rows for cell in row.cells)


def begin_account(sheet: Sheet, page: Page) -> None:
    """Start reading the pixels of a page's only account, in no more than some places."""
    accounts = ibans(rows := rows_of([page]))
    places = _account_places(rows, accounts[0].value) if len(accounts) == 1 else ()
    with suppress(ValueError):  # it is off the page
        for _, boxes in islice(places, CELLS_MAX):
            for box in boxes:
                at_height(sheet, box, LINE_SIZES[0])


def begin_readings(sheets: Sequence[Sheet], document: Printed, invoice: Invoice) -> None:
    """Start reading the pixels that ``differs`` will ask for, of no more than some cells."""
    amounts = _amount_cells(document, abs(Decimal(invoice.total_due or 0)))
    for row, cell, _ in islice(amounts, 2 * CELLS_MAX):
        for size in LINE_SIZES[:AHEAD]:
            at_height(sheets[row.page - 1], boxed(cell), size)
    for page, boxes in islice(_account_places(document.rows, invoice.iban or ""), CELLS_MAX):
        for box in boxes:
            at_height(sheets[page - 1], box, LINE_SIZES[0])


def differs(
    sheets: Sequence[Sheet], document: Printed, invoice: Invoice
) -> tuple[int, Box, str] | None:
    """The first place, as page, box and text, whose pixels are read differently from its text.

    The invoice has an amount.

    Every labelled amount and every place of the account is read. Only what a recogniser
    reads as the same value, at one size at least, counts as agreement, and nothing but text
    may be drawn in or beside an amount.

    Raises:
        RecogniserMissingError: no pixel can be read here.
    """
    for row, cell, value in _amount_cells(document, abs(Decimal(invoice.total_due or 0))):
        sheet, box = sheets[row.page - 1], boxed(cell)
        if drawn_beside(sheet, box) or not reads_amount(sheet, cell, value, invoice.currency or ""):
            return row.page, box, cell.text
    iban = invoice.iban or ""
    for page, boxes in _account_places(document.rows, iban):
        if not reads_account(sheets[page - 1], boxes, iban):
            return page, boxes[0], iban
    return None


def _account_places(rows: Sequence[Row], iban: str) -> Iterator[tuple[int, list[Box]]]:
    """The page of each place of an account, with the boxes of its lines."""
    for row in rows:
        if row.box is not None and iban and iban in squeezed(row.text):
            whole = (cell.box for cell in row.cells if cell.box and iban in squeezed(cell.text))
            yield row.page, [next(whole, row.box)]
    for each in wrapped_ibans(rows):
        boxes = [cell.box for cell in (each.first, each.last) if cell.box]
        if each.value == iban and boxes:
            yield each.row.page, boxes


def due_place(document: Printed, due: Decimal) -> tuple[int, Box, str] | None:
    """Where the amount due is printed, as page, box and text."""
    found = next(_amount_cells(document, abs(due)), None)
    return None if found is None else (found[0].page, boxed(found[1]), found[1].text)


def _amount_cells(document: Printed, due: Decimal) -> Iterator[tuple[Row, Cell, Decimal]]:
    """The cells that print the amount due, and the sums at and under the labels of totals."""
    rows = document.rows
    labelled = {id(each.row) for each in document.sums.candidates if each.kind in ("due", "total")}
    near = [
        row
        for place, row in enumerate(rows)
        if any(id(other) in labelled for other in rows[max(0, place - _BELOW) : place + 1])
    ]
    found = [*_holding(near, due, firm=True)] or [*_holding(near, due)] or [*_holding(rows, due)]
    yield from found[:CELLS_MAX]
    sums = [row for row in near if not ibans([row])]  # FR05 is no five francs
    others = (each.readings for text in _texts(sums) for each in amounts_in(text) if each.firm)
    for value in sorted({abs(readings[0]) for readings in others} - {due})[-CELLS_MAX:]:
        yield from _holding(sums, value, firm=True)
    # PDFium gives an alternative text for what is drawn.
    noted = (each.readings for text in _texts(document.noted) for each in amounts_in(text))
    for value in sorted({abs(readings[0]) for readings in noted} - {due})[-CELLS_MAX:]:
        yield from _holding(rows, value)


def _holding(
    rows: Iterable[Row], value: Decimal, *, firm: bool = False
) -> Iterator[tuple[Row, Cell, Decimal]]:
    for row in rows:
        for cell in row.cells:
            found = (each for each in amounts_in(cell.text) if each.firm or not firm)
            if cell.box is not None and any(value in map(abs, each.readings) for each in found):
                yield row, cell, value
