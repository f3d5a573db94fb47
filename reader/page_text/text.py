"""An invoice read from the text of its pages alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from reader.amount import minor_units
from reader.currencies import DECIMALS, decimal_text
from reader.holds import status_of
from reader.invoice import Evidence, Invoice
from reader.page_text import labelled
from reader.page_text.amounts import decimal_separator
from reader.page_text.dates import day_month_order
from reader.page_text.labelled import Found
from reader.page_text.money import currency_of, disputed
from reader.page_text.parties import parties
from reader.page_text.rows import Row, noted_rows, rows_of
from reader.page_text.totals import Candidate, Sums, sums_of
from reader.page_text.verdict import Verdict, judge
from reader.page_view.page import Page
from reader.reasons import ExtractionError

_LETTERS_MIN: Final = 20  # fewer on the whole document is a scan with a stamp on it
_VALUE_CHARS_MAX: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A document's pages as rows, and what its labels say about its amounts."""

    rows: Sequence[Row]
    plain: str
    noted: Sequence[Row]
    sums: Sums
    verdict: Verdict
    currency: str | None


def printed(pages: Sequence[Page]) -> Printed:
    """The pages, with their amounts judged."""
    rows, plain = rows_of(pages), "\n".join(page.plain for page in pages)
    separator = decimal_separator(plain)
    sums = sums_of(rows, separator, 2)
    verdict = judge(sums)
    best = verdict.candidate
    currency = currency_of(best.amount.mark, best.row, rows) if best else None
    if currency is not None and DECIMALS[currency] != 2:
        sums = sums_of(rows, separator, DECIMALS[currency])
        verdict = judge(sums)
    if currency is not None and _disputed(verdict.candidate, currency, sums, rows):
        verdict = replace(verdict, certain=False)
    return Printed(
        rows=rows,
        plain=plain,
        noted=noted_rows(pages),
        sums=sums,
        verdict=verdict,
        currency=currency,
    )


def has_text(pages: Sequence[Page]) -> bool:
    """Whether there is enough text to read anything from."""
    return sum(char.isalpha() for page in pages for char in page.plain) >= _LETTERS_MIN


def invoice_from_text(pages: Sequence[Page]) -> tuple[Invoice, dict[str, Evidence]]:
    """The fields that the pages show.

    Raises:
        ExtractionError: DOC-010 no text, DOC-011 no total, DOC-012 no currency.
    """
    if not has_text(pages):
        raise ExtractionError("DOC-010")
    return invoice_of(printed(pages))


def invoice_of(document: Printed) -> tuple[Invoice, dict[str, Evidence]]:
    """The fields of pages that were judged.

    Raises:
        ExtractionError: DOC-011 no total, DOC-012 no currency.
    """
    candidate = document.verdict.candidate
    if candidate is None or candidate.value is None:
        raise ExtractionError("DOC-011")
    if document.currency is None:
        raise ExtractionError("DOC-012")
    amount_minor = minor_units(candidate.value, document.currency)
    found = _fields(document)
    hold = _hold(document, candidate.value, "seller" in found)
    invoice = Invoice(
        **{name: item.value[:_VALUE_CHARS_MAX] for name, item in found.items()},
        iban_valid=labelled.iban_is_valid(found["iban"].value) if "iban" in found else None,
        currency=document.currency,
        total_due=decimal_text(amount_minor, document.currency),
        amount_minor=amount_minor,
        pay_status=status_of(hold),
        hold=hold,
    )
    return invoice, _evidence(found, candidate)


def _disputed(candidate: Candidate | None, currency: str, sums: Sums, rows: Sequence[Row]) -> bool:
    if candidate is None or candidate.value is None:
        return False
    marks = [(item.value, item.amount.mark) for item in sums.candidates if item.kind != "aside"]
    return disputed(currency, candidate.value, marks, rows)


def _fields(document: Printed) -> dict[str, Found]:
    rows = document.rows
    found = parties(rows)
    accounts = labelled.ibans(rows)
    # An account with an IBAN is European: there the day comes before the month.
    order = day_month_order(document.plain) or ("dmy" if accounts else "")
    for name, item in (
        ("invoice_number", labelled.invoice_number(rows)),
        ("issue_date", labelled.issue_date(rows, order)),
        ("due_date", labelled.due_date(rows, order)),
        ("iban", accounts[0] if len(accounts) == 1 else None),
    ):
        if item is not None:
            found[name] = item
    return found


def _hold(document: Printed, value: Decimal, has_seller: bool) -> str | None:
    """Why it must not be paid, as the code of a hold."""
    if value <= 0:
        return "negative_amount" if value else "zero_balance"
    if not has_seller:
        return "no_seller"
    accounts = labelled.ibans(document.rows)
    return _unclear_amount(document, value) or ("two_accounts" if len(accounts) > 1 else None)


def _unclear_amount(document: Printed, value: Decimal) -> str | None:
    if document.verdict.certain:
        return None
    sums = document.sums
    if len(sums.values("due")) > 1:
        return "two_amounts_due"
    net = any(tax and tax > 0 and value + tax in sums.every for tax in sums.values("tax"))
    return "net_only" if net else "unclear_amount"


def _evidence(found: Mapping[str, Found], candidate: Candidate) -> dict[str, Evidence]:
    total = Evidence(source="text", page=candidate.page, label=candidate.kind)
    result = {
        name: Evidence(source="text", page=item.page, label=item.label)
        for name, item in found.items()
    }
    return {**result, "total_due": total, "currency": total}
