"""The arrangements of an invoice's parts on a page."""

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Final

from reportlab.lib.colors import HexColor, white

from samples.generated import blocks
from samples.generated.blocks import ACCENTS
from samples.generated.pen import SOFT, Pen, shade
from samples.generated.sheet import Sheet
from samples.generated.slips import slip, swiss

Layout = Callable[[Pen, Sheet, Random], None]
_LEFT: Final = 50.0
_RIGHT: Final = 545.0
_ROWS_A_PAGE: Final = 26


def columns(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """Labels left, sums right, under a table with plain rules."""
    if rng.random() < 0.4:
        blocks.logo(pen, _LEFT, 798, rng.choice(ACCENTS), drawn=rng.random() < 0.3)
    y = min(
        blocks.seller(pen, sheet, _LEFT, 780),
        blocks.title(pen, sheet, _RIGHT, 780, align="right", room=260),
    )
    low = blocks.facts(pen, sheet, 330, y - 20, _RIGHT)
    y = min(low, blocks.buyer(pen, sheet, _LEFT, y - 20))
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 20)
    y = blocks.sums(pen, sheet, 320, _RIGHT, y)
    y = blocks.remarks(pen, sheet, _LEFT, y, 490)
    blocks.pay(pen, sheet, _LEFT, min(y, 190), rng.choice(("colon", "apart")))
    blocks.foot(pen, sheet)


def stacked(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """Labels above their values throughout."""
    y = blocks.title(pen, sheet, _LEFT, 785, 24)
    y = blocks.facts(pen, sheet, _LEFT, y - 8, _RIGHT, "row")
    blocks.buyer(pen, sheet, 320, y - 6)
    y = blocks.seller(pen, sheet, _LEFT, y - 6, 11) - 22
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 26, rng.choice(ACCENTS))
    y = blocks.sums(pen, sheet, _LEFT, _RIGHT, y, "stacked")
    blocks.pay(pen, sheet, 350, min(y, 215), "stacked")
    blocks.remarks(pen, sheet, _LEFT, min(y, 215), 270)
    blocks.foot(pen, sheet)


def grid(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """The sums in a bordered table."""
    blocks.buyer(pen, sheet, _LEFT, 720, label=False)
    y = blocks.seller(pen, sheet, _RIGHT, 790, 12, "right")
    y = blocks.facts(pen, sheet, 340, y - 20, _RIGHT, "colon")
    y = blocks.title(pen, sheet, _LEFT, min(y - 10, 640), 16)
    pen.box(_LEFT - 4, y - 6, _RIGHT - _LEFT + 8, 20)
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y)
    y = blocks.sums(pen, sheet, 300, _RIGHT, y, "grid")
    y = blocks.pay(pen, sheet, _LEFT, min(y, 250), "apart")
    blocks.remarks(pen, sheet, _LEFT, y - 4, 490)
    blocks.foot(pen, sheet)


def box_left(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """The sums in a box at the left, the bank details beside it."""
    paint = rng.choice(ACCENTS)
    blocks.logo(pen, _LEFT, 770, paint)
    y = blocks.seller(pen, sheet, 100, 790, 13)
    y = blocks.title(pen, sheet, _LEFT, y - 30, 18, ink=paint)
    low = blocks.facts(pen, sheet, _LEFT, y, 250)
    y = min(low, blocks.buyer(pen, sheet, 320, y))
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 20, paint)
    height = 16 * (len(sheet.rows) + len(sheet.extra)) + 46
    pen.band(_LEFT, y - height + 22, 250, height, shade(paint, 0.12))
    low = blocks.sums(pen, sheet, _LEFT + 6, 294, y, "band", paint)
    y = min(low, blocks.pay(pen, sheet, 320, y, "colon"))
    blocks.remarks(pen, sheet, _LEFT, y - 8, 490)
    blocks.foot(pen, sheet)


