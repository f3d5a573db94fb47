"""Sums of money as invoices of many countries print them."""

from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Final

_THIN: Final = "\u2009"
_NO_BREAK: Final = "\u00a0"
_NARROW: Final = "\u202f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency:
    """An ISO 4217 code; ``printed`` decimals may be fewer than the ``minor`` ones."""

    code: str
    symbol: str = ""
    minor: int = 2
    printed: int = 2
    clear: bool = False  # no other currency has the symbol


CURRENCIES: Final = {
    each.code: each
    for each in (
        Currency(code="EUR", symbol="€", clear=True),
        Currency(code="GBP", symbol="£", clear=True),
        Currency(code="USD", symbol="$"),
        Currency(code="CHF", symbol="Fr."),
        Currency(code="SEK", symbol="kr"),
        Currency(code="DKK", symbol="kr."),
        Currency(code="NOK", symbol="kr"),
        Currency(code="PLN", symbol="zł", clear=True),
        Currency(code="CZK", symbol="Kč", clear=True),
        Currency(code="HUF", symbol="Ft", printed=0, clear=True),
        Currency(code="JPY", symbol="¥", minor=0, printed=0),
        Currency(code="CAD", symbol="$"),
        Currency(code="AUD", symbol="$"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyStyle:
    """Signs between the digits, and where the currency is."""

    group: str
    point: str
    place: str  # code_before, code_after, symbol_before, symbol_after, both, bare
    gap: str = " "


_NUMBERS: Final = {
    "en": ((",", "."), ("", ".")),
    "de": ((".", ","), (" ", ","), ("", ",")),
    "fr": ((" ", ","), (_NO_BREAK, ","), (_NARROW, ","), ("", ",")),
    "it": ((".", ","), ("", ",")),
    "es": ((".", ","), ("", ",")),
    "nl": ((".", ","), ("", ",")),
    "pl": ((" ", ","), (_NO_BREAK, ","), ("", ",")),
    "sv": ((" ", ","), (_THIN, ","), (_NO_BREAK, ",")),
    "cs": ((" ", ","), (_NO_BREAK, ","), (_THIN, ",")),
    "da": ((".", ","), ("", ",")),
    "pt": ((".", ","), (" ", ","), ("", ",")),
}
_SWISS: Final = (("'", "."), ("’", "."), (" ", "."))


def money_style(
    rng: Random, language: str, country: str, currency: Currency, wide: bool
) -> MoneyStyle:
    """A style of the language; a ``wide`` font has thin spaces and all symbols."""
    choices = _SWISS if country == "CH" else _NUMBERS[language]
    group, point = rng.choice(choices)
    if not wide and group in (_THIN, _NARROW):
        group = _NO_BREAK
    if currency.printed == 0 and group == ".":
        group = " "  # 1.234 without decimals could be one and a bit
    places = ["code_before", "code_after", "code_before", "bare"]
    if currency.symbol and (wide or currency.symbol.encode("cp1252", "ignore").decode("cp1252")):
        symbol = "symbol_before" if language == "en" or currency.symbol in "£$¥" else "symbol_after"
        places += [symbol] * (4 if currency.clear else 1) + ["both"]
    if currency.code in ("PLN", "CZK") and not wide:
        places = ["code_before", "code_after", "bare"]
    return MoneyStyle(
        group=group, point=point, place=rng.choice(places), gap=rng.choice((" ", " ", _NO_BREAK))
    )


def number(style: MoneyStyle, currency: Currency, amount: Decimal) -> str:
    """The digits alone."""
    text = f"{amount:,.{currency.printed}f}"
    return text.replace(",", "\0").replace(".", style.point).replace("\0", style.group)


def money(style: MoneyStyle, currency: Currency, amount: Decimal) -> str:
    """The digits with their currency, unless the style declares it once."""
    digits, gap = number(style, currency, amount), style.gap
    match style.place:
        case "code_before":
            return f"{currency.code}{gap}{digits}"
        case "code_after":
            return f"{digits}{gap}{currency.code}"
        case "symbol_before":
            return f"{currency.symbol}{digits}"
        case "symbol_after":
            return f"{digits}{gap}{currency.symbol}"
        case "both":
            return f"{currency.symbol}{digits} {currency.code}"
        case _:
            return digits


def is_clear(style: MoneyStyle, currency: Currency) -> bool:
    """Whether a sum in this style says its currency by itself."""
    if style.place == "bare":
        return False
    return currency.clear or not style.place.startswith("symbol")


def minor(currency: Currency, amount: Decimal) -> int:
    """The amount in minor units."""
    return int(amount.scaleb(currency.minor))


def plain(currency: Currency, amount: Decimal) -> str:
    """The amount as a decimal string with the digits of ISO 4217."""
    return f"{amount:.{currency.minor}f}"
