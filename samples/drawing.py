"""Draws an invoice on pages, with reportlab."""

import io
import textwrap
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from reportlab.lib import pagesizes
from reportlab.lib.colors import HexColor, white
from reportlab.pdfgen.canvas import Canvas

from samples import YEAR, earlier

_INK: Final = HexColor("#1d2733")
_SOFT: Final = HexColor("#5d6b7a")
_LINE: Final = HexColor("#d5dbe2")
_LEFT: Final = 56.0
_WIDTH: Final = float(pagesizes.A4[0])
_HEIGHT: Final = float(pagesizes.A4[1])
_RIGHT: Final = _WIDTH - 56.0
_TOP: Final = _HEIGHT - 64.0
_ROW: Final = 20.0
_CENT: Final = Decimal("0.01")
_NOTE_TOP: Final = 400.0  # under the sums of an invoice of a few lines
_NOTE_LINES_MAX: Final = 28  # down to the foot
_NOTE_CHARS: Final = 100  # of a line, in Courier


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One position of an invoice."""

    text: str
    quantity: int
    price: Decimal

    @property
    def amount(self) -> Decimal:
        return self.quantity * self.price


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Everything that is drawn; all of it invented."""

    number: str
    issued: str
    due: str
    seller: tuple[str, ...]
    email: str
    buyer: tuple[str, ...]
    iban: str
    bic: str
    currency: str
    vat_percent: Decimal
    vat_note: str = ""
    prepaid: Decimal = Decimal(0)
    accent: str = "#1f5f8b"
    lines: tuple[Line, ...] = ()
    rows_a_page: int = 22
    hidden: tuple[str, ...] = field(default=())
    note: str = ""

    @property
    def title(self) -> str:
        """The number, and the year where it is not that of the shipped files."""
        year = (date.fromisoformat(self.issued) + earlier(self.number)).year
        return self.number if year == YEAR else f"{self.number}, {year}"

    @property
    def net(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def vat(self) -> Decimal:
        return (self.net * self.vat_percent / 100).quantize(_CENT, ROUND_HALF_UP)

    @property
    def total(self) -> Decimal:
        return self.net + self.vat

    @property
    def total_due(self) -> Decimal:
        return self.total - self.prepaid


def draw(bill: Bill) -> bytes:
    """The bill as a PDF; the same bill gives the same bytes."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=pagesizes.A4, invariant=1, pageCompression=1)
    canvas.setTitle(f"Invoice {bill.title}")
    canvas.setAuthor(bill.seller[0])
    if bill.note:  # so that the file says of what it can be drawn once more
        canvas.setKeywords(b64encode(bill.note.encode()).decode())
    pages = [
        bill.lines[start : start + bill.rows_a_page]
        for start in range(0, len(bill.lines), bill.rows_a_page)
    ]
    for number, lines in enumerate(pages, start=1):
        y = _head(canvas, bill) if number == 1 else _short_head(canvas, bill)
        y = _table(canvas, bill, lines, y)
        if number == len(pages):
            _sums(canvas, bill, y)
            _hidden(canvas, bill)
            _note(canvas, bill)
        _foot(canvas, bill, number, len(pages))
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def money(amount: Decimal) -> str:
    """An amount as English invoices print it."""
    return f"{amount:,.2f}"


def _text(
    canvas: Canvas,
    x: float,
    y: float,
    text: str,
    size: float = 9.5,
    bold: bool = False,
    ink: Any = _INK,
) -> None:
    canvas.setFillColor(ink)
    canvas.setFont("Helvetica-Bold" if bold else "Helvetica", size)
    canvas.drawString(x, y, text)


def _right(
    canvas: Canvas, x: float, y: float, text: str, size: float = 9.5, bold: bool = False
) -> None:
    canvas.setFillColor(_INK)
    canvas.setFont("Helvetica-Bold" if bold else "Helvetica", size)
    canvas.drawRightString(x, y, text)


def _head(canvas: Canvas, bill: Bill) -> float:
    canvas.setFillColor(HexColor(bill.accent))
    canvas.rect(0, _HEIGHT - 14, _WIDTH, 14, stroke=0, fill=1)
    _text(canvas, _LEFT, _TOP, bill.seller[0], 15, bold=True, ink=HexColor(bill.accent))
    for index, line in enumerate((*bill.seller[1:], bill.email), start=1):
        _text(canvas, _LEFT, _TOP - 4 - 13 * index, line, 9, ink=_SOFT)
    _right(canvas, _RIGHT, _TOP - 4, "INVOICE", 22, bold=True)
    y = _TOP - 96
    _text(canvas, _LEFT, y, "Bill to:", 8.5, ink=_SOFT)
    for index, line in enumerate(bill.buyer, start=1):
        _text(canvas, _LEFT, y - 14 * index, line, 10, bold=index == 1)
    facts = (
        ("Invoice number:", bill.number),
        ("Invoice date:", bill.issued),
        ("Due date:", bill.due),
    )
    for index, (label, value) in enumerate(facts, start=1):
        _text(canvas, 350, y - 14 * index, label, 9.5, ink=_SOFT)
        _right(canvas, _RIGHT, y - 14 * index, value, 9.5, bold=True)
    return y - 100


def _short_head(canvas: Canvas, bill: Bill) -> float:
    _text(canvas, _LEFT, _TOP, bill.seller[0], 11, bold=True, ink=HexColor(bill.accent))
    _right(canvas, _RIGHT, _TOP, f"Invoice number: {bill.number}", 9)
    return _TOP - 40


def _table(canvas: Canvas, bill: Bill, lines: tuple[Line, ...], y: float) -> float:
    canvas.setFillColor(HexColor(bill.accent))
    canvas.rect(_LEFT - 6, y - 6, _RIGHT - _LEFT + 12, 20, stroke=0, fill=1)
    _text(canvas, _LEFT, y, "Description", 9, bold=True, ink=white)
    canvas.drawRightString(370, y, "Quantity")
    canvas.drawRightString(455, y, "Unit price")
    canvas.drawRightString(_RIGHT, y, "Amount")
    for line in lines:
        y -= _ROW
        _text(canvas, _LEFT, y, line.text)
        _right(canvas, 370, y, str(line.quantity))
        _right(canvas, 455, y, money(line.price))
        _right(canvas, _RIGHT, y, money(line.amount))
        canvas.setStrokeColor(_LINE)
        canvas.line(_LEFT - 6, y - 6, _RIGHT + 6, y - 6)
    return y


def _sums(canvas: Canvas, bill: Bill, y: float) -> None:
    y -= 34
    rows = [("Subtotal", bill.net), (f"VAT {bill.vat_percent}%", bill.vat), ("Total", bill.total)]
    if bill.prepaid:
        rows.append(("Deposit paid", -bill.prepaid))
    for label, amount in rows:
        _text(canvas, 350, y, label, ink=_SOFT)
        _right(canvas, _RIGHT, y, f"{bill.currency} {money(amount)}")
        y -= 17
    canvas.setStrokeColor(HexColor(bill.accent))
    canvas.line(350, y + 9, _RIGHT, y + 9)
    _text(canvas, 350, y - 8, "Amount due", 12, bold=True)
    _right(canvas, _RIGHT, y - 8, f"{bill.currency} {money(bill.total_due)}", 12, bold=True)
    if bill.vat_note:
        _text(canvas, _LEFT, y - 8, bill.vat_note, 8.5, ink=_SOFT)


def _foot(canvas: Canvas, bill: Bill, number: int, count: int) -> None:
    canvas.setStrokeColor(_LINE)
    canvas.line(_LEFT, 92, _RIGHT, 92)
    _text(canvas, _LEFT, 76, "Please transfer to", 8.5, ink=_SOFT)
    _text(canvas, _LEFT, 62, f"IBAN {bill.iban}", 9.5, bold=True)
    _text(canvas, _LEFT, 48, f"BIC {bill.bic}", 9)
    _right(canvas, _RIGHT, 48, f"Page {number} of {count}", 8.5)


def _hidden(canvas: Canvas, bill: Bill) -> None:
    """Text that a person does not see and a parser does."""
    canvas.setFillColor(white)
    canvas.setFont("Helvetica", 1)
    for index, line in enumerate(bill.hidden):
        canvas.drawString(_LEFT, 130 - 1.5 * index, line)


def _note(canvas: Canvas, bill: Bill) -> None:
    """The note to the payer, as far as there is room and the font has signs for it.

    It is drawn sign by sign, never laid out: a paragraph would take tags in it for orders.
    """
    if not bill.note:
        return
    _text(canvas, _LEFT, _NOTE_TOP, "Note to the payer:", 8.5, ink=_SOFT)
    shown = bill.note.encode("cp1252", "replace").decode("cp1252")
    lines = [part for line in shown.splitlines() for part in textwrap.wrap(line, _NOTE_CHARS)]
    if len(lines) > _NOTE_LINES_MAX:
        lines[_NOTE_LINES_MAX - 1 :] = ["…"]
    canvas.setFillColor(_INK)
    canvas.setFont("Courier", 8)
    for index, line in enumerate(lines, start=1):
        canvas.drawString(_LEFT, _NOTE_TOP - 2 - 9.5 * index, line)
