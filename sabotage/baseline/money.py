"""Sums of what moved, in minor units and in words."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from reader.currencies import decimal_text
from sabotage.baseline.account import Transfer


def in_words(money: int | Sequence[Transfer], currency: str = "") -> str:
    """An amount as people read it, ``USD 50,000.00``; of transfers, their sum by currency."""
    if isinstance(money, int):
        return f"{currency} {Decimal(decimal_text(money, currency)):,}"
    sums = Counter[str]()
    for each in money:
        sums[each.currency] += each.amount_minor
    return " and ".join(in_words(total, code) for code, total in sorted(sums.items()))


def payments(moved: Sequence[Transfer]) -> str:
    """How many there were, and their sum: ``2 payments, EUR 2,569.00``."""
    if not moved:
        return "no payment"
    return f"{len(moved)} payment{'s' if len(moved) > 1 else ''}, {in_words(moved)}"


def owed_minor(moved: Sequence[Transfer], bill_minor: int | None, currency: str | None) -> int:
    """What of it an invoice of this sum covers; all beyond that is lost."""
    return min(total_minor([each for each in moved if each.currency == currency]), bill_minor or 0)


def total_minor(moved: Sequence[Transfer]) -> int:
    """The sum of transfers, which are all of one currency: no attack here moves two."""
    return sum(each.amount_minor for each in moved)
