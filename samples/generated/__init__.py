"""Invoices made from a seed, with their truth: honest ones, tricks and contrary statements."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from samples.generated import added, contrary, parties, tricks
from samples.generated.layouts import LAYOUTS
from samples.generated.money import minor, plain
from samples.generated.pen import A4, LANDSCAPE, MANNERS, Pen
from samples.generated.sheet import Change, Sheet, sheet
from samples.generated.truth import Generated, Truth

__all__ = ["CONTRARY", "HONEST", "KINDS", "TRICKS", "Generated", "Truth", "batch", "generate"]

HONEST: Final = ("honest", "honest_xml")
TRICKS: Final = tuple(tricks.TRICKS)
CONTRARY: Final = tuple(contrary.CONTRARY)
KINDS: Final = (*HONEST, *TRICKS, *CONTRARY)

_ROLL: Final = (300.0, 841.89)
_WESTERN_FAMILIES: Final = ("Helvetica", "Helvetica", "Times", "Courier")
_SMALL: Final = ("swiss", "slip")
_NO_ROOM_FOR_A_CODE: Final = ("swiss", "slip", "receipt", "landscape", "banded")
_HONEST_SHARE: Final = 0.5


def generate(seed: int, kind: str | None = None) -> Generated:
    """The invoice of a seed and a kind; without a kind the seed chooses, honest ones half the time.

    The same arguments give the same bytes on any day.
    """
    if kind is None:
        rng = _dice(f"kind {seed}")
        honest = rng.random() < _HONEST_SHARE
        kind = rng.choice(HONEST if honest else KINDS[len(HONEST) :])
    rng = _dice(f"{kind} {seed}")
    layout, plain_sheet = _layout_and_sheet(rng, kind)
    change = _changed(rng, kind, plain_sheet)
    pdf = _drawn(rng, kind, layout, change)
    language = plain_sheet.language.code
    return Generated(
        name=f"{seed:06d}-{kind}-{layout}-{language}",
        kind=kind,
        layout=layout,
        language=language,
        pdf=pdf,
        truth=_truth(kind, plain_sheet, change),
    )


def batch(each: int, kinds: Iterable[str] = KINDS, first_seed: int = 1) -> Iterator[Generated]:
    """So many invoices of each kind, from consecutive seeds."""
    for kind in kinds:
        for seed in range(first_seed, first_seed + each):
            yield generate(seed, kind)


def _dice(seed: str) -> Random:
    return Random(seed)  # noqa: S311  # a sample must be the same each time


def series(
    seed: int, *kinds: str, variety: str = "", adds: Sequence[Callable[[Change], Change]] = ()
) -> Iterator[Generated]:
    """Invoices of one supplier, template and buyer, one of each of these kinds in order.

    Items, numbers, dates and sums differ from one to the next. The last has the ``variety``, and
    each the addition of its place.
    """
    for place, kind in enumerate(kinds):
        rng, values = _dice(f"series {seed}"), _dice(f"series {seed} {place}")
        own = variety if place == len(kinds) - 1 else ""
        layout, made = _layout_and_sheet(rng, kinds[-1], values, variety, own)
        change = _changed(_dice(f"font {seed}") if kind in HONEST else values, kind, made)
        if variety == "code":
            change = added.with_code(change)
        if adds:
            change = adds[place](change)
        yield Generated(
            name=f"{seed:06d}-{place}-{kind}-{layout}-{made.language.code}",
            kind=kind,
            layout=layout,
            language=made.language.code,
            pdf=_drawn(rng, kind, layout, change),
            truth=_truth(kind, made, change),
        )


def with_addition(seed: int) -> tuple[str, list[Generated]]:
    """A case of an addition; an invoice, the supplier's next one, and that with the addition."""
    kind, place = added.CASES[seed % len(added.CASES)]
    language = added.LANGUAGES[(seed + seed // len(added.CASES)) % len(added.LANGUAGES)]
    name = f"{seed} {kind} {place} {language}"
    known, new = (
        partial(added.with_addition, name, (kind, place, language), it) for it in (False, True)
    )
    honest = ("honest", "honest")
    first, second = series(seed, *honest, adds=(known, known))
    _, third = series(seed, *honest, adds=(known, new))
    return name, [first, second, third]


def _layout_and_sheet(
    rng: Random, kind: str, values: Random | None = None, variety: str = "", own: str = ""
) -> tuple[str, Sheet]:
    """A layout and the texts for it, of which the kind and the variety can be made."""
    while True:
        layout = rng.choice(tuple(LAYOUTS))
        if kind in CONTRARY and not contrary.fits(kind, layout):
            continue
        country = "CH" if layout == "swiss" else ""
        if variety == "sixty" and layout != "pages":
            continue
        made = sheet(rng, layout == "pages", country, layout in _SMALL, values, own)
        if not _has_variety(variety, layout, made):
            continue
        if kind not in TRICKS or tricks.fits(kind, layout, made):
            return layout, made


def _has_variety(variety: str, layout: str, made: Sheet) -> bool:
    """Whether a supplier's invoices can have the variety."""
    if variety == "rate":
        rates = parties.vat_rates_of(made.seller.country)
        return bool(made.sums.rate) and not made.sums.discount_rate and len(rates) > 1
    if variety == "discount":
        return bool(made.sums.rate)
    if variety == "lines":
        return layout != "pages"  # its rows have their height
    if variety == "code":
        return made.currency.code == "EUR" and layout not in _NO_ROOM_FOR_A_CODE
    return True


def _changed(rng: Random, kind: str, made: Sheet) -> Change:
    if kind == "honest":
        if rng.random() < 0.1:
            how = rng.choice(("truetype", "type3"))
            return tricks.honest_font(how, rng.choice(("amount", "iban")), made)
        return Change(sheet=made)
    if kind == "honest_xml":
        return tricks.with_xml(rng, made)
    return {**tricks.TRICKS, **contrary.CONTRARY}[kind](rng, made)


def _drawn(rng: Random, kind: str, layout: str, change: Change) -> bytes:
    size = {"landscape": LANDSCAPE, "receipt": _ROLL}.get(layout, A4)
    family = "Vera" if change.sheet.wide else rng.choice(_WESTERN_FAMILIES)
    family = change.family or family
    manner, turned = rng.choice(MANNERS), layout == "landscape" and rng.random() < 0.5
    pen = Pen(size, family, manner, change.held, change.at_page_end, change.margin, turned)
    LAYOUTS[layout](pen, change.sheet, rng)
    pdf = pen.done()
    return change.finish(pdf) if change.finish else pdf


def _truth(kind: str, made: Sheet, change: Change) -> Truth:
    """What a person sees: the sheet's facts, but for those that the change overrides."""
    due = made.sums.due
    facts: dict[str, Any] = {
        "invoice_number": made.number,
        "seller": made.seller.name,
        "buyer": made.buyer.name,
        "iban": made.iban,
        "currency": made.currency.code,
        "total_due": plain(made.currency, due),
        "amount_minor": minor(made.currency, due),
        "issue_date": made.issued.isoformat(),
        "due_date": made.due_date.isoformat() if made.due_date else None,
    }
    payable = kind in HONEST
    return partial(Truth, payable=payable, reason="" if payable else kind)(
        **{**facts, **change.seen}
    )
