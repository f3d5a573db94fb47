"""What the numbers of a unit are in its document: the part that may differ from invoice to invoice.

A number is replaced by its role, such as the sum due, a date or the invoice's own number. What
has no role stays as it is printed, so that a unit with another number is another unit.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Final

from reader.page_text.amounts import Amount, amounts_in, has_money
from reader.page_text.dates import date_spans, flat, fold
from reader.page_text.labelled import account_spans
from reader.page_text.references import reference_spans
from reader.page_text.vocabulary import words

_CENT: Final = Decimal("0.01")
_UNIT: Final = Decimal(1)
_CODE: Final = re.compile(r"(?<![\w⟨])(?=[^\s⟨⟩]*\d)(?:\w(?:[\w./\-]*\w)?)(?![\w⟩])")
_LETTERS: Final = re.compile(r"[^\W\d_](?:[\W_]*[^\W\d_]){3,}")
_CODED: Final = re.compile(r"⟨code[^⟩]*⟩")
_MIXED: Final = re.compile(r"(?<!\w)(?=\w*\d)(?=\w*[^\W\d_])[\w./\-]+(?!\w)")
_SUM: Final = re.compile(r"[.,]")  # in a number: it is no code
_DIGITS_MIN: Final = 5  # so many make a code of a number that is no amount
_DIGITS_MAX: Final = 7  # of a code that nothing calls a reference; an account may have more
_DIGITS: Final = re.compile(r"\d+")
_RATE: Final = re.compile(r"(?<![\w.,⟨])(\d{1,2}(?:[.,]\d{1,3})?)[ \u00a0]?%")
_ROLE: Final = re.compile(r"⟨[^⟩]*⟩")
_NO_ROLES: Final = str.maketrans("⟨⟩", "‹›")  # no text of a document looks like a role
_TIME: Final = re.compile(r"(?<=⟩),? ?\d{1,2}:\d\d(?::\d\d)?")
_LONG: Final = re.compile(rf"(?<![\w.,])\d{{{_DIGITS_MIN},}}(?![\w.,])")  # a number of something
# A reference is right behind such a word and those for a number, or behind days and codes there;
# in a label, which ends with a colon or a cell, two other words may be between.
_NUMBER_WORD: Final = rf"(?:{words('number_word')})(?!\w)"
_NUMBERED: Final = r"⟨[^⟩]*⟩|(?=[\w./\-]*\d)\w[\w./\-]*(?: [^\W\d]{1,3}(?!\S))?"  # "1 and 2"
_FURTHER: Final = rf"(?>(?:[^\w|]+(?:{_NUMBERED}))*)[^\w|]*$"
_REFERENCE: Final = rf"(?:{words('reference')})[^\W\d]*"
_REFERRED: Final = re.compile(
    rf"{_REFERENCE}(?>(?:[^\w|]+{_NUMBER_WORD})*)(?:[^\w|]*\|)?(?![^\W\d]){_FURTHER}"
)
_LABELLED: Final = re.compile(
    rf"{_REFERENCE}(?:[^\w:|]+(?:{_NUMBERED}|[^\W\d]+)){{0,2}}[^\w:|]*(?:[:|]|{_NUMBER_WORD}){_FURTHER}"
)
_OWN: Final = re.compile(r"(?=.*\d)[\w./ \-]{1,35}")
# What a number is behind, or in, that may as well be an account, or a few days.
_BEHIND: Final = rf"(?:^(?=\w+$)|(?:{words('invoice')})[^\W\d]*(?: vat)?\W*(?:{_NUMBER_WORD}\W*)?)"
_FULL_DAY: Final = re.compile(r"[^\W\d]|\d{4}\D+\d+\D+\d|\d\D+\d+\D+\d{4}")  # no sort code
_LABEL_CHARS_MAX: Final = 100
_ORDERED: Final = re.compile(r"[A-Z]{1,3}[-./]?\d[\d./\-]*")  # LS-2026-00812, J20260017
_ORDERED_DIGITS_MAX: Final = 10
_UUID: Final = re.compile(r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}", re.IGNORECASE)
# Codes at these words are the register's, or stay as they are: an account is never any account.
_ACCOUNT: Final = re.compile(
    r"iban|bic\b|swift|acc(?:oun)?t\b|a/c|\bkont|\bkto\b|\bblz\b|bank|sort|routing|\baba\b|clabe"
    r"|giro|rekening|compte|cuenta|\bconto\b|\bconta\b|\bucet|\bucu|rachun|szamla|tili|banque"
    r"|banc[oa]|\bvat\b|\bust|\bmwst|\btva\b|\biva\b|\bp\.? ?iva|\bnip\b|\bbtw|\bmoms|\bmva\b"
    r"|\bcvr\b|\bico\b|\bdic\b|\btax|steuer|\bhrb|regist|siret|siren|\brcs\b|\bkvk\b|\bgln\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What a document's numbers are: its sums by value, its own number, every amount it prints."""

    sums: Sequence[tuple[str, Decimal]]
    number: str | None
    every: frozenset[Decimal]
    whole: bool = False  # whether its sums are printed without decimals
    marks: frozenset[str] = frozenset()  # what the invoice's currency is printed as

    def first(self, name: str, value: Decimal) -> "Roles":
        """The roles where a label calls this value by its name."""
        return replace(self, sums=[(name, abs(value)), *self.sums])


