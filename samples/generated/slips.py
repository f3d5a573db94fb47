"""Invoices with a payment slip, or the payment part of a Swiss QR bill, at the foot."""

from decimal import Decimal
from random import Random
from typing import Final

from reportlab.graphics import renderPDF
from reportlab.graphics.barcode.qr import QrCodeWidget
from reportlab.graphics.shapes import Drawing
from reportlab.lib.colors import HexColor, black, white

from samples.generated import blocks
from samples.generated.parties import Party
from samples.generated.pen import SOFT, Pen
from samples.generated.sheet import Sheet

_LEFT: Final = 50.0
_RIGHT: Final = 545.0
_PART_HEIGHT: Final = 297.6  # 105 mm


def slip(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """A coupon at the foot repeats payee, IBAN and amount."""
    low = blocks.title(pen, sheet, _RIGHT, 790, align="right", room=250)
    y = min(low, blocks.seller(pen, sheet, _LEFT, 790))
    low = blocks.facts(pen, sheet, 330, y - 16, _RIGHT, "right")
    y = min(low, blocks.buyer(pen, sheet, _LEFT, y - 16))
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 16)
    y = blocks.sums(pen, sheet, 320, _RIGHT, y)
    blocks.remarks(pen, sheet, _LEFT, y, 490)
    paint = HexColor(rng.choice(("#fff1d6", "#e4f0e2", "#f7e3e1")))
    pen.band(0, 40, 596, 150, paint)
    pen.canvas.setDash(3, 3)
    pen.rule(0, 190, 596, black)
    pen.canvas.setDash()
    pen.text(_LEFT, 172, sheet.language.pick(rng, "slip"), 11, True)
    blocks.pay(pen, sheet, _LEFT, 152, "stacked" if len(sheet.pay) < 4 else "colon", False)
    if sheet.show_due:
        pen.text(370, 152, sheet.due_label, 8, ink=SOFT)
        pen.band(366, 118, 180, 26, white)
        pen.box(366, 118, 180, 26, black)
        pen.fact("slip", 540, 126, sheet.due_text, 12, True, align="right")


def swiss(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """The payment part and receipt after the Swiss Implementation Guidelines QR-bill, chapter 3."""
    blocks.seller(pen, sheet, _LEFT, 800, 12)
    blocks.title(pen, sheet, _RIGHT, 800, 16, "right", room=250)
    low = blocks.facts(pen, sheet, 330, 745, _RIGHT)
    y = min(low, blocks.buyer(pen, sheet, _LEFT, 745, label=False))
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 6)
    y = blocks.sums(pen, sheet, 320, _RIGHT, y)
    blocks.remarks(pen, sheet, _LEFT, y + 4, 490)
    pen.rule(0, _PART_HEIGHT, 596, black)
    pen.canvas.line(176, 0, 176, _PART_HEIGHT)
    words = tuple(str(word) for word in sheet.language.words["swiss"])
    _receipt(pen, sheet, words)
    _payment_part(pen, sheet, words)


def _receipt(pen: Pen, sheet: Sheet, words: tuple[str, ...]) -> None:
    pen.text(14, 276, words[1], 11, True)
    y = _parties(pen, sheet, words, 14, 258, 6, 8, "receipt ")
    pen.text(14, y - 8, sheet.buyer.town, 8)
    _sum(pen, sheet, words, 14, 92, 6, 8, "receipt amount")


def _payment_part(pen: Pen, sheet: Sheet, words: tuple[str, ...]) -> None:
    pen.text(190, 276, words[0], 11, True)
    qr_code(_payload(sheet), pen, 186, 128, 130.4)  # 46 mm
    pen.band(241, 183, 20, 20, black)
    pen.band(249, 186, 4, 14, white)
    pen.band(244, 191, 14, 4, white)
    _sum(pen, sheet, words, 190, 100, 8, 10, "part amount")
    y = _parties(pen, sheet, words, 336, 276, 8, 10, "")
    pen.text(336, y - 12, sheet.buyer.town, 10)


def qr_code(said: str, pen: Pen, x: float = 0, y: float = 0, side: float = 64) -> None:
    """A QR code with its lower left corner at a place."""
    code = QrCodeWidget(said, barLevel="M")
    left, _, right, _ = code.getBounds()
    scale = side / (right - left)
    drawing = Drawing(side, side, transform=[scale, 0, 0, scale, 0, 0])
    drawing.add(code)
    renderPDF.draw(drawing, pen.canvas, x, y)


def epc(sheet: Sheet, due: Decimal, iban: str = "") -> str:
    """The data of a European Payments Council code (EPC069-12): who gets what, and for what."""
    head = ("BCD", "002", "1", "SCT", "", sheet.seller.name, iban or sheet.iban)
    return "\n".join((*head, f"EUR{due:.2f}", "", "", sheet.number))


def _parties(
    pen: Pen, sheet: Sheet, words: tuple[str, ...], x: float, y: float,
    small: float, size: float, prefix: str,
) -> float:  # fmt: skip
    """Account, payee, reference and payer."""
    pen.text(x, y, words[2], small, True)
    for text, fact in (
        *((value, "iban") for label, value in sheet.pay if label == "IBAN"),
        *_address(sheet.seller, "payee", sheet.show_seller),
    ):
        y -= size + 1
        pen.fact(f"{prefix}{fact}", x, y, text, size)
    y -= size + 10
    pen.text(x, y, words[7] if small > 6 else words[3], small, True)
    y -= size + 1
    pen.text(x, y, sheet.number, size)
    y -= size + 10
    pen.text(x, y, words[4], small, True)
    for text in (sheet.buyer.name, sheet.buyer.street):
        y -= size + 1
        pen.text(x, y, text, size)
    return y


def _address(party: Party, fact: str, shown: bool) -> tuple[tuple[str, str], ...]:
    if not shown:
        return ()
    return ((party.name, fact), (party.street, "street"), (party.town, "town"))


def _sum(
    pen: Pen, sheet: Sheet, words: tuple[str, ...], x: float, y: float,
    small: float, size: float, fact: str,
) -> None:  # fmt: skip
    pen.text(x, y, words[5], small, True)
    pen.text(x + 58, y, words[6], small, True)
    pen.text(x, y - 13, sheet.currency.code, size)
    if sheet.show_due:
        digits = f"{sheet.sums.due:,.2f}".replace(",", " ")
        pen.fact(fact, x + 58, y - 13, digits, size)


def _payload(sheet: Sheet) -> str:
    """The data of the code: chapter 4 of the same guidelines, with structured addresses."""
    seller, buyer = sheet.seller, sheet.buyer
    account = next(value for label, value in sheet.pay if label == "IBAN").replace(" ", "")
    lines = [
        *("SPC", "0200", "1", account),
        *_structured(seller),
        *("",) * 7,
        *(f"{sheet.sums.due:.2f}", sheet.currency.code),
        *_structured(buyer),
        *("NON", "", sheet.number, "EPD"),
    ]
    return "\n".join(lines)


def _structured(party: Party) -> tuple[str, ...]:
    street, house = party.street.rsplit(" ", 1)
    code, town = party.town.rsplit(" ", 1)
    return ("S", party.name, street, house, code, town, party.country)
