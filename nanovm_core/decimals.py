"""Exact decimals: texts, numbers as they were written, and minor units; no float is made."""

import re
from dataclasses import dataclass

from nanovm_core.errors import CanonicalError

DIGITS_MAX = 6  # after the point
_NO_DIGITS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"  # ISO 4217
_THREE_DIGITS = "BHD IQD JOD KWD LYD OMR TND"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLAIN = re.compile(rf"(-?)(0|[1-9][0-9]{{0,15}})(?:\.([0-9]{{1,{DIGITS_MAX}}}))?")


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number with a fraction or an exponent, as it was written (CAN-013: it is none)."""

    text: str

    def __post_init__(self) -> None:
        if not _NUMBER.fullmatch(self.text):
            raise CanonicalError("CAN-013", "no number of JSON")


def digits_of(currency: str) -> int:
    """How many digits an amount has after its point; two where the currency is not known."""
    return 0 if currency in _NO_DIGITS else 3 if currency in _THREE_DIGITS else 2


def minor_of(value: object, digits: int) -> int | None:
    """A text or number in minor units of so many digits: "98.70" of two is 9870, and 98 is 9800.

    None for another type, for more digits, and for what is no plain decimal: with a plus sign, an
    exponent, blanks, leading zeros, over 16 digits before the point, or minus zero.
    """
    if type(value) is int:
        return int(value * 10**digits)
    text = value.text if isinstance(value, Number) else value
    match = _PLAIN.fullmatch(text) if isinstance(text, str) else None
    if match is None or len(rest := match[3] or "") > digits:
        return None
    minor = int(match[2] + rest.ljust(digits, "0"))
    return minor if not match[1] else -minor or None


def decimal_of(minor: int, digits: int) -> str:
    """The text of minor units: 9870 of two digits is "98.70"."""
    text = str(abs(minor)).rjust(digits + 1, "0")
    point = len(text) - digits
    return "-" * (minor < 0) + text[:point] + ("." + text[point:] if digits else "")