def headline(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """The amount due as a headline, repeated with the sums."""
    paint = rng.choice(ACCENTS)
    blocks.seller(pen, sheet, _RIGHT, 790, 11, "right")
    y = blocks.title(pen, sheet, _LEFT, 790, 12, room=250)
    if sheet.show_due:
        pen.fact("head_label", _LEFT, y - 22, sheet.due_label, 10, ink=SOFT)
        pen.fact("amount", _LEFT, y - 52, sheet.due_text, 26, True, paint)
    low = blocks.facts(pen, sheet, 330, y - 80, _RIGHT)
    y = min(low, blocks.buyer(pen, sheet, _LEFT, y - 80))
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 16)
    for label, value in (*sheet.rows, *sheet.extra):
        pen.text(330, y, label, 9, ink=SOFT)
        pen.text(_RIGHT - 4, y, value, 9, align="right")
        y -= 15
    low = blocks.remarks(pen, sheet, _LEFT, y - 12, 490)
    blocks.pay(pen, sheet, _LEFT, min(low, 200), "apart")
    blocks.foot(pen, sheet)


def letter(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """A letter; a sentence asks to transfer the amount."""
    words = sheet.language
    blocks.seller(pen, sheet, _LEFT + 20, 800, 12)
    y = blocks.buyer(pen, sheet, _LEFT + 20, 725, label=False)
    y = blocks.facts(pen, sheet, _LEFT + 20, y - 8, 400, "colon")
    y = blocks.title(pen, sheet, _LEFT + 20, y - 20, 13)
    for key in ("greeting", "opening"):
        pen.text(_LEFT + 20, y - 4, words.pick(rng, key), 10)
        y -= 18
    y = blocks.table(pen, sheet, _LEFT + 20, _RIGHT - 20, y - 10)
    for label, value in (*sheet.rows, *sheet.extra):
        pen.text(_LEFT + 24, y, label, 9.5)
        pen.text(_RIGHT - 24, y, value, 9.5, align="right")
        y -= 15
    if sheet.show_due:
        y = blocks.sentence(pen, sheet, _LEFT + 20, y - 12, 460)
    y = blocks.remarks(pen, sheet, _LEFT + 20, y, 450)
    pen.text(_LEFT + 20, y - 6, words.pick(rng, "closing"), 10)
    if sheet.show_seller:
        pen.text(_LEFT + 20, y - 22, sheet.seller.name, 10)
    blocks.pay(pen, sheet, _LEFT + 20, min(y - 46, 160), "colon", heading=False)
    blocks.foot(pen, sheet)


def pages(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """Several pages with sums carried over."""
    items, words, paint = sheet.items, sheet.language, rng.choice(ACCENTS)
    chunks = [items[start : start + _ROWS_A_PAGE] for start in range(0, len(items), _ROWS_A_PAGE)]
    if len(chunks[-1]) > 14:
        chunks[-1:] = [chunks[-1][:12], chunks[-1][12:]]
    carried, brought, label = Decimal(0), words.pick(rng, "brought"), words.pick(rng, "carried")
    blocks.seller(pen, sheet, _LEFT, 795, 13, ink=paint)
    blocks.title(pen, sheet, _RIGHT, 790, 18, "right", room=240)
    low = blocks.facts(pen, sheet, 330, 735, _RIGHT)
    y = min(low, blocks.buyer(pen, sheet, _LEFT, 735)) - 12
    for index, chunk in enumerate(chunks):
        if index:
            pen.text(_RIGHT - 4, y, f"{brought}  {sheet.digits(carried)}", 9, True, align="right")
            y -= 22
        y = blocks.table(pen, sheet, _LEFT, _RIGHT, y, paint, chunk)
        carried += sum((item.amount for item in chunk), Decimal(0))
        if index < len(chunks) - 1:
            pen.text(_RIGHT - 4, y, f"{label}  {sheet.digits(carried)}", 9, True, align="right")
            blocks.foot(pen, sheet, len(chunks))
            pen.next_page()
            if sheet.show_seller:
                pen.text(_LEFT, 800, sheet.seller.name, 9, ink=SOFT)
            pen.text(_RIGHT, 800, f"{sheet.facts[0][0]} {sheet.facts[0][1]}", 8, align="right")
            y = 770.0
    y = blocks.sums(pen, sheet, 320, _RIGHT, y, rng.choice(("rule", "grid")))
    y = blocks.remarks(pen, sheet, _LEFT, y, 490)
    blocks.pay(pen, sheet, _LEFT, min(y, 200), "colon")
    blocks.foot(pen, sheet, len(chunks))


def landscape(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """A landscape page: parties at the left, positions and sums at the right."""
    y = blocks.title(pen, sheet, 45, 540, 20, room=240)
    y = blocks.seller(pen, sheet, 45, y - 14, 10)
    y = blocks.buyer(pen, sheet, 45, y - 14)
    y = blocks.facts(pen, sheet, 45, y - 4, 270)
    blocks.pay(pen, sheet, 45, y - 10, "colon")
    y = blocks.table(pen, sheet, 310, 800, 540, rng.choice(ACCENTS))
    y = blocks.sums(pen, sheet, 540, 800, y, rng.choice(("rule", "grid")))
    blocks.remarks(pen, sheet, 310, y, 480)
    blocks.foot(pen, sheet)


def banded(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """White names on coloured bands, and the amount due on one."""
    paint = rng.choice(ACCENTS)
    pen.band(0, 742, 596, 100, paint)
    blocks.title(pen, sheet, _RIGHT, 795, 22, "right", white, paint, 240)
    blocks.seller(pen, sheet, _LEFT, 795, 14, ink=white)
    low = blocks.facts(pen, sheet, 330, 715, _RIGHT)
    y = min(low, blocks.buyer(pen, sheet, _LEFT, 715))
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 14, paint)
    y = blocks.sums(pen, sheet, 290, _RIGHT, y, "band", paint)
    y = blocks.remarks(pen, sheet, _LEFT, y - 4, 490)
    low = min(y, 190)
    pen.band(_LEFT - 8, low - 86, 506, 102, HexColor("#f0f2f5"))
    blocks.pay(pen, sheet, _LEFT, low, "apart")
    blocks.foot(pen, sheet)


def two_columns(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """Seller and buyer beside each other in boxes, facts in a row."""
    blocks.title(pen, sheet, 297, 795, 20, "middle")
    for x in (_LEFT, 305.0):
        pen.box(x - 6, 688, 246, 78)
    blocks.seller(pen, sheet, _LEFT, 748, 11)
    blocks.buyer(pen, sheet, 305, 750)
    y = blocks.facts(pen, sheet, _LEFT, 668, _RIGHT, "row")
    y = blocks.table(pen, sheet, _LEFT, _RIGHT, y - 8)
    low = blocks.sums(pen, sheet, 305, _RIGHT, y, "rule")
    low = min(low, blocks.pay(pen, sheet, _LEFT, y, "stacked"))
    if rng.random() < 0.5 and sheet.show_due:
        low = blocks.sentence(pen, sheet, _LEFT, low - 6, 490, last=False)
    blocks.remarks(pen, sheet, _LEFT, low - 4, 490)
    blocks.foot(pen, sheet)


def receipt(pen: Pen, sheet: Sheet, rng: Random) -> None:
    """A narrow roll, each line one under the other."""
    left, right = 22.0, 278.0
    y = blocks.seller(pen, sheet, 150, 800, 11, "middle")
    y = blocks.title(pen, sheet, 150, y - 10, 12, "middle", room=250)
    y = blocks.facts(pen, sheet, left, y - 4, right, "right")
    y = blocks.buyer(pen, sheet, left, y - 4) - 6
    for item in sheet.items:
        for line in item.text.split("\n"):
            pen.text(left, y, line, 8)
            y -= 11
        quantity, price, amount = sheet.cells(item)
        if quantity:
            pen.text(left + 10, y, f"{quantity} x {price}", 8)
            pen.text(right, y, amount, 8, align="right")
        y -= 15
    y = blocks.sums(pen, sheet, left - 5, right + 5, y - 6, "rule")
    y = blocks.pay(pen, sheet, left, y, "stacked")
    blocks.remarks(pen, sheet, left, y - 4, 250)


LAYOUTS: Final[dict[str, Layout]] = {
    "columns": columns,
    "stacked": stacked,
    "grid": grid,
    "box_left": box_left,
    "headline": headline,
    "letter": letter,
    "pages": pages,
    "landscape": landscape,
    "banded": banded,
    "two_columns": two_columns,
    "receipt": receipt,
    "slip": slip,
    "swiss": swiss,
}
