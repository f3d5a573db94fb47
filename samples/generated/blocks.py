"""The parts of a page: heads, tables, sums, payment details; each returns the next base line."""

from typing import Any, Final

from reportlab.lib.colors import HexColor, white
from reportlab.lib.utils import ImageReader

from samples.generated.pen import INK, RULE, SOFT, Pen, shade
from samples.generated.raster import mark
from samples.generated.sheet import Item, Sheet

ROW: Final = 17.0
ACCENTS: Final = tuple(
    HexColor(code) for code in ("#1f5f8b", "#7a3e6b", "#2c6e49", "#8a5a12", "#333a45", "#a3322a")
)


def seller(
    pen: Pen, sheet: Sheet, x: float, y: float, size: float = 14, align: str = "left",
    ink: Any = INK,
) -> float:  # fmt: skip
    """The seller's name and address."""
    if not sheet.show_seller:
        return y - 60
    party = sheet.seller
    pen.fact("seller", x, y, party.name, size, True, ink, align)
    y -= size
    for line in (f"{party.street}, {party.town}", f"{party.phone} · {party.email}"):
        pen.text(x, y, line, 8, ink=SOFT if ink is INK else ink, align=align)
        y -= 11
    return y


def buyer(pen: Pen, sheet: Sheet, x: float, y: float, label: bool = True) -> float:
    """To whom the invoice is addressed."""
    party = sheet.buyer
    if label:
        pen.text(x, y, f"{sheet.bill_to}:", 8, ink=SOFT)
        y -= 13
    pen.fact("buyer", x, y, party.name, 10, True)
    for line in (party.street, party.town):
        y -= 13
        pen.text(x, y, line, 9)
    return y - 16


def title(
    pen: Pen, sheet: Sheet, x: float, y: float, size: float = 20, align: str = "left",
    ink: Any = INK, paper: Any = white,
    room: float = 490,
) -> float:  # fmt: skip
    """What the document is, and a banner beneath it."""
    size = min(size, size * room / pen.width(sheet.title, size, True))
    pen.fact("title", x, y, sheet.title, size, True, ink, align, paper)
    y -= size
    if sheet.banner:
        pen.text(x, y, sheet.banner, 11, True, ink, align)
        y -= 16
    return y


def facts(pen: Pen, sheet: Sheet, x: float, y: float, until: float, mode: str = "right") -> float:
    """Number, dates and references: label and value apart, in one text, stacked or in a row."""
    rows = sheet.facts
    if mode == "row":
        return _facts_row(pen, sheet, x, y, until)
    for label, value in rows:
        if mode == "right":
            size = min(9.0, 9 * (until - x - 6) / pen.width(f"{label}:{value}", 9))
            pen.text(x, y, f"{label}:", size, ink=SOFT)
            pen.text(until, y, value, size, align="right")
        elif mode == "colon":
            pen.text(x, y, f"{label}: {value}", 9)
        else:
            pen.text(x, y, label, 7.5, ink=SOFT)
            y -= 11
            pen.text(x, y, value, 10)
            y -= 3
        y -= 14
    return y


def _facts_row(pen: Pen, sheet: Sheet, x: float, y: float, until: float) -> float:
    """Up to three facts beside each other, label above value, in each row."""
    step = (until - x) / 3
    rows = sheet.facts
    for start in range(0, len(rows), 3):
        for index, (label, value) in enumerate(rows[start : start + 3]):
            pen.text(x + step * index, y, label, 7.5, ink=SOFT)
            pen.text(x + step * index, y - 12, value, 10)
        y -= 30
    return y


def table(
    pen: Pen, sheet: Sheet, x: float, until: float, y: float, paint: Any = None,
    items: tuple[Item, ...] | None = None,
) -> float:  # fmt: skip
    """The positions under their headings; ``paint`` is the headings' band."""
    wide = until - x
    columns = (x + wide * 0.6, x + wide * 0.79, until - 4)
    ink = INK
    if paint is not None:
        pen.band(x, y - 6, wide, 19, paint)
        ink = white
    else:
        pen.rule(x, y - 6, until, INK)
    pen.text(x + 4, y, sheet.headings[0], 8.5, True, ink)
    for column, heading in zip(columns, sheet.headings[1:], strict=True):
        pen.text(column, y, heading, 8.5, True, ink, "right")
    for item in sheet.items if items is None else items:
        y -= ROW
        for column, value in zip(columns, sheet.cells(item), strict=True):
            pen.text(column, y, value, 9, align="right")
        for index, line in enumerate(item.text.split("\n")):
            y -= 11 * bool(index)
            pen.text(x + 4, y, line, 9)
        pen.rule(x, y - 5, until)
    return y - 26


