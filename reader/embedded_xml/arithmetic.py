"""The arithmetic rules of EN 16931 (BR-CO-10 to BR-CO-17), as lenient as its validators."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from reader.embedded_xml.structured import Coded

CENT: Final = Decimal("0.01")
_UNIT: Final = Decimal(1)  # by which the tax of a rate may differ: many round each line's
_ADDED: Final = (
    ("br_co_10", "BT-106", "BT-131"),
    ("br_co_11", "BT-107", "BT-92"),
    ("br_co_12", "BT-108", "BT-99"),
)


def broken_rule(coded: Coded, due: Decimal) -> str | None:
    """The hold of the first rule that the sums break; terms that the XML lacks break none."""
    return next(
        (hold for hold, apart, tolerance in _compared(coded, due) if apart > tolerance), None
    )


def _compared(coded: Coded, due: Decimal) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Each rule's hold, how far its two sides are apart, and how far they may be."""
    sums, of = coded.sums, coded.sum_of
    for hold, term, part in _ADDED:
        parts = sums.get(part, ())
        # Each may have been rounded; before ZUGFeRD 2.0 allowances have either sign.
        if parts and (term in sums or part != "BT-131"):
            yield hold, abs(abs(of(term)) - abs(sum(parts, Decimal(0)))), CENT * len(parts)
    if "BT-106" in sums and "BT-109" in sums:
        net = of("BT-106") - of("BT-107") + of("BT-108")
        yield "br_co_13", abs(of("BT-109") - net), CENT
    taxes = [each.amount for each in coded.taxes if each.amount is not None]
    if taxes:
        yield "br_co_14", abs(of("BT-110") - sum(taxes, Decimal(0))), CENT * len(taxes)
    for base, percent, amount in coded.taxes:
        if base is not None and percent is not None and amount is not None:
            yield "br_co_17", abs(amount - base * percent / 100), _UNIT
    if "BT-109" in sums and "BT-112" in sums:
        yield "br_co_15", abs(of("BT-112") - of("BT-109") - of("BT-110")), CENT
    if "BT-112" in sums:
        apart = due - (of("BT-112") - of("BT-113") + of("BT-114"))
        # The MINIMUM profile has no lines, and no place for what was paid before.
        no_place = "BT-106" not in sums and "BT-113" not in sums
        yield "br_co_16", apart if no_place else abs(apart), CENT
