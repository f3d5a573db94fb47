"""Where on a page each field was read, so that a person can compare the two."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from pipeline.steps.extract.invoice import Invoice
from pipeline.steps.extract.page_text.amounts import SYMBOLS
from pipeline.steps.extract.page_text.dates import day_month_order, first_date, fold
from pipeline.steps.extract.page_text.text import Printed
from pipeline.steps.extract.page_view.check import due_place
from pipeline.steps.extract.page_view.pdfium import Box

Place = tuple[int, Box, str]  # page, box and text

_SIGNS: Final = {code: sign for sign, code in SYMBOLS.items()}


def field_places(document: Printed, invoice: Invoice) -> Iterator[tuple[str, Place]]:
    """The name of each field that was read, with its place and the value that was read there."""
    if due := due_place(document, Decimal(invoice.total_due)):
        yield "amount due", (*due[:2], invoice.total_due)
    order = day_month_order(document.plain) or ("dmy" if invoice.iban else "")
    sign = _SIGNS.get(invoice.currency, invoice.currency)
    fields: tuple[tuple[str, str | None, Callable[[str], bool]], ...] = (
        ("currency", invoice.currency, lambda text: invoice.currency in text or sign in text),
        ("seller", invoice.seller, _has(invoice.seller)),
        ("IBAN", invoice.iban, _has(invoice.iban)),
        ("invoice number", invoice.invoice_number, _has(invoice.invoice_number)),
        ("due date", invoice.due_date, lambda text: first_date(text, order) == invoice.due_date),
    )
    for name, value, is_there in fields:
        if value and (place := _place(document, is_there)):
            yield name, (*place, value)


def _has(value: str | None) -> Callable[[str], bool]:
    wanted = _squeezed(value or "")
    return lambda text: wanted in _squeezed(text)


def _squeezed(text: str) -> str:
    return "".join(fold(text).split())


def _place(document: Printed, is_there: Callable[[str], bool]) -> tuple[int, Box] | None:
    """The first cell that has it, or else the first row."""
    for row in document.rows:
        for cell in row.cells:
            if cell.box is not None and is_there(cell.text):
                return row.page, cell.box
    for row in document.rows:
        if row.box is not None and is_there(row.text):
            return row.page, row.box
    return None
