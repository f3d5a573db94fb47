"""Where on a page each field was read, and pictures of it, so that a person can compare the two."""

import base64
import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from reader.invoice import Crop, Invoice, Picture
from reader.page_text.amounts import SYMBOLS
from reader.page_text.dates import bare, day_month_order, first_date
from reader.page_text.rows import Cell, Row
from reader.page_text.text import Printed
from reader.page_view.check import due_place
from reader.page_view.pdfium import Box, Sheet

Place = tuple[int, Box, str]  # page, box and text

CROPS_MAX: Final = 6  # of one document
_AROUND: Final = (170.0, 14.0, 40.0, 14.0)  # points left, above, right and below: with its label
_BYTES_MAX: Final = 24_000
_PAGE_BYTES_MAX: Final = 160_000
_GREYS: Final = 16  # of a page: enough to read, and a third of the bytes
_TEXT_CHARS_MAX: Final = 200
_SIGNS: Final = {code: sign for sign, code in SYMBOLS.items()}


def field_places(document: Printed, invoice: Invoice) -> Iterator[tuple[str, Place]]:
    """The name of each field that was read, with its place and the value that was read there."""
    if invoice.total_due and (due := due_place(document, Decimal(invoice.total_due))):
        yield "amount due", (*due[:2], invoice.total_due)
    order = day_month_order(document.plain) or ("dmy" if invoice.iban else "")
    code = invoice.currency or ""
    sign = _SIGNS.get(code, code)
    fields: tuple[tuple[str, str | None, Callable[[str], bool]], ...] = (
        ("currency", invoice.currency, lambda text: code in text or sign in text),
        ("seller", invoice.seller, _has(invoice.seller)),
        ("IBAN", invoice.iban, _has(invoice.iban)),
        ("invoice number", invoice.invoice_number, _has(invoice.invoice_number)),
        ("due date", invoice.due_date, lambda text: first_date(text, order) == invoice.due_date),
    )
    for name, value, is_there in fields:
        if value and (place := _place(document, is_there)):
            yield name, (*place, value)


def _has(value: str | None) -> Callable[[str], bool]:
    wanted = bare(value or "")
    return lambda text: wanted in bare(text)


def _place(document: Printed, is_there: Callable[[str], bool]) -> tuple[int, Box] | None:
    """The first cell that has it, or else the first row."""
    parts: list[tuple[Row, Cell | Row]] = [
        (row, cell) for row in document.rows for cell in row.cells
    ]
    for row, part in (*parts, *((row, row) for row in document.rows)):
        if part.box is not None and is_there(part.text):
            return row.page, part.box
    return None


def crop(sheet: Sheet, page: int, box: Box, name: str, text: str) -> Crop:
    """A place with what its text layer says there; the picture is as the page shows it."""
    left, top, right, bottom = _AROUND
    part = Box(
        left=max(0.0, min(box.left - left, sheet.width - 1)),
        top=max(0.0, min(box.top - top, sheet.height - 1)),
        right=min(sheet.width, max(box.right + right, 1)),
        bottom=min(sheet.height, max(box.bottom + bottom, 1)),
    )
    png = _png(sheet, part, _BYTES_MAX)
    return Crop(name=name, text=text[:_TEXT_CHARS_MAX], page=page, png=png)


def picture(sheet: Sheet) -> Picture:
    """The whole page, as a person sees it."""
    return Picture(png=_png(sheet, None, _PAGE_BYTES_MAX))


def _png(sheet: Sheet, part: Box | None, bytes_max: int) -> str:
    """A picture in base64, smaller where its file would be too large."""
    png, scale = b"", min(2.0, sheet.scale)
    while not png or (len(png) > bytes_max and scale > 0.2):
        buffer = io.BytesIO()
        drawn = sheet.drawn(part, scale)
        drawn = drawn if part else drawn.quantize(_GREYS)
        drawn.save(buffer, "PNG", optimize=True)
        png, scale = buffer.getvalue(), scale / 1.5
    return base64.b64encode(png).decode()
