"""Whether the pages of a hybrid invoice contradict the XML inside it."""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from reader.embedded_xml.structured import Coded
from reader.page_text.amounts import amounts_in
from reader.page_text.labelled import iban_is_valid, ibans, invoice_number
from reader.page_text.money import currency_of
from reader.page_text.parties import parties
from reader.page_text.text import Printed, has_text, printed
from reader.page_view.page import Page

CENT: Final = Decimal("0.01")


def contradicts(coded: Coded, due: Decimal, currency: str, pages: Sequence[Page]) -> bool:
    """Whether a person who reads the pages would pay something else than the XML says.

    An image without text contradicts nothing. The pages may say less than the
    XML, in any layout; they may not name another amount, number, account or seller, and they
    have to name a payee who is not the seller, and each sum that is taken off or rounds.
    """
    if not has_text(pages):
        return False
    document = printed(pages)
    return (
        _unshown(coded, document)
        or _other_amount(due, coded.prepaid or Decimal(0), currency, document)
        or _other_number(coded.numbers[0] if coded.numbers else None, document)
        or _other_account(coded, document)
        or _other_party(coded, document)
    )


def _unshown(coded: Coded, document: Printed) -> bool:
    """The XML takes off a prepaid sum, or rounds by more than a cent, and no page shows it."""
    prepaid, rounding = coded.prepaid or Decimal(0), abs(coded.rounding or Decimal(0))
    unshown = {prepaid, rounding} - _amounts(document)
    return (prepaid > 0 and prepaid in unshown) or (rounding > CENT and rounding in unshown)


def _other_amount(due: Decimal, prepaid: Decimal, currency: str, document: Printed) -> bool:
    """No amount of the pages is the one due, or their labels agree on another one."""
    labelled = {item.value for item in document.sums.candidates if item.value}
    allowed = {due, due + prepaid}  # the page may show the sum before what was paid in advance
    if abs(due) not in _amounts(document):
        return bool(labelled) and not labelled & (allowed - {due})
    if labelled and not labelled & allowed:
        return True  # it is on the page, but as no sum of it
    dues = document.sums.values("due") - {None}
    if not dues <= allowed or not _currencies(document) <= {currency}:
        return True
    verdict = document.verdict
    if verdict.candidate is None or not verdict.certain:
        return False
    if document.currency not in (None, currency) and verdict.candidate.amount.mark:
        return True
    return verdict.candidate.value not in allowed


def _currencies(document: Printed) -> set[str]:
    """The currencies that mark the amounts due."""
    dues = document.sums.of("due")
    marked = (currency_of(e.amount.mark, e.row, document.rows) for e in dues if e.amount.mark)
    return {currency for currency in marked if currency}


def _amounts(document: Printed) -> set[Decimal]:
    """Every amount that the pages show, without its sign."""
    plain = {abs(reading) for a in amounts_in(document.plain) for reading in a.readings}
    return document.sums.every | plain


def _other_number(number: str | None, document: Printed) -> bool:
    shown = invoice_number(document.rows)
    if number is None or shown is None:
        return False
    return _squeezed(number) not in _squeezed(document.plain)


def _squeezed(text: str) -> str:
    return re.sub(r"[\s\W_]", "", unicodedata.normalize("NFKC", text).casefold())


def _other_party(coded: Coded, document: Printed) -> bool:
    """The pages do not show the XML's payee, or show another seller than the XML's.

    A first line that is no company's name is no such seller.
    """
    shown, seller = _squeezed(document.plain), _squeezed(coded.seller.name or "")
    if _squeezed(coded.payee or "") not in shown:
        return True
    other = parties(document.rows).get("seller")
    return seller not in shown and other is not None and other.label != "letterhead"


def _other_account(coded: Coded, document: Printed) -> bool:
    """The XML names a valid account, and the pages only other valid ones."""
    inside = {"".join(value.split()).upper() for value in (*coded.ibans, *coded.payer_ibans)}
    valid = {value for value in inside if iban_is_valid(value)}
    shown = {item.value for item in ibans(document.rows)}
    return bool(valid and shown) and not valid & shown
