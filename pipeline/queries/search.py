"""One search for runs: what a person types, as a condition on the rows that lists have of them.

It compares with hashes, amounts and codes; nothing is opened.
"""

import unicodedata
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from uuid import UUID

from django.db.models import Q

from engine.models import Workspace
from engine.queries.runs import logs_of
from pipeline.models import Found
from pipeline.register import found
from pipeline.register.bills import one_spelling
from pipeline.register.details import folded
from reader.currencies import AMOUNT_MINOR_MAX, DECIMALS
from reader.page_text.amounts import SYMBOLS, amounts_in

CHARS_MAX, PARTS_MAX = 100, 10  # of a search, and the words of one that are compared
CODE_CHARS = range(2, 9)  # of a run code or of a part of one
NOTHING = Q(pk__in=[])
SEARCHED = "run codes, Stripe payments (pi_…), amounts, invoice numbers and suppliers"
HOW = (
    "Suppliers are found by whole words or by their first three letters or more;"
    " payments and invoice numbers by the whole of them."
)


def cleaned(typed: str) -> str:
    """What was typed on one line, without characters that show nothing or turn the text round."""
    shown = (char for char in " ".join(typed.split()) if unicodedata.category(char)[0] != "C")
    return "".join(shown)


def fault(typed: str) -> str:
    """The sentence for a search that is none; empty for one."""
    if len(typed) > CHARS_MAX or len(typed.split()) > PARTS_MAX:
        most = f"{CHARS_MAX} characters and {PARTS_MAX} words"
        return f"The search is too long: it may have {most}. Search for less."
    if typed and not found.words(typed):
        return f"“{typed}” has no letter and no digit to search for. {HOW}"
    return ""


def nothing_found(typed: str) -> str:
    """The sentence for a search that no run matches: what was compared, and what to do."""
    return (
        f"Nothing matches “{typed}”. Searched: {SEARCHED}. {HOW} Erased values are not found."
        " Check the spelling, or search for less."
    )


def condition(workspace: Workspace, typed: str) -> Q:
    """Which rows match: those that the whole of it finds, or each of its words.

    Raises:
        VerificationError: PII-002, where the key of the words is damaged.
    """
    asked = _Asked(workspace)
    parts = [part for part in typed.split() if found.words(part)]
    each = reduce(and_, map(asked.part, parts), Q())
    return asked.whole(typed.strip()) | each if parts else NOTHING


def code_of(typed: str) -> str:
    """The run code that was typed, as codes are written; empty where it can be none."""
    text = folded(typed.strip())
    is_code = text.isascii() and text.replace("-", "").isalnum() and len(text) in CODE_CHARS
    return text if is_code else ""


class _Asked:
    """One workspace's hashes: what they are made with, and where they are looked up."""

    def __init__(self, workspace: Workspace) -> None:
        self.logs: list[UUID | str] = logs_of(workspace.id)
        self.key = found.key_of(workspace)

    def whole(self, text: str) -> Q:
        """A number with blanks in it, an amount with its currency."""
        return self._hashed("number", one_spelling(text)) | _amount(text)

    def part(self, text: str) -> Q:
        """A word, whatever it is."""
        currency = folded(text)
        same = (Q(code__contains=code) if (code := code_of(text)) else NOTHING) | self.whole(text)
        same |= self._hashed("payment", found.plain(text))
        same |= Q(currency=currency) if currency in DECIMALS else NOTHING
        names = (self._hashed("word", each) for each in found.words(text))
        return same | reduce(and_, names)

    def _hashed(self, kind: str, text: str) -> Q:
        if self.key is None or not text:
            return NOTHING
        rows = Found.objects.filter(workspace_id__in=self.logs)
        return Q(run__in=rows.filter(word=found.mark(self.key, kind, text)).values("run"))


def _amount(text: str) -> Q:
    """The rows of an amount as people write it, in each way that it can be read."""
    upper = folded(text)
    read = [e for e in amounts_in.__wrapped__(upper) if (e.start, e.end) == (0, len(upper))]
    currency = (read[0].mark or "").upper() if read else ""
    currency = SYMBOLS.get(currency.lower(), currency)
    rows = [_of(reading, currency) for each in read for reading in each.readings]
    return reduce(or_, rows, NOTHING)


def _of(reading: Decimal, currency: str) -> Q:
    by_decimals = {count: [c for c in DECIMALS if DECIMALS[c] == count] for count in (0, 2, 3)}
    same = NOTHING
    for count, currencies in by_decimals.items():
        minor = abs(reading).scaleb(count)
        if minor == minor.to_integral_value() and minor <= AMOUNT_MINOR_MAX:
            names = [currency] if currency in currencies else currencies
            is_asked = currency in currencies or currency not in DECIMALS
            same |= Q(amount_minor=int(minor), currency__in=names) if is_asked else NOTHING
    return same
