"""Additions that speak against paying an honest invoice, and what was accepted before them."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from samples.generated import parties, slips
from samples.generated.contrary import stamp
from samples.generated.fonts import DEJAVU
from samples.generated.pen import INK, Pen
from samples.generated.sheet import Change, Item, Sheet, is_western, quantum

Said = str | Callable[[Pen], None]  # a text, or what is drawn at the place
Words = Sequence[str]  # of a language: as sentences.toml says

_SENTENCES: Final[dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8")
)


def with_addition(seed: str, case: tuple[str, str, str], contrary: bool, change: Change) -> Change:
    """With the addition of a case (kind, place, language), or with what was accepted before it."""
    kind, place, language = case
    words, sheet = _SENTENCES[language], change.sheet
    pair = _KINDS[kind](Random(seed), sheet, words)  # noqa: S311
    change = replace(change, family=_family(words))
    said = pair[contrary]
    if not said:
        return change
    if isinstance(said, str) and place in _PLACES:
        return replace(change, sheet=_PLACES[place](sheet, said))
    draw = partial(_lines, said, 9.0) if isinstance(said, str) else said
    return _drawn_also(change, _DRAWN[place], draw)


def with_code(change: Change) -> Change:
    """With a code that asks for the sum of the invoice."""
    said = slips.epc(change.sheet, change.sheet.sums.due)
    return _drawn_also(change, _DRAWN["corner"], partial(slips.qr_code, said))


def _family(words: Words) -> str:
    """A font with the letters of a language; empty where the template's own has them."""
    text = "".join(words)
    return "" if is_western(words) else "Vera" if max(text) < "\u0250" else "DejaVu"  # is Latin


LANGUAGES: Final = tuple(
    code for code, words in _SENTENCES.items() if _family(words) != "DejaVu" or DEJAVU.exists()
)


def _drawn_also(
    change: Change, where: tuple[float, float, float], draw: Callable[[Pen], None]
) -> Change:
    """With a drawing on the first page: at shares of its width and height, turned by an angle."""
    before, (across, up, angle) = change.at_page_end, where

    def both(pen: Pen) -> None:
        if before:
            before(pen)
        if pen.page == 1:
            pen.canvas.saveState()
            pen.canvas.translate(pen.size[0] * across, pen.size[1] * up)
            pen.canvas.rotate(angle)
            draw(pen)
            pen.canvas.restoreState()

    return replace(change, at_page_end=both)


def _lines(text: str, size: float, pen: Pen) -> None:
    pen.canvas.setFillColor(INK)
    pen.canvas.setFont(pen.font(), size)
    for index, line in enumerate(text.split("\n")):
        pen.canvas.drawString(0, -index * (size + 2), line)


def _inside(sheet: Sheet, text: str) -> Sheet:
    """In the middle of the first remark, or of the line above the account."""
    first, *others = sheet.remarks or (sheet.pay_to,)
    words = first.split(" ")
    middle = (len(words) + 1) // 2
    first = " ".join((*words[:middle], text, *words[middle:]))
    return (
        replace(sheet, remarks=(first, *others)) if sheet.remarks else replace(sheet, pay_to=first)
    )


def _field(text: str) -> tuple[str, str]:
    label, _, value = text.partition(": ")
    return label, value


def _two_lines(sheet: Sheet, text: str) -> Sheet:
    words = text.split(" ")
    middle = (len(words) + 1) // 2
    halves = (" ".join(words[:middle]), " ".join(words[middle:]))
    return replace(sheet, remarks=(*filter(None, halves), *sheet.remarks))


def _item(quantity: int, price: int, sheet: Sheet, text: str) -> Sheet:
    """As an item between the others; another makes up for a negative one."""
    cost = Decimal(price).quantize(quantum(sheet.currency))
    first, *rest = sheet.items
    other = (replace(first, quantity=quantity, price=-cost),) if cost else ()
    added = Item(text=text, quantity=quantity, price=cost)
    return replace(sheet, items=(first, added, *rest, *other))


