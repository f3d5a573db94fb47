"""Statements on a page that speak against paying it."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import Final

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.utils import ImageReader

from samples.generated import parties
from samples.generated.money import MoneyStyle, minor, money, plain
from samples.generated.pen import Pen
from samples.generated.raster import rectangles, stamp_picture, word_picture
from samples.generated.sheet import Change, Sheet

_RED: Final = HexColor("#b02026")
_PALE: Final = Color(0.82, 0.84, 0.87)
_BRANDS: Final = ("TOP", "ALL", "PEN", "TRY", "CUP", "MOP", "LAK", "GEL", "BAM", "SOS")


def specimen(rng: Random, sheet: Sheet) -> Change:
    """Pale letters across the page."""
    text = sheet.language.pick(rng, "specimen").split(" - ")[0].rstrip(".")
    return Change(sheet=sheet, at_page_end=partial(_across, text))


def _across(text: str, pen: Pen) -> None:
    canvas = pen.canvas
    size = min(70.0, 70 * 420 / pen.width(text, 70, True))
    canvas.saveState()
    canvas.translate(pen.size[0] / 2, pen.size[1] / 2)
    canvas.rotate(45)
    canvas.setFillColor(_PALE)
    canvas.setFont(pen.font(True), size)
    canvas.drawCentredString(0, 0, text)
    canvas.restoreState()


def stamp(text: str, how: str, angle: float, pen: Pen) -> None:
    """A red stamp about the origin: as text, as a picture or as a drawing."""
    canvas = pen.canvas
    if how == "picture":
        picture = stamp_picture(text, angle)
        scale = min(0.55, 0.7 * pen.size[0] / picture.width)
        width, height = picture.width * scale, picture.height * scale
        at = (-width / 2, -height / 2, width, height)
        canvas.drawImage(ImageReader(picture), *at, mask="auto")
        return
    canvas.saveState()
    canvas.rotate(angle)
    canvas.setFillColor(_RED)
    canvas.setStrokeColor(_RED)
    canvas.setLineWidth(2)
    size = min(34.0, 34 * 0.6 * pen.size[0] / pen.width(text, 34, True))
    width = pen.width(text, size, True)
    canvas.rect(-width / 2 - 12, -12, width + 24, size + 16, stroke=1, fill=0)
    if how == "text":
        canvas.setFont(pen.font(True), size)
        canvas.drawCentredString(0, 0, text)
    else:
        for left, low, wide, high in rectangles(text):
            box = (left * size - width / 2, low * size, wide * size, high * size)
            canvas.rect(*box, stroke=0, fill=1)
    canvas.restoreState()


def credit_note_picture(rng: Random, sheet: Sheet) -> Change:
    """The title of a credit note is a picture, and the page has no other title."""
    changed = replace(sheet, title=sheet.language.pick(rng, "credit_note"))
    return Change(sheet=changed, held=frozenset({"title"}), at_page_end=_title_picture)


def _title_picture(pen: Pen) -> None:
    spot = pen.spots["title"]
    if spot.page == pen.page:
        word_picture(pen, spot.x, spot.y, spot.text, spot.size * 0.9, spot.ink, spot.paper)


def negative(rng: Random, sheet: Sheet) -> Change:
    """Every sum is below zero."""
    sign = rng.choice(("-", "-", "−" if sheet.wide else "-", "–"))
    rows = tuple((label, value if "-" in value else sign + value) for label, value in sheet.rows)
    changed = replace(sheet, rows=rows, due_text=sign + sheet.due_text)
    due = -sheet.sums.due
    seen: dict[str, str | int | None] = {
        "total_due": plain(sheet.currency, due),
        "amount_minor": minor(sheet.currency, due),
    }
    return Change(sheet=changed, seen=seen)


def zero(rng: Random, sheet: Sheet) -> Change:
    """The prepaid sum is the whole sum."""
    label = sheet.language.pick(rng, "prepaid")
    rows = (*sheet.rows, (label, f"-{sheet.due_text}"))
    changed = replace(sheet, rows=rows, due_text=sheet.money(Decimal(0)))
    if rng.random() < 0.5:
        changed = replace(changed, remarks=(sheet.language.pick(rng, "zero"), *sheet.remarks))
    seen: dict[str, str | int | None] = {"total_due": plain(sheet.currency, Decimal(0))}
    return Change(sheet=changed, seen={**seen, "amount_minor": 0})


def net_only(rng: Random, sheet: Sheet) -> Change:
    """A net sum is all that is printed."""
    rows = ((sheet.language.pick(rng, "net"), sheet.money(sheet.sums.net)),)
    changed = replace(sheet, rows=rows, show_due=False)
    return Change(sheet=changed, seen={"total_due": "", "amount_minor": 0})


def two_amounts(rng: Random, sheet: Sheet) -> Change:
    """A second amount due contradicts the first."""
    labels = [label for label in sheet.language.all("amount_due") if label != sheet.due_label]
    other = sheet.money(sheet.sums.due + rng.choice((100, 250, 1000)))
    changed = replace(sheet, extra=((rng.choice(labels), other),))
    return Change(sheet=changed)


def two_ibans(rng: Random, sheet: Sheet) -> Change:
    """A second account contradicts the first."""
    other = parties.grouped(parties.account(rng, rng.choice(parties.COUNTRIES)))
    return Change(sheet=replace(sheet, pay=(*sheet.pay, ("IBAN", other))))


def wrong_iban(rng: Random, sheet: Sheet) -> Change:
    """One digit of the IBAN is another one."""
    place = rng.choice([2, 3, len(sheet.iban) - 1, len(sheet.iban) - 3])
    digit = (int(sheet.iban[place]) + rng.randint(1, 9)) % 10
    wrong = f"{sheet.iban[:place]}{digit}{sheet.iban[place + 1 :]}"
    pay = tuple(
        (label, parties.grouped(wrong) if label == "IBAN" else value) for label, value in sheet.pay
    )
    return Change(sheet=replace(sheet, pay=pay, iban=wrong), seen={"iban": wrong})


def no_currency(rng: Random, sheet: Sheet) -> Change:
    """No sum has a currency; some products are called like one."""
    style = MoneyStyle(group=sheet.style.group, point=sheet.style.point, place="bare")
    signs = (sheet.currency.code, sheet.currency.symbol)
    items = tuple(replace(item, text=f"{rng.choice(_BRANDS)} {item.text}") for item in sheet.items)
    rows = tuple((label, _bare(value, signs)) for label, value in sheet.rows)
    remarks = tuple(text for text in sheet.remarks if not any(sign in text for sign in signs))
    changed = replace(
        sheet,
        style=style,
        items=items,
        rows=rows,
        remarks=remarks,
        legal="",
        due_text=money(style, sheet.currency, sheet.sums.due),
    )
    return Change(sheet=changed, seen={"currency": ""})


def _bare(text: str, signs: tuple[str, ...]) -> str:
    for sign in signs:
        text = text.replace(sign, "")
    return text.strip()


def no_seller(rng: Random, sheet: Sheet) -> Change:
    """Nothing says who asks for the money."""
    pay = tuple((label, value) for label, value in sheet.pay if value != sheet.seller.name)
    return Change(sheet=replace(sheet, show_seller=False, pay=pay), seen={"seller": ""})


CONTRARY: Final[dict[str, Callable[[Random, Sheet], Change]]] = {
    "specimen": specimen,
    "credit_note_picture": credit_note_picture,
    "negative_amount": negative,
    "zero_balance": zero,
    "net_only": net_only,
    "two_amounts": two_amounts,
    "two_ibans": two_ibans,
    "iban_check_digits": wrong_iban,
    "no_currency": no_currency,
    "no_seller": no_seller,
}
_SUMS_OF_SWISS: Final = frozenset(
    {"negative_amount", "zero_balance", "net_only", "no_currency", "two_ibans", "two_amounts"}
)


def fits(kind: str, layout: str) -> bool:
    """Whether a layout can show the statement and nothing that undoes it."""
    if layout == "swiss":
        return kind not in _SUMS_OF_SWISS
    return kind != "net_only" or layout not in ("letter", "slip")  # its sentences say the amount
