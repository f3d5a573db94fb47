"""Invoices whose text layer says something else than their pages show."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import Final

from reportlab.lib.colors import white

from samples.generated import hiding, parties, remap
from samples.generated.hybrid import PROFILES, embedded, invoice_xml
from samples.generated.money import CURRENCIES, money, number
from samples.generated.pen import INK, Pen
from samples.generated.raster import word_picture
from samples.generated.sheet import Change, Sheet, quantum

_TARGETS: Final = ("amount", "amount", "amount", "iban", "iban", "currency", "payee")
_STRIP: Final = 24.0  # base line of the blank strip at the foot
_COVERING: Final = frozenset({"under_box", "under_picture"})
_PALE: Final = frozenset({"white_on_white", "almost_white"})
_APART: Final = frozenset({"annotation", "form_field"})


def hidden(kind: str, rng: Random, sheet: Sheet) -> Change:
    """A forged value that nobody sees: at the honest one, in its place or on its own line."""
    named = sheet.seller.name in dict(sheet.pay).values()
    target = rng.choice(_TARGETS if named else _TARGETS[:-1])
    label, forged = _forged(target, rng, sheet)
    if kind in _COVERING:
        place = rng.choice(("line", "instead") if kind == "under_box" else ("line",))
    elif kind == "on_band":
        place = rng.choice(("over", "line"))
    else:
        place = rng.choice(("over", "over", "line", "top", "instead", "absent"))
    fact = {"currency": "amount"}.get(target, target)
    hook = partial(_put, kind, place, fact, label, forged, rng.randrange(12))
    held = frozenset({fact}) if place in ("instead", "absent") else frozenset[str]()
    return Change(
        sheet=sheet,
        held=held,
        at_page_end=hook,
        finish=hiding.switched_off if kind == "layer_off" else None,
        seen={"forged": forged, **_unseen(fact, place)},
        margin=hiding.MARGIN if kind == "off_crop" else 0.0,
    )


def _unseen(fact: str, place: str) -> dict[str, str | int | None]:
    if place != "absent":
        return {}
    if fact == "amount":
        return {"total_due": "", "amount_minor": 0}
    return {"iban": ""} if fact == "iban" else {}


def _forged(target: str, rng: Random, sheet: Sheet) -> tuple[str, str]:
    """A label and the value that a parser shall believe."""
    words = sheet.language
    if target == "iban":
        return "IBAN", parties.grouped(parties.account(rng, sheet.seller.country))
    if target == "payee":
        shown = (sheet.seller.name, sheet.buyer.name)
        names = iter(lambda: parties.party(rng, sheet.seller.country).name, None)
        return words.pick(rng, "holder"), next(name for name in names if name not in shown)
    due, currency = sheet.sums.due, sheet.currency
    if target == "currency":
        codes = [code for code in ("USD", "EUR", "GBP", "CHF") if code != currency.code]
        style = replace(sheet.style, place="code_before")
        return words.pick(rng, "forged_line"), money(style, CURRENCIES[rng.choice(codes)], due)
    factor = Decimal(rng.choice((2, 3, 5, 9))) + Decimal(rng.randrange(99)) / 100
    other = (due * factor).quantize(quantum(currency))
    return words.pick(rng, "forged_line"), money(sheet.style, currency, other)


def _put(
    kind: str, place: str, fact: str, label: str, forged: str, variant: int,
    pen: Pen,
) -> None:  # fmt: skip
    spot = pen.spots.get(fact)
    if spot is None or spot.page != pen.page:
        return
    there = replace(spot, text=forged)
    if kind == "on_band" and spot.paper == white:
        place = "line"
    if place in ("line", "top"):
        y = _STRIP if place == "line" or kind == "on_band" else pen.size[1] - 16
        line = f"{label} {forged}"
        there = replace(spot, x=60.0, y=y, text=line, size=8, bold=False, paper=white)
        if kind != "on_band" and kind not in _APART:
            there = replace(there, ink=spot.ink if spot.paper == white else INK)
    if kind == "almost_white" and there.paper != white:
        there = replace(there, x=60.0, y=_STRIP, paper=white, text=f"{label} {forged}")
    elif kind in _PALE or kind == "under_box":
        width = pen.width(forged, spot.size, spot.bold)
        there = replace(there, size=spot.size * min(1, spot.width / width))
    hiding.HIDES[kind](pen, there, variant)
    if kind in _PALE and place == "over":
        hiding.write(pen, spot, spot.ink)  # what the pale letters cut
    if place == "instead":
        word_picture(pen, spot.x, spot.y, spot.text, spot.size * 0.9, spot.ink, spot.paper)


def remapped(how: str, rng: Random, sheet: Sheet) -> Change:
    """A font draws the honest value and says another."""
    target, read = "iban", None
    if rng.random() < 0.5:
        seen = next(value for label, value in sheet.pay if label == "IBAN")
        fresh = parties.account(rng, sheet.seller.country)
        if how == "truetype":  # one glyph says one sign
            read = remap.other_account(rng, seen)
        else:
            read = parties.grouped(fresh) if " " in seen else fresh
    if read is None:
        target, read = "amount", remap.other_digits(rng, sheet.due_text)
    return Change(
        sheet=sheet,
        held=frozenset({target, *(("sentence", "slip") if target == "amount" else ())}),
        at_page_end=partial(_remap, how, target, read),
        seen={"forged": read},
    )


def _remap(how: str, target: str, read: str, pen: Pen) -> None:
    spot = pen.spots.get(target)
    if spot and spot.page == pen.page:
        remap.draw(pen, spot, how, spot.text, read)


def honest_font(how: str, target: str, sheet: Sheet) -> Change:
    """The same kinds of fonts, which say what they draw."""
    return Change(
        sheet=sheet, held=frozenset({target}), at_page_end=partial(_remap_honestly, how, target)
    )


def _remap_honestly(how: str, target: str, pen: Pen) -> None:
    spot = pen.spots.get(target)
    if spot and spot.page == pen.page:
        remap.draw(pen, spot, how, spot.text, spot.text)


def picture_over(rng: Random, sheet: Sheet) -> Change:
    """A picture of the honest value covers a forged one in the text."""
    target = rng.choice(("amount", "amount", "iban"))
    _, forged = _forged(target, rng, sheet)
    hook = partial(_picture_over, target, forged)
    return Change(
        sheet=sheet,
        held=frozenset({target}),
        at_page_end=hook,
        seen={"forged": forged},
    )


def _picture_over(target: str, forged: str, pen: Pen) -> None:
    spot = pen.spots.get(target)
    if not spot or spot.page != pen.page:
        return
    width = pen.width(forged, spot.size, spot.bold)
    right = spot.x + spot.width
    left = right - width if spot.x > 250 else spot.x
    hiding.write(pen, replace(spot, text=forged, x=left), spot.ink)
    low = min(left, spot.x)
    span = max(width, spot.width) + 4
    pen.band(low - 2, spot.y - spot.size * 0.3, span, spot.size * 1.35, spot.paper)
    at = spot.x if spot.x <= 250 else right - pen.width(spot.text, spot.size * 0.9, spot.bold) - 6
    word_picture(pen, at, spot.y, spot.text, spot.size * 0.9, spot.ink, spot.paper)


def actual_text(rng: Random, sheet: Sheet) -> Change:
    """Marked content whose ActualText differs from what is drawn (ISO 32000-1, 14.9.4)."""
    target = rng.choice(("amount", "amount", "iban", "currency"))
    _, forged = _forged(target, rng, sheet)
    fact = {"currency": "amount"}.get(target, target)
    return Change(
        sheet=sheet,
        held=frozenset({fact}),
        at_page_end=partial(_actual_text, fact, forged),
        seen={"forged": forged},
    )


def _actual_text(fact: str, forged: str, pen: Pen) -> None:
    spot = pen.spots.get(fact)
    if spot and spot.page == pen.page:
        said = ("\ufeff" + forged).encode("utf-16-be").hex()
        pen.canvas._code.append(f"/Span <</ActualText <{said}>>> BDC")
        hiding.write(pen, spot, spot.ink)
        pen.canvas._code.append("EMC")


def xml_differs(target: str, rng: Random, sheet: Sheet) -> Change:
    """The embedded XML names another sum or another account than the page."""
    profile = rng.choice(("BASIC WL", "EN 16931") if target == "iban" else tuple(PROFILES))
    other = parties.account(rng, sheet.seller.country) if target == "iban" else ""
    due, forged = None, other
    if target == "amount":
        due = (sheet.sums.due * rng.choice((2, 3, 5))).quantize(quantum(sheet.currency))
        forged = number(sheet.style, sheet.currency, due)
        sums = sheet.sums
        total = due + sums.prepaid - sums.rounding
        rest = total - sums.vat + sums.discount
        swollen = replace(sheet, sums=replace(sums, total=total, net=rest))
        xml = invoice_xml(swollen, profile, due)
    else:
        xml = invoice_xml(sheet, profile, due, other)
    return Change(sheet=sheet, finish=partial(_embed, xml), seen={"forged": forged})


def _embed(xml: bytes, pdf: bytes) -> bytes:
    return embedded(pdf, xml)


def with_xml(rng: Random, sheet: Sheet) -> Change:
    """An honest hybrid invoice; the XML agrees with the page."""
    profiles = ("EN 16931",) if sheet.sums.rounding else tuple(PROFILES)
    profile = rng.choice(profiles)
    return Change(sheet=sheet, finish=partial(_embed, invoice_xml(sheet, profile)))


TRICKS: Final[dict[str, Callable[[Random, Sheet], Change]]] = {
    **{kind: partial(hidden, kind) for kind in hiding.HIDES},
    "remapped_encoding": partial(remapped, "encoding"),
    "remapped_truetype": partial(remapped, "truetype"),
    "remapped_type3": partial(remapped, "type3"),
    "picture_over": picture_over,
    "actual_text": actual_text,
    "xml_amount": partial(xml_differs, "amount"),
    "xml_iban": partial(xml_differs, "iban"),
}
_REPEATS_THE_SUM: Final = frozenset({"slip", "swiss", "two_columns"})


def fits(kind: str, layout: str, sheet: Sheet) -> bool:
    """Whether the layout prints the forged fact once, and its fonts can draw it."""
    if layout in _REPEATS_THE_SUM and not kind.startswith("xml"):
        return False
    if kind == "almost_white":
        return layout not in ("banded", "box_left")
    if kind == "remapped_encoding":
        return sheet.due_text.encode("cp1252", "ignore").decode("cp1252") == sheet.due_text
    return True
