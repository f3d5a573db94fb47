"""Which currency a printed amount is in, or None where the page leaves a choice."""

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from reader.currencies import DECIMALS
from reader.page_text.amounts import SYMBOLS, UNCERTAIN, amounts_in
from reader.page_text.dates import fold
from reader.page_text.rows import Cell, Row
from reader.page_text.vocabulary import words

_CODES: Final = "|".join(sorted(DECIMALS))
# Codes that are words or names, too: they count where they are declared, never by their place.
_NAMES: Final = "ALL AMD BAM BOB COP CUP GEL GIP LAK MAD MOP MUR NIO PEN SOS STN TOP TRY VES WST"
_WORDLIKE: Final = frozenset(_NAMES.split())
_STATED: Final = re.compile(
    rf"(?i:\b(?:{words('currency')})\b(?: code)?\W{{0,5}}|\b(?:{words('sums')})\b"
    r"(?P<loose>[^.:;\n]{0,40}?(?: (?:in|en|i|w|v|em|im) |: ?|\()))"
    rf"(?:\(?(?P<code>{_CODES})(?![A-Za-z])"
    r"|(?P<name>€|£|(?i:euros?|us dollars?|pounds? sterling|swiss francs?"
    r"|schweizer franken))(?![a-z]))"
)
_WORDS: Final = {
    **dict.fromkeys(("€", "euro"), "EUR"),
    **dict.fromkeys(("£", "pound sterling", "pounds sterling"), "GBP"),
    **dict.fromkeys(("swiss franc", "schweizer franken"), "CHF"),
    "us dollar": "USD",
}
_IN_LABEL: Final = re.compile(rf"\(\W*({_CODES})\W*\)|(?<![A-Za-z])({_CODES})\W*$")
_OTHER_DOLLARS: Final = re.compile(
    r"\b(?:canad|austral|new zealand|singapore|hong kong|taiwan|mexic|brasil|brazil|jamaica"
    r"|chile|colombia|argentin|barbados|bahamas|trinidad|fiji|namibia|liberia|uruguay)"
    r"|\b(?:cad|aud|nzd|sgd|hkd|mxn|twd|brl|ars|clp|cop)\b|\babn\b|\bacn\b|\bhst\b|\bqst\b|\bpst\b|\brfc\b|\bpesos?\b"
)
# What an uncertain mark can be.
_FITS: Final[dict[str, str]] = {
    "$": "AUD BRL CAD HKD MXN NZD SGD TWD USD",
    "c$": "CAD",
    "¥": "CNY JPY",
    "kr": "DKK ISK NOK SEK",
    "lei": "MDL RON",
    "fr": "CHF",
    "ft": "HUF",
}


def currency_of(mark: str | None, row: Row, rows: Iterable[Row]) -> str | None:
    """The ISO code for an amount with this mark in this row of this document.

    The amount's own mark decides, then its label, then what the document declares. A code
    elsewhere is a word. ``$`` alone is USD only where nothing speaks for another dollar.
    """
    rows = list(rows)
    stated = _stated(rows)
    if mark is None:
        labels = {code for cell in row.cells for code in _in_label(cell.text)}
        if len(labels) == 1:
            return labels.pop()
        return stated.pop() if len(stated) == 1 else None
    code = mark.upper()
    if code in DECIMALS:
        return code if code not in _WORDLIKE or code in stated else None
    return SYMBOLS.get(mark) or _of_uncertain(mark, stated, rows)


def codes_of(mark: str) -> list[str]:
    """Every currency that a mark beside an amount can stand for."""
    kind = "fr" if mark == "sfr." else mark.rstrip(".")
    return _FITS.get(kind, "").split() or [SYMBOLS.get(mark, mark.upper())]


def disputed(
    code: str,
    value: Decimal,
    sums: Iterable[tuple[Decimal | None, str | None]],
    rows: Iterable[Row],
) -> bool:
    """Whether the document speaks of another currency for this sum.

    ``sums`` are the values and marks of its labelled amounts. The same sum in another currency
    is a contradiction, and so is a currency that no other sum has, nor what is declared.
    """
    known = [
        (each, mark.upper() if mark.upper() in DECIMALS else SYMBOLS[mark])
        for each, mark in sums
        if mark and (mark.upper() in DECIMALS or mark in SYMBOLS)
    ]
    if any(abs(each or 0) == abs(value) and other != code for each, other in known):
        return True
    others = [other for each, other in known if each != value]
    stated = _stated(list(rows))
    return bool(others and code not in others) or bool(stated and code not in stated)


def _in_label(text: str) -> list[str]:
    """The codes of a label such as ``Total (EUR)`` or ``Total CHF``, words aside."""
    found = [match[1] or match[2] for match in _IN_LABEL.finditer(text)]
    return [code for code in found if code not in _WORDLIKE or f"({code})" in text]


def _stated(rows: list[Row]) -> set[str]:
    """The currencies that the document declares for its amounts."""
    found: set[str] = set()
    for place, row in enumerate(rows):
        apart = unicodedata.normalize("NFKD", row.text)
        for match in _STATED.finditer("".join(c for c in apart if not unicodedata.combining(c))):
            word = (match["name"] or "").casefold()
            code = match["code"] or _WORDS.get(word) or _WORDS.get(word.rstrip("s"))
            doubtful = match["loose"] and code in _WORDLIKE
            found |= {code} if code and not doubtful else set()
        if len(row.cells) > 1 and not amounts_in(row.text):
            under = rows[place + 1].cells if place + 1 < len(rows) else ()
            heads = (cell for cell in row.cells if len(row.cells) > 2 or _is_above(cell, under))
            found |= {code for cell in heads for code in _in_label(cell.text)}
    return found - {code for code in _WORDLIKE if len(found) > 1}


def _is_above(head: Cell, cells: Iterable[Cell]) -> bool:
    return any(each.overlaps(head) and amounts_in(each.text) for each in cells)


def _of_uncertain(mark: str, stated: set[str], rows: list[Row]) -> str | None:
    if mark not in UNCERTAIN:
        return None
    fitting = codes_of(mark)
    declared = stated & set(fitting)
    if declared or len(fitting) == 1:
        return declared.pop() if len(declared) == 1 else fitting[0] if not declared else None
    others = (_OTHER_DOLLARS.search(fold(row.text)) for row in rows)
    return "USD" if mark == "$" and not any(others) else None
