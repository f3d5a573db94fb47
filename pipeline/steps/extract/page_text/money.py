"""Which currency a printed amount is in, or None where the page leaves a choice."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.steps.currencies import DECIMALS
from pipeline.steps.extract.page_text.amounts import SYMBOLS, UNCERTAIN, amounts_in
from pipeline.steps.extract.page_text.dates import fold
from pipeline.steps.extract.page_text.rows import Row

_CODE: Final = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(DECIMALS))})(?![A-Za-z])")
_STATED: Final = re.compile(
    r"(?:currency|wahrung|devise|valuta|mena|moneda|munt|betrage in|amounts? (?:are )?in"
    r"|prices? (?:are )?in|montants? en|importi in|importes en|bedragen in)\W{0,5}"
    r"([a-z]{3}|euros?|us dollars?|pounds? sterling|swiss francs?)(?![a-z])"
)
_WORDS: Final = {
    "euro": "EUR",
    "euros": "EUR",
    "us dollar": "USD",
    "us dollars": "USD",
    "pound sterling": "GBP",
    "pounds sterling": "GBP",
    "swiss franc": "CHF",
    "swiss francs": "CHF",
}
_US_DOLLARS: Final = re.compile(r"\b(?:us|u\.s\.) dollars?\b|\bus\$|\busd\b")
_OTHER_DOLLARS: Final = re.compile(
    r"\b(?:canad|austral|new zealand|singapore|hong kong|taiwan|mexic|brasil|brazil|jamaica"
    r"|chile|colombia|argentin|barbados|bahamas|trinidad|fiji|namibia|liberia|uruguay)"
    r"|\babn\b|\bacn\b|\bhst\b|\bqst\b|\bpst\b|\brfc\b|\bpesos?\b"
)
_HINTS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "¥": ((r"\bjpy\b|\byen\b|円|japan|税込|消費税", "JPY"), (r"\bcny\b|\brmb\b|元|china", "CNY")),
    "kr": ((r"sverige|sweden|moms.*org", "SEK"), (r"norge|norway", "NOK"), (r"danmark|cvr", "DKK")),
    "ft": ((r"magyar|hungar|\bafa\b|szamla", "HUF"),),
    "lei": ((r"roman|\bron\b", "RON"),),
    "fr": ((r"schweiz|suisse|svizzera|switzerland|\bchf\b", "CHF"),),
    "c$": ((r"canad", "CAD"),),
}


def currency_of(mark: str | None, row: Row, rows: Iterable[Row]) -> str | None:
    """The ISO code for an amount with this mark in this row of this document.

    The amount's own mark decides, then its row, then what the document states,
    then the only currency that it uses. ``$`` alone is USD only where nothing
    speaks for another dollar.
    """
    if mark is None:
        codes = {match[0] for match in _CODE.finditer(row.text)}
        if len(codes) == 1:
            return codes.pop()
        return _of_document(list(rows))
    if mark.upper() in DECIMALS:
        return mark.upper()
    return SYMBOLS.get(mark) or _of_uncertain(mark, fold(" ".join(row.text for row in rows)))


def _of_document(rows: list[Row]) -> str | None:
    text = fold(" \n ".join(row.text for row in rows))
    stated = {
        code
        for word in _STATED.findall(text)
        if (code := _WORDS.get(word, word.upper())) in DECIMALS
    }
    if stated:
        return stated.pop() if len(stated) == 1 else None
    marks = {amount.mark for row in rows for amount in amounts_in(row.text) if amount.mark}
    marks |= {code.casefold() for row in rows for code in _CODE.findall(row.text)}
    found = {
        mark.upper() if mark.upper() in DECIMALS else SYMBOLS.get(mark) or _of_uncertain(mark, text)
        for mark in marks
    }
    return found.pop() if len(found) == 1 else None


def _of_uncertain(mark: str, text: str) -> str | None:
    if mark not in UNCERTAIN:
        return None
    if mark == "$":
        return _of_dollar(text)
    kind = mark.rstrip(".").removeprefix("s") if mark != "c$" else mark
    found = {code for pattern, code in _HINTS.get(kind, ()) if re.search(pattern, text)}
    return found.pop() if len(found) == 1 else None


def _of_dollar(text: str) -> str | None:
    codes = set(re.findall(r"\b(?:cad|aud|nzd|sgd|hkd|mxn|twd|brl|ars|clp|cop)\b", text))
    if codes:
        return None
    if _US_DOLLARS.search(text):
        return "USD"
    return None if _OTHER_DOLLARS.search(text) else "USD"
