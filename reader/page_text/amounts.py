"""Amounts of money as people print them, read without guessing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from reader.currencies import DECIMALS

Separator = Literal[".", ",", ""]

_SIGNS: Final = (
    "€=EUR £=GBP kč=CZK zł=PLN ₹=INR ₩=KRW ₺=TRY ₽=RUB ₴=UAH ₪=ILS ₫=VND ₱=PHP ฿=THB us$=USD"
    " ca$=CAD a$=AUD au$=AUD nz$=NZD hk$=HKD s$=SGD nt$=TWD r$=BRL mx$=MXN euro=EUR euros=EUR"
)
SYMBOLS: Final = dict(each.split("=") for each in _SIGNS.split())
UNCERTAIN: Final = frozenset({"$", "c$", "¥", "kr", "kr.", "fr", "fr.", "sfr.", "ft", "lei"})

_SPACES: Final = " \u00a0\u202f\u2009\u2007"
_CODES: Final = "|".join(sorted(DECIMALS))
_MARKS: Final = "|".join(re.escape(mark) for mark in sorted({*SYMBOLS, *UNCERTAIN}, key=len)[::-1])
_ANY: Final = rf"(?:(?:(?-i:{_CODES})|{_MARKS})(?![A-Za-z])|[€£])"
_DIGITS: Final = (
    rf"\d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}})+(?:[.,]\d+)?"  # 12.345,67  1 234  1'234.50
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?"  # 1,00,000.00
    r"|\d+(?:[.,]\d+)?"
)
_BEFORE: Final = rf"(?:(?<![A-Za-z])(?P<before>{_ANY})[{_SPACES}]{{0,3}})?"
_CODE_AFTER: Final = rf"(?P<code>(?-i:{_CODES}))(?![A-Za-z])(?![{_SPACES}]{{0,3}}\d)"
_AMOUNT: Final = re.compile(
    rf"(?<![\w.,/:#§+*])(?P<sign>[-−–]\s?)?(?P<open>\(\s?)?"
    rf"{_BEFORE}(?P<inner>[-−–]\s?)?(?P<digits>{_DIGITS})(?P<dash>[.,:][-–—]{{1,2}})?"
    rf"(?![/:]|(?!{_ANY})\w|[.,]\d|-\d|[{_SPACES}]?%)(?P<minus>[-−](?!\w))?"
    rf"(?(before)(?:[{_SPACES}]?{_CODE_AFTER})?"
    rf"|(?:[{_SPACES}]?(?P<after>{_ANY}))?)(?P<close>\s?\))?(?P<credit>\s?CR\b)?",
    re.IGNORECASE,
)
_POINTS: Final[tuple[tuple[Separator, str], ...]] = ((".", ","), (",", "."))
_WHOLE: Final = r"(?<![\d.,])(?:{})(?![\d.,]|\s?%)"  # no part of another number, no percentage
_TELLING: Final[tuple[dict[Separator, re.Pattern[str]], ...]] = (  # decimals so written, best first
    {p: re.compile(_WHOLE.format(rf"\d{{1,3}}(?:[.,'’ ]\d{{3}})*\{p}\d\d")) for p, _ in _POINTS},
    {
        p: re.compile(
            _WHOLE.format(rf"0\{p}\d{{3,}}|\d{{1,3}}(?:\{g}\d{{3}})+(?:\{p}\d+|\{g}\d{{3}})")
        )
        for p, g in _POINTS
    },
)
_CENTS, _LAST = re.compile(r"[.,]\d\d$"), re.compile(r"[.,](?=[^.,]*$)")
_APART: Final = str.maketrans("", "", f"'’{_SPACES}")
_ADDED_MAX: Final = 300  # amounts of a document that are added up
_TORN: Final = re.compile(rf"(?:[{_SPACES}]?[.,'’])?[{_SPACES}]?\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One printed amount: its possible readings, and what stood around it.

    ``readings`` has two values, thousands first, where the print allows both
    (``1.284``); ``doubt`` is then the separator in question. ``firm`` says that
    it is clearly money: it has a currency, or two decimals. ``torn`` are wide
    gaps within, as in ``1, 234. 50``: then only a part of the number was read.
    """

    readings: tuple[Decimal, ...]
    doubt: str | None
    mark: str | None
    firm: bool
    start: int
    end: int
    tail: Decimal | None = None
    cents: bool = False  # whether it is printed with two decimals
    torn: bool = False

    def value(self, separator: Separator, decimals: int = 2) -> Decimal | None:
        """The one reading, given how this document writes decimals; None when in doubt.

        Where nothing says what one separator with three digits behind it is, it is in doubt,
        unless the currency has no decimals.
        """
        if self.torn:
            return None
        if self.doubt is None or decimals == 0:
            return self.readings[0]
        if separator == "":
            return None
        return self.readings[1 if separator == self.doubt else 0]


