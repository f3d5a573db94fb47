"""From coded fields to an invoice, and to whether it may be paid."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from reader.currencies import DECIMALS, decimal_text, minor_units
from reader.embedded_xml.arithmetic import broken_rule
from reader.embedded_xml.structured import Coded
from reader.holds import status_of
from reader.hybrid import contradicts
from reader.invoice import Evidence, Invoice
from reader.page_text.labelled import iban_is_valid
from reader.page_text.references import only
from reader.page_view.page import Page
from reader.reasons import ExtractionError

# UNTDID 1001, the subset that asks somebody to pay what it says
_ASKS_TO_PAY: Final = (
    *(71, 80, 82, 84, 102, 211, 218, 219, 295, 326, 331, 380, 382, 383, 385, 386, 387, 388, 390),
    *(393, 394, 395, 456, 457, 553, 575, 623, 633, 780, 817, 870, 875, 876, 877, 935),
)
_PAYABLE: Final = frozenset(map(str, _ASKS_TO_PAY))
_CREDIT: Final = frozenset(map(str, (81, 83, 261, 262, 296, 308, 381, 384, 396, 420, 458, 532)))
_SELF_BILLED: Final = frozenset({"389", "500", "501", "502", "503", "527"})
_INFO_ONLY: Final = frozenset({"130", "202", "203", "204", "325", "751"})
# UNTDID 4461
_DIRECT_DEBIT: Final = frozenset({"49", "59"})
_CARD: Final = frozenset({"48", "54", "55"})
_ROUNDING_MAX: Final = Decimal(1)  # what rounding to a coin changes is less


def invoice_from_xml(coded: Coded, pages: Sequence[Page]) -> tuple[Invoice, dict[str, Evidence]]:
    """The invoice that the XML codes; its pages may only confirm it or hold it.

    Raises:
        ExtractionError: DOC-011 no amount due, DOC-012 no known currency, DOC-016.
    """
    due = coded.dues[0] if coded.dues else None
    if due is None:
        raise ExtractionError("DOC-011")
    currency = coded.currencies[0] if coded.currencies else None
    if currency not in DECIMALS:
        raise ExtractionError("DOC-012")
    amount_minor = minor_units(due, currency)
    iban = "".join(coded.ibans[0].split()).upper() if coded.ibans else None
    hold = _hold(coded, due, currency, pages)
    invoice = Invoice(
        invoice_number=coded.numbers[0] if coded.numbers else None,
        seller=coded.seller.name,
        seller_address=coded.seller.address,
        seller_email=coded.seller.email,
        buyer=coded.buyer.name,
        buyer_address=coded.buyer.address,
        payee=coded.payee,
        iban=iban,
        iban_valid=None if iban is None else iban_is_valid(iban),
        currency=currency,
        total_due=decimal_text(amount_minor, currency),
        amount_minor=amount_minor,
        issue_date=coded.issue_date,
        due_date=coded.due_date,
        type_code=coded.type_codes[0] if coded.type_codes else None,
        reference=only([*coded.references]),
        pay_status=status_of(hold),
        hold=hold,
    )
    return invoice, _evidence(coded, invoice)


def _hold(coded: Coded, due: Decimal, currency: str, pages: Sequence[Page]) -> str | None:
    """Why it must not be paid, as the code of a hold: by its codes first, then by its pages."""
    by_codes = _by_type(coded) or _by_amount(due) or _by_means(coded)
    if by_codes is not None:
        return by_codes
    if _unclear(coded, currency):
        return "unclear_data"
    if coded.sum_of("BT-113") < 0:  # with it, any sum would add up to any other
        return "negative_prepaid"
    if rule := broken_rule(coded, due):
        return rule
    if contradicts(coded, due, currency, pages):
        return "page_and_data_differ"
    if not coded.seller.name:
        return "no_seller"
    if len({"".join(iban.split()).upper() for iban in coded.ibans if iban_is_valid(iban)}) > 1:
        return "two_accounts"
    return None


def _by_type(coded: Coded) -> str | None:
    """What the type code says; the profile only says how much is coded."""
    kinds = set(coded.type_codes)
    if coded.credit or kinds & _CREDIT:
        return "credit_note"
    if kinds & _SELF_BILLED:
        return "self_billed"
    if coded.copy:
        return "copy"
    return "information_only" if kinds & _INFO_ONLY else None


def _by_amount(due: Decimal) -> str | None:
    if due < 0:
        return "negative_amount"
    return "zero_balance" if due == 0 else None


def _by_means(coded: Coded) -> str | None:
    means = set(coded.means)
    if means & _DIRECT_DEBIT or (coded.mandate and not coded.ibans):
        return "debited"
    return "settled" if means & _CARD else None


def _unclear(coded: Coded, currency: str) -> bool:
    """Whether the XML says one thing twice, differently, or rounds by more than small change."""
    repeated = (coded.numbers, coded.type_codes, coded.currencies, coded.dues)
    if any(len(set(values)) > 1 for values in repeated) or len(coded.type_codes) == 0:
        return True
    if set(coded.due_currencies) - {currency} or coded.type_codes[0] not in _PAYABLE:
        return True
    return abs(coded.sum_of("BT-114")) >= _ROUNDING_MAX


def _evidence(coded: Coded, invoice: Invoice) -> dict[str, Evidence]:
    return {
        name: where for name, where in coded.evidence.items() if getattr(invoice, name) is not None
    }