_DRAWN: Final = {
    "header": (0.09, 0.978, 0), "footer": (0.09, 0.024, 0), "margin": (0.035, 0.35, 90),
    "middle": (0.45, 0.55, 12), "corner": (0.8, 0.075, 0),
}  # fmt: skip
_PLACES: Final[dict[str, Callable[[Sheet, str], Sheet]]] = {
    "banner": lambda sheet, text: replace(sheet, banner=text),
    "remark": lambda sheet, text: replace(sheet, remarks=(*sheet.remarks, *text.split("\n"))),
    "two_lines": _two_lines,
    "inside": _inside,
    "between_items": partial(_item, 0, 0),
    "item_zero": partial(_item, 1, 0),
    "item_negative": partial(_item, 1, -25),
    "between_sums": lambda sheet, text: replace(
        sheet, rows=(*sheet.rows[:1], _field(text), *sheet.rows[1:])
    ),
    "fact": lambda sheet, text: replace(
        sheet, facts=(*sheet.facts, (sheet.language.all("order")[0], text))
    ),
    "title": lambda sheet, text: replace(sheet, title=text),
    "head": lambda sheet, text: replace(
        sheet, headings=(sheet.headings[0], text, *sheet.headings[2:])
    ),
    "due_label": lambda sheet, text: replace(sheet, due_label=f"{sheet.due_label} {text}"),
    "pay_to": lambda sheet, text: replace(sheet, pay_to=f"{sheet.pay_to} {text}"),
}
_FOR_SENTENCES: Final = ("header", "footer", "margin", *[*_PLACES][:9])
_FOR_WORDS: Final = ("header", "footer", "margin", *_PLACES)


def _share(rng: Random, sheet: Sheet) -> str:
    part = sheet.sums.due * rng.choice((1, 3, 5)) / 10
    return sheet.money(part.quantize(quantum(sheet.currency)))


def _value(rng: Random, sheet: Sheet, words: Words) -> tuple[Said, Said]:
    """An accepted sentence, and the same with another sum or rate."""
    text, other = rng.choice(words[:3]), _share(rng, sheet)
    pairs = ((sheet.money(Decimal(0)), other), (sheet.due_text, other), ("100 %", "30 %"))
    before, after = rng.choice(pairs)
    return f"{text}: {before}", f"{text}: {after}"


def _qr(rng: Random, sheet: Sheet, words: Words) -> tuple[Said, Said]:
    due, iban = sheet.sums.due, parties.account(rng, sheet.seller.country)
    forged = rng.choice((slips.epc(sheet, due + 100), slips.epc(sheet, due, iban)))
    return partial(slips.qr_code, slips.epc(sheet, due)), partial(slips.qr_code, forged)


def _stamp(how: str, rng: Random, sheet: Sheet, words: Words) -> tuple[Said, Said]:
    text = words[0] if is_western(words) else "PAID"  # pictures are drawn with few letters
    return "", partial(stamp, text, how, rng.choice((0, 12, 45)))


_KINDS: Final[dict[str, Callable[[Random, Sheet, Words], tuple[Said, Said]]]] = {
    "word": lambda rng, sheet, words: ("", words[0]),
    "sentence": lambda rng, sheet, words: ("", rng.choice(words[1:4])),
    "title": lambda rng, sheet, words: ("", words[6]),
    "payee": lambda rng, sheet, words: (
        "", f"{sheet.language.all('holder')[0]}: {parties.party(rng, 'IE').name} & Co"
    ),
    "iban": lambda rng, sheet, words: (
        "", f"IBAN: {parties.account(rng, sheet.seller.country)}"
    ),
    "account": lambda rng, sheet, words: (f"{words[7]}: 31926819", f"{words[7]}: 58210736"),
    "netting": lambda rng, sheet, words: ("", f"{words[4]}: -{_share(rng, sheet)}"),
    "instalment": lambda rng, sheet, words: (
        "", f"{rng.choice((words[0], words[5]))}: {_share(rng, sheet)}"
    ),
    "value": _value,
    "left_out": lambda rng, sheet, words: (f"If it is sent back:\n{words[2]}", words[2]),
    "size": lambda rng, sheet, words: (words[0], partial(_lines, words[0], rng.choice((12, 40)))),
    "code": lambda rng, sheet, words: ("PO-1180", f"{words[0]}-2026"),
    "stamp_text": partial(_stamp, "text"),
    "stamp_picture": partial(_stamp, "picture"),
    "stamp_drawing": partial(_stamp, "drawing"),
    "qr": _qr,
}  # fmt: skip
_PLACES_OF: Final = {
    **dict.fromkeys(_KINDS, _FOR_SENTENCES),
    **dict.fromkeys(("word", "title"), _FOR_WORDS),
    **dict.fromkeys(("stamp_text", "stamp_picture", "stamp_drawing", "qr"), ("middle", "corner")),
    "size": ("header", "footer", "margin", "corner"),
    "left_out": ("header", "footer", "margin", "remark"),
}
CASES: Final = tuple((kind, place) for kind, places in _PLACES_OF.items() for place in places)
