"""What the numbers of a unit are in its document: the part that may differ from invoice to invoice.

A number is replaced by its role, such as the sum due, a date or the invoice's own number. What
has no role stays as it is printed, so that a unit with another number is another unit.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Final

from reader.page_text.amounts import Amount, amounts_in
from reader.page_text.dates import date_spans, fold
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
# What calls the number behind it a reference: such a word, and after it none but "number".
_REFERENCE: Final = re.compile(
    rf"(?:{words('reference')})[^\W\d]*\W*(?:(?:{words('number_word')})\W*)?(?:\||$)"
)
# Codes at these words are the register's, or stay as they are: an account is never any account.
_ACCOUNT: Final = re.compile(
    r"iban|bic\b|swift|acc(?:oun)?t\b|a/c|\bkont|\bkto\b|\bblz\b|bank|sort|routing|\baba\b|clabe"
    r"|\bgiro|rekening|compte|cuenta|\bconto\b|\bconta\b|\bucet|\bucu|rachun|szamla|tili|banque"
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


def masked(text: str, roles: Roles, *, sentence: bool, within: str = "") -> str:
    """The text with each number replaced by its role.

    In a sentence a sum is the first of its roles, and other amounts stay as they are; elsewhere
    an amount of money without a role is one of the column of amounts. ``within`` is what is
    printed beside and above it.
    """
    text = " ".join(unicodedata.normalize("NFC", text).translate(_NO_ROLES).split())
    text = _own_number(text, roles.number)
    if not names_account(text):
        text = _replaced(text, [(*span, "reference") for span in reference_spans(text)])
    text = _replaced(
        text, ((*span, "".join(text[slice(*span)].split())) for span in account_spans(text))
    )
    text = _replaced(text, ((*span, "date") for span in date_spans(text)))
    text = _TIME.sub("", text)
    text = _replaced(text, _rates_and_sums(text, roles, sentence=sentence))
    if names_account(text):
        return text
    return _CODE.sub(partial(_code, within=fold(within)), text)


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


def _own_number(text: str, number: str | None) -> str:
    if not number:
        return text
    return re.sub(rf"(?<![\w]){re.escape(number)}(?![\w])", "⟨number⟩", text)


def _rates_and_sums(text: str, roles: Roles, *, sentence: bool) -> Iterator[_Span]:
    replaced = [match.span() for match in _ROLE.finditer(text)]
    amounts = [
        each
        for each in amounts_in(text)
        if not any(start < each.end and each.start < end for start, end in replaced)
    ]
    rates = [(match, Decimal(match[1].replace(",", "."))) for match in _RATE.finditer(text)]
    values = {abs(each.readings[0]) for each in amounts}
    taxed = [
        (match, rate)
        for match, rate in rates
        if any(_is_part(value, rate, base, roles) for value in values for base in roles.every)
    ]
    if not sentence:
        yield from ((match.start(), match.end(), "rate") for match, _ in taxed)
    for each in amounts:
        if role := _role(each, roles, [rate for _, rate in rates], sentence=sentence):
            yield each.start, each.end, role


def _is_part(value: Decimal, rate: Decimal, base: Decimal, roles: Roles) -> bool:
    """Whether a value is this share of another, rounded as sums are."""
    return bool(value) and abs(value - rate * base / 100) <= (_UNIT if roles.whole else _CENT) / 2


def _role(amount: Amount, roles: Roles, rates: Sequence[Decimal], *, sentence: bool) -> str | None:
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
    return None if sentence or not amount.firm else f"{sign}amount"


def _code(match: re.Match[str], *, within: str) -> str:
    """A code by its class where it is called a reference; else its letters are compared too.

    A long number that nothing calls so may be an account, and stays as it is.
    """
    code = match[0]
    said = fold(match.string[: match.start()]).rstrip(" :#|").rpartition(":")[2] or within
    is_number = not any(map(str.isalpha, code))
    digits = sum(map(str.isdigit, code))
    if is_number and (digits < _DIGITS_MIN or _SUM.search(code)):
        return code
    if _REFERENCE.search(said):
        return f"⟨code{words_in(code)}⟩"
    return code if is_number or digits > _DIGITS_MAX else f"⟨code:{_DIGITS.sub('#', code)}⟩"


def words_in(code: str) -> str:
    """What of a code may be a word, and is compared as it is."""
    return "".join(f":{run}" for run in _LETTERS.findall(code))
