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
from samples.generated.change import Change
from samples.generated.money import MoneyStyle, minor, money, plain
from samples.generated.pen import Pen
from samples.generated.raster import rectangles, stamp_picture, word_picture
from samples.generated.sheet import Sheet

_RED: Final = HexColor("#b02026")
_PALE: Final = Color(0.82, 0.84, 0.87)
_BRANDS: Final = ("TOP", "ALL", "PEN", "TRY", "CUP", "MOP", "LAK", "GEL", "BAM", "SOS")
_STEMS: Final = (
    *("invoice", "inv.", "bill", "rechnung", "re.-nr", "beleg", "faktur", "factuur", "factur"),
    *("fattur", "fatura", "nota ", "regning", "facturé"),
)


def spoken(statement: str, rng: Random, sheet: Sheet) -> Change:
    """A sentence among the remarks, or a banner beneath the title."""
    text = sheet.language.says(rng, statement)
    if text.isupper() or (len(text) < 34 and rng.random() < 0.4):
        return Change(sheet=replace(sheet, banner=text), mark="banner")
    return Change(sheet=replace(sheet, remarks=(text, *sheet.remarks)), mark="remark")


def specimen(rng: Random, sheet: Sheet) -> Change:
    """Said in words, or as pale letters across the page."""
    if rng.random() < 0.5:
        return spoken("specimen", rng, sheet)
    text = sheet.language.says(rng, "specimen").split(" - ")[0].rstrip(".")
    return Change(sheet=sheet, at_page_end=partial(_across, text), mark="watermark")


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


def stamped(words: str, rng: Random, sheet: Sheet) -> Change:
    """A stamp as text, as a picture or as a drawing, upright or rotated."""
    text = str(rng.choice(sheet.language.words["says"][words]))
    how = rng.choice(("text", "picture", "picture", "drawing"))
    angle = rng.choice((0, 0, 12, -14, 30, 45))
    place = (rng.uniform(0.4, 0.6), rng.uniform(0.42, 0.62))
    hook = partial(_stamp, text, how, angle, place)
    return Change(sheet=sheet, at_page_end=hook, mark=f"{how} {angle}")


def _stamp(text: str, how: str, angle: float, place: tuple[float, float], pen: Pen) -> None:
    if pen.page != 1:
        return
    canvas, x, y = pen.canvas, pen.size[0] * place[0], pen.size[1] * place[1]
    if how == "picture":
        picture = stamp_picture(text, angle)
        scale = min(0.55, 0.7 * pen.size[0] / picture.width)
        width, height = picture.width * scale, picture.height * scale
        at = (x - width / 2, y - height / 2, width, height)
        canvas.drawImage(ImageReader(picture), *at, mask="auto")
        return
    canvas.saveState()
    canvas.translate(x, y)
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


def titled(document: str, rng: Random, sheet: Sheet) -> Change:
    """The title of another document; its number may be called an invoice number or not."""
    changed = replace(sheet, title=sheet.language.title_of(rng, document))
    if document not in ("self_billed", "pro_forma", "reminder") and rng.random() < 0.6:
        changed = _without_invoice(rng, changed)
    return Change(sheet=changed, mark="title")


def credit_note_picture(rng: Random, sheet: Sheet) -> Change:
    """The title of a credit note is a picture, and the page has no other title."""
    changed = replace(sheet, title=sheet.language.title_of(rng, "credit_note"))
    if rng.random() < 0.5:
        changed = _without_invoice(rng, changed)
    return Change(
        sheet=changed, held=frozenset({"title"}), at_page_end=_title_picture, mark="picture"
    )


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
        changed = replace(changed, remarks=(sheet.language.says(rng, "zero"), *sheet.remarks))
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


def no_title(rng: Random, sheet: Sheet) -> Change:
    """A letter or a contract that names a sum and an account."""
    changed = replace(sheet, title=sheet.language.title_of(rng, "letter"))
    return Change(sheet=_without_invoice(rng, changed))


def _speaks_of_invoices(text: str) -> bool:
    return any(stem in f"{text.casefold()} " for stem in _STEMS)


def _without_invoice(rng: Random, sheet: Sheet) -> Sheet:
    """The same sheet whose labels and remarks never say invoice."""
    words = sheet.language
    quiet = [label for label in words.all("issued") if not _speaks_of_invoices(label)]
    keys = (words.pick(rng, "neutral_number"), rng.choice(quiet))
    facts = []
    for label, value in sheet.facts:
        said = _speaks_of_invoices(label)
        facts.append((keys[0 if value == sheet.number else 1] if said else label, value))
    dues = [label for label in words.all("amount_due") if not _speaks_of_invoices(label)]
    others = [label for label in words.all("bill_to") if not _speaks_of_invoices(label)]
    remarks = tuple(text for text in sheet.remarks if not _speaks_of_invoices(text))
    label, bill_to = sheet.due_label, sheet.bill_to
    total = next(text for text in words.all("total") if not _speaks_of_invoices(text))
    rows = tuple(
        (total if _speaks_of_invoices(name) else name, value) for name, value in sheet.rows
    )
    return replace(
        sheet,
        facts=tuple(facts),
        remarks=remarks,
        rows=rows,
        due_label=rng.choice(dues) if _speaks_of_invoices(label) else label,
        bill_to=others[0] if _speaks_of_invoices(bill_to) else bill_to,
    )


CONTRARY: Final[dict[str, Callable[[Random, Sheet], Change]]] = {
    **{
        name: partial(spoken, statement)
        for name, statement in (
            *(("settled", "settled"), ("direct_debit", "direct_debit"), ("void", "void")),
            *(("retention", "retention"), ("refund", "refund")),
        )
    },
    **{
        document: partial(titled, document)
        for document in (
            *("credit_note", "pro_forma", "quotation", "order_confirmation", "delivery_note"),
            *("reminder", "statement", "self_billed"),
        )
    },
    "specimen": specimen,
    "stamped_paid": partial(stamped, "stamp_paid"),
    "stamped_void": partial(stamped, "stamp_void"),
    "credit_note_picture": credit_note_picture,
    "negative_amount": negative,
    "zero_balance": zero,
    "net_only": net_only,
    "two_amounts": two_amounts,
    "two_ibans": two_ibans,
    "iban_check_digits": wrong_iban,
    "no_currency": no_currency,
    "no_seller": no_seller,
    "no_invoice_title": no_title,
}
_SUMS_OF_SWISS: Final = frozenset(
    {"negative_amount", "zero_balance", "net_only", "no_currency", "two_ibans", "two_amounts"}
)


def fits(kind: str, layout: str) -> bool:
    """Whether a layout can show the statement and nothing that undoes it."""
    if layout == "swiss":
        return kind not in _SUMS_OF_SWISS
    if kind in ("net_only", "no_invoice_title") or kind in ("quotation", "delivery_note"):
        return layout not in ("letter", "slip")  # its sentences say invoice and amount
    return True