@lru_cache(maxsize=4_096)  # for a document's child: other processes ask ``__wrapped__``
def amounts_in(text: str) -> tuple[Amount, ...]:
    """Every amount in a piece of text, from the left, signs kept."""
    found = []
    for match in _AMOUNT.finditer(text):
        readings = _readings(match["digits"])
        if not readings:
            continue
        negative = bool(match["sign"] or match["inner"] or match["minus"] or match["credit"])
        negative = negative or bool(match["open"] and match["close"])
        mark = _mark(match)
        decimals = _CENTS.search(match["digits"])
        if match["dash"]:
            readings = readings[:1]  # ",-" says that there are no decimals
        found.append(
            Amount(
                readings=tuple(-value if negative else value for value in readings),
                doubt=re.sub(r"[^.,]", "", match["digits"]) if len(readings) > 1 else None,
                mark=mark.casefold() if mark else None,
                firm=bool(mark or decimals or match["dash"]),
                start=match.end("open") if match["open"] and not match["close"] else match.start(),
                end=match.end(),
                tail=_tail(match["digits"]),
                cents=decimals is not None,
                torn=bool(_TORN.match(text, match.end("digits"))),
            )
        )
    return tuple(found)


def _mark(match: re.Match[str]) -> str | None:
    """What says the currency; of a symbol before and a code after, as in ``$ 5 CAD``, the code."""
    before = match["before"]
    if before and match["code"] and before.upper() not in DECIMALS:
        return match["code"]
    return before or match["after"]


def decimal_separator(text: str) -> Separator:
    """How a document writes decimals; empty where its amounts leave that open.

    The amounts that can be read in one way only say it, best those with two decimals. So does a
    sum that adds up in one way only.
    """
    for telling in _TELLING:
        votes = [point for point, written in telling.items() if written.search(text)]
        if votes:
            return votes[0] if len(votes) == 1 else ""
    amounts = amounts_in(text)[:_ADDED_MAX]
    doubted = {each.doubt for each in amounts if each.doubt}
    if len(doubted) != 1:
        return ""
    dotted = doubted == {"."}
    thousands, decimals = _adds_up(amounts, 0), _adds_up(amounts, -1)
    if thousands == decimals:
        return ""
    return "." if dotted == decimals else ","


def _adds_up(amounts: Sequence[Amount], reading: int) -> bool:
    """Whether an amount in doubt, so read, is the sum of two others, one of which is in none."""
    plain = {each.readings[0] for each in amounts if each.doubt is None and each.readings[0]}
    doubted = {each.readings[reading] for each in amounts if each.doubt}
    every = plain | doubted
    return any(total - part in every - {total, Decimal(0)} for total in doubted for part in plain)


def _readings(digits: str) -> tuple[Decimal, ...]:
    """The numbers that the digits can mean; none when they are no number at all."""
    digits = digits.translate(_APART)
    kinds = [char for char in digits if char in ".,"]
    if not kinds:
        return (Decimal(digits),)
    whole, fraction = _LAST.split(digits)
    if len(set(kinds)) == 2:
        return _grouped(whole, kinds[0], fraction) if kinds.count(kinds[-1]) == 1 else ()
    if len(kinds) > 1:
        return _grouped(digits, kinds[0], None)
    if len(fraction) == 3 and 1 <= len(whole) <= 3 and not whole.startswith("0"):
        return (Decimal(whole + fraction), Decimal(f"{whole}.{fraction}"))
    return (Decimal(f"{whole}.{fraction}"),)


def _grouped(whole: str, separator: str, fraction: str | None) -> tuple[Decimal, ...]:
    groups = whole.split(separator)
    western = all(len(group) == 3 for group in groups[1:]) and 1 <= len(groups[0]) <= 3
    indian = separator == "," and len(groups[-1]) == 3 and all(len(g) == 2 for g in groups[1:-1])
    if not western and not (indian and 1 <= len(groups[0]) <= 2):
        return ()
    return (Decimal("".join(groups) + (f".{fraction}" if fraction else "")),)


def _tail(digits: str) -> Decimal | None:
    """For ``2 500.00``, which may be a count and then an amount: the amount."""
    head, _, tail = digits.rpartition(" ")
    readings = _readings(tail) if head else ()
    return readings[0] if len(readings) == 1 else None


def has_money(text: str) -> bool:
    """Whether an amount in a text is clearly one."""
    return any(amount.firm for amount in amounts_in(text))
