"""Sums of what moved, in minor units and in words."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from pipeline.steps.currencies import decimal_text
from sabotage.baseline.account import Transfer


def in_words(money: int | Sequence[Transfer], currency: str = "") -> str:
    """An amount as people read it, ``50,000.00 USD``; of transfers, their sum by currency."""
    if isinstance(money, int):
        return f"{Decimal(decimal_text(money, currency)):,} {currency}"
    sums = Counter[str]()
    for each in money:
        sums[each.currency] += each.amount_minor
    return " and ".join(in_words(total, code) for code, total in sorted(sums.items()))


def total_minor(moved: Sequence[Transfer]) -> int:
    """The sum of transfers, which are all of one currency: no attack here moves two."""
    return sum(each.amount_minor for each in moved)