def masked(
    text: str, roles: Roles, *, sentence: bool, within: str = "", apart: bool = False
) -> str:
    """The text with each number replaced by its role.

    In a sentence and ``apart`` from the items an amount of money without a role stays as it is;
    else it is one of the column of amounts. ``within`` is what is printed beside or above. Where
    a text speaks of an account, only the document's own sums, number and whole dates have a role.
    """
    text = " ".join(unicodedata.normalize("NFC", text).translate(_NO_ROLES).split())
    is_account = names_account(f"{text} {within}")
    text = _own_number(text, roles.number, is_account=is_account)
    if not is_account:
        text = _replaced(text, [(*span, "reference") for span in reference_spans(text)])
    text = _replaced(
        text, ((*span, "".join(text[slice(*span)].split())) for span in account_spans(text))
    )
    days = [d for d in date_spans(text) if not is_account or _FULL_DAY.search(text[slice(*d)])]
    text = _replaced(text, [(*span, "date") for span in days])
    text = _TIME.sub("", text)
    text = _replaced(text, _rates_and_sums(text, roles, apart=sentence or apart or is_account))
    if is_account:
        return text
    called = (_REFERRED,) if sentence else (_REFERRED, _LABELLED)
    return _CODE.sub(partial(_code, within=fold(within), called=called), text)


def names_account(text: str) -> bool:
    """Whether a text speaks of an account or a register, as far as its words are listed."""
    return _ACCOUNT.search(fold(text)) is not None


def may_vary(masked_text: str, text: str) -> bool:
    """Whether a text, here masked, is words and codes alone: no sum, account or day."""
    if names_account(text):
        return False
    rest = _MIXED.sub("", _LONG.sub("", _CODED.sub("", masked_text)))
    return "⟨" not in rest and not any(map(str.isdigit, rest))


_Span = tuple[int, int, str]


def _replaced(text: str, spans: Iterator[_Span] | Sequence[_Span]) -> str:
    for start, end, role in sorted(spans, reverse=True):
        text = f"{text[:start]}⟨{role}⟩{text[end:]}"
    return text


def _own_number(text: str, number: str | None, *, is_account: bool) -> str:
    """With the role of the invoice's number, and what of it may be a word."""
    if number is None or not _OWN.fullmatch(number):
        return text
    is_plain = number.isdecimal() and (is_account or len(number) < _DIGITS_MIN)
    own = rf"{_BEHIND if is_plain else ''}(?<!\w)({re.escape(flat(number))})(?!\w)"
    role = f"number{words_in(number)}"
    return _replaced(text, [(*match.span(1), role) for match in re.finditer(own, flat(text))])


def _rates_and_sums(text: str, roles: Roles, *, apart: bool) -> Iterator[_Span]:
    replaced = [match.span() for match in _ROLE.finditer(text)]
    amounts = [
        each
        for each in amounts_in(text)
        if not any(start < each.end and each.start < end for start, end in replaced)
    ]
    rates = [(match, Decimal(match[1].replace(",", "."))) for match in _RATE.finditer(text)]
    taxes = {abs(value) for name, value in roles.sums if name in ("tax", "adjust")}
    taxes &= {abs(each.readings[0]) for each in amounts}
    for match, rate in rates:
        found = [(b, b + t) for t in taxes for b in roles.every if _is_part(t, rate, b, roles)]
        if found:
            yield match.start(), match.end(), "rate"
        bases = (("amount", value) for values in found for value in values)
        roles = replace(roles, sums=[*roles.sums, *bases])
    for each in amounts:
        if role := _role(each, roles, [rate for _, rate in rates], apart=apart):
            yield each.start, each.end, role


def _is_part(value: Decimal, rate: Decimal, base: Decimal, roles: Roles) -> bool:
    """Whether a value is this share of another, rounded as sums are."""
    return bool(value) and abs(value - rate * base / 100) <= (_UNIT if roles.whole else _CENT) / 2


def _role(amount: Amount, roles: Roles, rates: Sequence[Decimal], *, apart: bool) -> str | None:
    value = amount.readings[0]
    if not (amount.firm or amount.cents or roles.whole):
        return None
    if amount.mark and amount.mark not in roles.marks:
        return None  # a sum in another currency
    sign = "-" if value < 0 else ""
    if not value:
        return "zero" if amount.firm else None
    for name, known in roles.sums:
        if abs(value) == abs(known):
            return f"{sign}{name}"
    for rate in rates:
        for name, known in roles.sums:
            for share, what in ((rate, f"{rate} %"), (100 - rate, f"all but {rate} %")):
                if name in ("due", "net") and _is_part(abs(value), share, known, roles):
                    return f"{sign}{what} of {name}"
    return None if apart or not amount.firm else f"{sign}amount"


def _code(match: re.Match[str], *, within: str, called: Iterable[re.Pattern[str]]) -> str:
    """A code by its class where it is called a reference; else its letters are compared too.

    A long number that nothing calls so may be an account, and stays as it is; so does a sum.
    """
    code = match[0]
    if _UUID.fullmatch(code):
        return "⟨uuid⟩"
    is_number = not any(map(str.isalpha, code))
    digits = sum(map(str.isdigit, code))
    if has_money(code) or (is_number and (digits < _DIGITS_MIN or _SUM.search(code))):
        return code
    before = match.string[max(0, match.start() - _LABEL_CHARS_MAX) : match.start()]
    if any(each.search(f"{within}|{fold(before)}") for each in called):
        return f"⟨code{words_in(code)}⟩"
    most = _ORDERED_DIGITS_MAX if _ORDERED.fullmatch(code) else _DIGITS_MAX
    return code if is_number or digits > most else f"⟨code:{_DIGITS.sub('#', code)}⟩"


def words_in(code: str) -> str:
    """What of a code may be a word, and is compared as it is."""
    caseless = (char for char in code if char.isalpha() and char.lower() == char.upper())
    return "".join(f":{run}" for run in (*_LETTERS.findall(code), *caseless))
