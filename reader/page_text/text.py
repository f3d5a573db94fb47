"""An invoice read from the text of its pages alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from functools import lru_cache
from typing import Final

from reader.currencies import DECIMALS, decimal_text, minor_units
from reader.holds import status_of
from reader.invoice import Evidence, Given, Invoice
from reader.page_text import labelled
from reader.page_text.amounts import decimal_separator
from reader.page_text.dates import bare, day_month_order
from reader.page_text.labelled import Found
from reader.page_text.money import currency_of, disputed
from reader.page_text.parties import parties
from reader.page_text.rows import Row, noted_rows, rows_of
from reader.page_text.totals import Candidate, Sums, printed_as, sums_of
from reader.page_text.verdict import Verdict, judge
from reader.page_view.page import Page

_LETTERS_MIN: Final = 20  # fewer on the whole document is a scan with a stamp on it
_VALUE_CHARS_MAX: Final = 300
_NOTHING: Final[Given] = {}
_SAID: Final = ("invoice_number", "seller", "due_date")  # of what a person can give
_UNCOINED: Final = ("HUF", "IDR", "COP")  # have hundredths by ISO 4217, and print none


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A document's pages as rows, and what its labels say about its amounts."""

    rows: Sequence[Row]
    plain: str
    noted: Sequence[Row]
    sums: Sums
    verdict: Verdict
    currency: str | None


def printed(pages: Sequence[Page], given: Given = _NOTHING) -> Printed:
    """The pages, with their amounts judged; what a person gives decides."""
    return _printed(tuple(pages), tuple(sorted(given.items())))


@lru_cache(maxsize=4)  # each of several questions about one document begins with this
def _printed(pages: tuple[Page, ...], said: tuple[tuple[str, str], ...]) -> Printed:
    given = dict(said)
    rows, plain = rows_of(pages), "\n".join(page.plain for page in pages)
    separator = decimal_separator(plain)
    sums = sums_of(rows, separator, 2)
    verdict = _judged(sums, rows, given)
    best = verdict.candidate
    currency = given.get("currency") or (
        currency_of(best.amount.mark, best.row, rows) if best else None
    )
    decimals = 0 if currency in _UNCOINED and not separator else DECIMALS[currency or "EUR"]
    if decimals != 2:
        sums = sums_of(rows, separator, decimals)
        verdict = _judged(sums, rows, given)
    best = verdict.candidate
    marks = [(item.value, item.amount.mark) for item in sums.candidates if item.kind != "aside"]
    if best and best.value is not None and currency and disputed(currency, best.value, marks, rows):
        verdict = replace(verdict, certain=False)
    return Printed(
        rows=rows,
        plain=plain,
        noted=noted_rows(pages),
        sums=sums,
        verdict=verdict,
        currency=currency,
    )


def _judged(sums: Sums, rows: Sequence[Row], given: Given) -> Verdict:
    """The amount to pay; the one that a person gives is the only one due."""
    verdict = judge(sums)
    if "total_due" not in given:
        return verdict
    due = Decimal(given["total_due"])
    if verdict.candidate is not None and verdict.candidate.value == due:
        return verdict
    there = next(printed_as(rows, due), None)
    others = [replace(e, kind="aside") if e.kind == "due" else e for e in sums.candidates]
    sums.candidates[:] = [*others, *([there] if there else [])]
    return Verdict(candidate=there, certain=False)


def has_text(pages: Sequence[Page]) -> bool:
    """Whether there is enough text to read anything from."""
    return sum(char.isalpha() for page in pages for char in page.plain) >= _LETTERS_MIN


def invoice_from_text(
    pages: Sequence[Page], given: Given = _NOTHING
) -> tuple[Invoice, dict[str, Evidence]]:
    """The fields that the pages show; what a person gives is as it was given.

    Raises:
        ExtractionError: DOC-016, an amount that does not fit its currency.
    """
    document = printed(pages, given)
    candidate, currency = document.verdict.candidate, document.currency
    value = candidate.value if candidate else None
    if "total_due" in given:
        value = Decimal(given["total_due"])
    elif candidate and value is None and candidate.amount.doubt and currency:
        coin = Decimal(1).scaleb(-DECIMALS[currency])  # it can be read in two ways
        value = min(candidate.amount.readings).quantize(coin, ROUND_DOWN)
    found = _fields(document)
    said = [name for name in _SAID if given.get(name)]
    found |= {name: Found(value=given[name], page=0, label="") for name in said}
    hold = _hold(document, value, "seller" in found, given)
    invoice = Invoice(
        **{name: item.value[:_VALUE_CHARS_MAX] for name, item in found.items()},
        iban_valid=labelled.iban_is_valid(found["iban"].value) if "iban" in found else None,
        currency=currency,
        amount_minor=None,
        pay_status=status_of(hold),
        hold=hold,
    )
    if value is not None and currency is not None:
        amount_minor = minor_units(value, currency)
        total_due = decimal_text(amount_minor, currency)
        invoice = replace(invoice, amount_minor=amount_minor, total_due=total_due)
    evidence = _evidence(found, candidate)
    return invoice, evidence | dict.fromkeys(given, Evidence(source="person"))


def _fields(document: Printed) -> dict[str, Found]:
    rows = document.rows
    found = parties(rows)
    accounts = labelled.ibans(rows)
    # An account with an IBAN is European: there the day comes before the month.
    order = day_month_order(document.plain) or ("dmy" if accounts else "")
    for name, item in (
        ("invoice_number", next(iter(labelled.invoice_numbers(rows)), None)),
        ("issue_date", next(iter(labelled.issue_days(rows, order)), None)),
        ("due_date", next(iter(labelled.due_days(rows, order)), None)),
        ("iban", accounts[0] if len(accounts) == 1 else None),
    ):
        if item is not None:
            found[name] = item
    return found


def _hold(document: Printed, value: Decimal | None, has_seller: bool, given: Given) -> str | None:
    """Why it must not be paid, as the code of a hold."""
    candidate, pointed = document.verdict.candidate, "total_due" in given
    if document.currency is None and candidate and (value or candidate.amount.doubt):
        return "no_currency"
    if value is None or document.currency is None:
        return "no_amount"
    if candidate and candidate.value is None and not pointed:
        return "two_readings"
    if value <= 0:
        return "negative_amount" if value else "zero_balance"
    numbers = labelled.invoice_numbers(document.rows)  # by labels or titles, not by prose alone
    if len({bare(each.value) for each in numbers if each.label != "text"}) > 1:
        return "two_invoices"
    unclear = None if pointed else _unclear_amount(document, value)
    if unclear or not has_seller:
        return unclear or "no_seller"
    return "two_accounts" if len(labelled.ibans(document.rows)) > 1 else None


def _unclear_amount(document: Printed, value: Decimal) -> str | None:
    if document.verdict.certain:
        return None
    sums = document.sums
    if len(sums.values("due")) > 1:
        return "two_amounts_due"
    net = any(tax and tax > 0 and value + tax in sums.every for tax in sums.values("tax"))
    return "net_only" if net else "unclear_amount"


def _evidence(found: Mapping[str, Found], candidate: Candidate | None) -> dict[str, Evidence]:
    result = {
        name: Evidence(source="text", page=item.page, label=item.label)
        for name, item in found.items()
    }
    if candidate is None:
        return result
    total = Evidence(source="text", page=candidate.row.page, label=candidate.kind)
    return {**result, "total_due": total, "currency": total}