def sums(
    pen: Pen, sheet: Sheet, x: float, until: float, y: float, mode: str = "rule",
    paint: Any = None,
) -> float:  # fmt: skip
    """The sums and the amount due: under a rule, in a grid, on a band, or stacked."""
    rows = (*sheet.rows, *sheet.extra)
    if mode == "stacked":
        return _stacked(pen, sheet, x, y, rows)
    for label, value in rows:
        pen.text(x + 5, y, label, 9, ink=SOFT)
        pen.text(until - 5, y, value, 9, align="right")
        if mode == "grid":
            pen.box(x, y - 5, until - x, 16)
        y -= 16
    if not sheet.show_due:
        return y
    ink, paper, y = INK, white, y - 6
    if mode == "band" and paint is not None:
        pen.band(x, y - 8, until - x, 24, paint)
        ink, paper = white, paint
    elif mode == "grid":
        pen.box(x, y - 6, until - x, 20, INK)
    else:
        pen.rule(x, y + 15, until, INK)
    both = pen.width(sheet.due_label + sheet.due_text, 10.5, True)
    size = min(10.5, 10.5 * (until - x - 18) / both)
    pen.fact("due_label", x + 5, y, sheet.due_label, size, True, ink)
    pen.fact("amount", until - 5, y, sheet.due_text, size, True, ink, "right", paper)
    return y - 28


def _stacked(
    pen: Pen, sheet: Sheet, x: float, y: float, rows: tuple[tuple[str, str], ...]
) -> float:
    """Label above sum, several beside each other, the amount due beneath."""
    for start in range(0, len(rows), 3):
        for index, (label, value) in enumerate(rows[start : start + 3]):
            pen.text(x + 165 * index, y, label, 8, ink=SOFT)
            pen.text(x + 165 * index, y - 13, value, 9.5)
        y -= 34
    if sheet.show_due:
        pen.fact("due_label", x, y, sheet.due_label, 9)
        pen.fact("amount", x, y - 18, sheet.due_text, 15, True)
        y -= 40
    return y


def pay(
    pen: Pen, sheet: Sheet, x: float, y: float, mode: str = "colon", heading: bool = True
) -> float:
    """The bank details."""
    if heading:
        pen.text(x, y, f"{sheet.pay_to}:", 9, True)
        y -= 14
    name = {sheet.seller.name: "payee"}
    for label, value in sheet.pay:
        fact = "iban" if label == "IBAN" else name.get(value, f"pay {label}")
        if mode == "colon":
            used = pen.text(x, y, f"{label}: ", 9)
            pen.fact(fact, x + used, y, value, 9)
        elif mode == "apart":
            pen.text(x, y, label, 9, ink=SOFT)
            pen.fact(fact, x + 120, y, value, 9, True)
        else:
            pen.text(x, y, label, 7.5, ink=SOFT)
            y -= 11
            pen.fact(fact, x, y, value, 9.5)
        y -= 13
    return y - 4


def remarks(pen: Pen, sheet: Sheet, x: float, y: float, width: float) -> float:
    """The remarks, broken to the width."""
    for remark in sheet.remarks:
        line = ""
        for word in remark.split(" "):
            longer = f"{line} {word}".strip()
            if pen.width(longer, 8.5) > width:
                pen.text(x, y, line, 8.5)
                y, longer = y - 11, word
            line = longer
        pen.text(x, y, line, 8.5)
        y -= 12
    return y - 4


def sentence(pen: Pen, sheet: Sheet, x: float, y: float, width: float, last: bool = True) -> float:
    """The sentence that asks to pay; its amount is a fact of its own."""
    before, after = sheet.sentence.split("{amount}")
    size = 10.0
    while pen.width(before + sheet.due_text + after, size) > width:
        size -= 0.25
    x += pen.text(x, y, before, size) if before else 0
    x += pen.fact("amount" if last else "sentence", x, y, sheet.due_text, size)
    pen.text(x, y, after, size)
    return y - 20


def foot(pen: Pen, sheet: Sheet, pages: int = 1) -> None:
    """The legal line and the page number, above a blank strip."""
    width = pen.size[0]
    pen.rule(50, 56, width - 50, RULE)
    if sheet.show_seller and sheet.legal:
        pen.text(50, 44, sheet.legal, 7, ink=SOFT)
    if pages > 1:
        pen.text(width - 50, 44, sheet.language.page(pen.page, pages), 7, align="right")


def logo(pen: Pen, x: float, y: float, paint: Any, drawn: bool = True) -> None:
    """A mark of three bars, or a picture."""
    if not drawn:
        pen.picture(ImageReader(mark()), x, y, 84, 28)
        return
    for index, share in enumerate((1.0, 0.7, 0.4)):
        pen.band(x + 11 * index, y, 8, 28 - 7 * index, shade(paint, share))
