"""Whether the pages of a hybrid invoice contradict the XML inside it."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from reader.embedded_xml.arithmetic import CENT
from reader.embedded_xml.structured import Coded
from reader.known_text.items import items_of
from reader.page_text.amounts import UNCERTAIN, amounts_in
from reader.page_text.dates import Order, bare
from reader.page_text.labelled import Found, due_days, ibans, invoice_numbers, issue_days
from reader.page_text.money import codes_of, currency_of
from reader.page_text.parties import buyers, parties
from reader.page_text.rows import Row
from reader.page_text.sender import prints_own
from reader.page_text.text import Printed, has_text, printed
from reader.page_view.page import Page

_ORDERS: Final[tuple[Order, ...]] = ("dmy", "mdy")  # a day may be read in either
_BEGUN_MIN: Final = 8  # signs of a number that the page shows without what the data adds to it


def contradicts(coded: Coded, due: Decimal, currency: str, pages: Sequence[Page]) -> bool:
    """Whether a person who reads the pages would pay something else than the XML says.

    An image without text contradicts nothing. The pages have to show the amount due, the number,
    each sum that is taken off or rounds, and a payee who is not the seller. What their labels
    give as number, parties, days, account, currency and amount due is what the XML says.
    """
    if not has_text(pages):
        return False
    document = printed(pages)
    return (
        _unshown(coded, document)
        or _other_amount(due, coded, currency, document)
        or _other_number(coded.numbers[0] if coded.numbers else None, document)
        or _other_account(coded, document)
        or _other_seller(coded, document)
        or _other_buyer(coded.buyer.name, document)
        or _other_day(coded.issue_date, issue_days, document)
        or _other_day(coded.due_date, due_days, document)
        or not _has_words(document.plain, coded.payee or "")
    )


def _unshown(coded: Coded, document: Printed) -> bool:
    """The XML takes off a prepaid sum, or rounds by more than a cent, and no page shows it."""
    prepaid, rounding = coded.sum_of("BT-113"), abs(coded.sum_of("BT-114"))
    items = items_of(document).rows
    others = (row for place, row in enumerate(document.rows) if place not in items)
    amounts = (amount for row in others for amount in amounts_in(row.text))
    unshown = {prepaid, rounding} - {abs(each) for a in amounts for each in a.readings}
    return (prepaid > 0 and prepaid in unshown) or (rounding > CENT and rounding in unshown)


def _other_amount(due: Decimal, coded: Coded, currency: str, document: Printed) -> bool:
    """No amount of the pages is the one due, or what they label as due or total is another."""
    if abs(due) not in document.sums.every:
        return True
    dues = document.sums.of("due")
    marked = (currency_of(e.amount.mark, e.row, document.rows) for e in dues if e.amount.mark)
    if {*marked} - {currency, None} or any(due not in each.amount.readings for each in dues):
        return True
    signs = {e.amount.mark for e in document.sums.candidates if due in e.amount.readings}
    if any(mark in UNCERTAIN and currency not in codes_of(mark) for mark in signs if mark):
        return True
    allowed = {due, due + coded.sum_of("BT-113"), coded.sum_of("BT-112")}
    labelled = {item.value for item in document.sums.candidates if item.value}
    best = document.verdict.candidate
    if labelled and not labelled & allowed:
        return True  # it is on the page, but as no sum of it
    known = {abs(each) for each in (*allowed, *(v for some in coded.sums.values() for v in some))}
    if {abs(each) for each in document.sums.values("total") if each} - known:
        return True  # a total that the data does not have
    if best is None or dues or not document.verdict.certain:
        return False
    other = document.currency not in (None, currency) and best.amount.mark
    return bool(other) or best.value not in allowed


def _other_number(number: str | None, document: Printed) -> bool:
    """The pages label other numbers; or they label none, and do not show this one as a word."""
    if number is None:
        return False
    if shown := {bare(each.value) for each in invoice_numbers(document.rows)}:
        return shown != {bare(number)}
    if _has_words(document.plain, number):
        return not any(map(str.isdigit, number))
    words = (word for word in document.plain.split() if len(word) >= _BEGUN_MIN)
    return not any(number.startswith((f"{word}-", f"{word}/")) for word in words)


def _other_account(coded: Coded, document: Printed) -> bool:
    """The XML names an account, and the pages only others."""
    inside = {"".join(value.split()).upper() for value in (*coded.ibans, *coded.payer_ibans)}
    shown = {item.value for item in ibans(document.rows)}
    return bool(inside and shown) and not inside & shown


def _other_day(
    day: str | None, labelled: Callable[[Sequence[Row], Order], list[Found]], document: Printed
) -> bool:
    shown = {each.value for order in _ORDERS for each in labelled(document.rows, order)}
    return day is not None and bool(shown) and day not in shown


def _other_buyer(name: str | None, document: Printed) -> bool:
    """The pages are addressed to others alone."""
    shown = [line for _, lines in buyers(document.rows) for line in _joined(lines)]
    return bool(name and shown) and not _names(name or "") & {*shown}


def _other_seller(coded: Coded, document: Printed) -> bool:
    """The pages label another seller than the XML's, who prints nothing of its own on them."""
    said, names = parties(document.rows).get("seller"), _names(coded.seller.name or "")
    if not names or said is None or said.label == "letterhead" or bare(said.value) in names:
        return False
    return not any(
        bare(cell.text) in names and prints_own(document.rows, place, cell)
        for place, row in enumerate(document.rows)
        for cell in row.cells
    )


def _names(name: str) -> set[str]:
    """A name and its lines, as names are compared."""
    return {plain for text in (name, *name.splitlines()) if (plain := bare(text))}


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """Each line as names are compared: whole, up to a comma, and with the line after it."""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        yield from map(bare, (line, line.split(",")[0], f"{line} {after}"))


def _has_words(text: str, wanted: str) -> bool:
    """Whether whole words that follow each other are the text that is wanted."""
    words, sought = [*map(bare, text.split())], bare(wanted)
    for start in range(len(words)):
        joined = ""
        for word in words[start:]:
            joined += word
            if joined == sought:
                return True
            if not sought.startswith(joined):
                break
    return not sought
