"""What a field may be that was not found, or is in doubt: the readings a person can point at."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Final

from reader.currencies import DECIMALS
from reader.invoice import Invoice, Pointable, Reading
from reader.known_text.mask import Roles, masked
from reader.known_text.unit import unit
from reader.page_text.amounts import amounts_in
from reader.page_text.dates import date_spans, day_month_order, first_date
from reader.page_text.labelled import account_spans
from reader.page_text.money import codes_of
from reader.page_text.rows import Cell, Row
from reader.page_text.sender import NAME_CHARS_MAX, names_company
from reader.page_text.text import Printed

READINGS_MAX: Final = 24  # of one field
_NUMBER: Final = re.compile(r"(?<!\w)(?=[\w./-]*\d)\w(?:[\w./-]*\w)?(?: ?/ ?\w+)*(?!\w)")
_CODE: Final = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(DECIMALS))})(?![A-Za-z])")
_NO_ROLES: Final = Roles(sums=(), number=None, every=frozenset())
_HERE: Final = "\ue000"  # where the value is


def readings_of(document: Printed, invoice: Invoice) -> tuple[Reading, ...]:
    """The readings of each field, the likelier ones first; of a complete invoice, of its number."""
    found: list[Iterator[Reading]] = [_numbers(document)]
    if invoice.pay_status != "open":
        found += [_amounts(document), _currencies(document), _sellers(document)]
        found.append(_dates(document, invoice))
    different = ({(each.value, each.mark): each for each in readings} for readings in found)
    return tuple(each for field in different for each in islice(field.values(), READINGS_MAX))


def _amounts(document: Printed) -> Iterator[Reading]:
    """The labelled sums, and then every other amount from the end on."""
    kinds = {"due": 0, "total": 1}
    labelled = sorted(document.sums.candidates, key=lambda each: kinds.get(each.kind, 2))
    for each in labelled:
        for value in each.amount.readings:
            yield from _here(document.rows, each.place, each.cell, str(value), "total_due", value)
    for place, row in reversed([*enumerate(document.rows)]):
        for cell in row.cells if not any(account_spans(row.text)) else ():
            bare = not any(map(str.isalpha, cell.text)) and document.sums.whole
            for amount in amounts_in(cell.text) if not date_spans(cell.text) else ():
                for value in amount.readings if amount.firm or bare else ():
                    yield from _here(document.rows, place, cell, str(value), "total_due", value)


def _currencies(document: Printed) -> Iterator[Reading]:
    """The currencies that marks and codes on the page can be, each at its sum."""
    best = document.verdict.candidate
    for place, row in enumerate(document.rows):
        for cell in row.cells:
            marks = [each.mark for each in amounts_in(cell.text) if each.mark]
            codes = [*_CODE.findall(cell.text), *(c for mark in marks for c in codes_of(mark))]
            for code in codes:
                at = (best.place, best.cell) if best else (place, cell)
                yield from _here(document.rows, *at, code, "currency", best.value if best else None)


def _numbers(document: Printed) -> Iterator[Reading]:
    found = []
    for place, row in enumerate(document.rows):
        for cell in row.cells if not any(account_spans(row.text)) else ():
            taken = [*date_spans(cell.text)]
            taken += [(each.start, each.end) for each in amounts_in(cell.text) if each.cents]
            found += [
                (place, cell, match[0])
                for match in _NUMBER.finditer(cell.text)
                if not any(start < match.end() and match.start() < end for start, end in taken)
            ]
    for place, cell, number in sorted(found, key=lambda each: -min(6, len(each[2]))):
        yield from _here(document.rows, place, cell, number, "invoice_number")


def _sellers(document: Printed) -> Iterator[Reading]:
    cells = [(place, cell) for place, row in enumerate(document.rows) for cell in row.cells]
    names = [
        (place, cell)
        for place, cell in cells
        if len(cell.text) <= NAME_CHARS_MAX
        and any(map(str.isalpha, cell.text))
        and not any(map(str.isdigit, cell.text))
        and ":" not in cell.text
    ]
    for place, cell in sorted(names, key=lambda each: not names_company(each[1].text)):
        yield from _here(document.rows, place, cell, cell.text, "seller")


def _dates(document: Printed, invoice: Invoice) -> Iterator[Reading]:
    order = day_month_order(document.plain) or ("dmy" if invoice.iban else "")
    for place, row in enumerate(document.rows):
        for cell in row.cells:
            for span in date_spans(cell.text):
                if day := first_date(cell.text[slice(*span)], order):
                    yield from _here(document.rows, place, cell, day, "due_date")


def _here(
    rows: Sequence[Row],
    place: int,
    cell: Cell,
    value: str,
    field: Pointable,
    amount: Decimal | None = None,
) -> Iterator[Reading]:
    """The reading, where its cell has a place on a page."""
    if cell.box is not None:
        seller = field == "seller"
        mark = f"⟨seller⟩{value}" if seller else _around(rows, place, cell, value, amount)
        yield Reading(
            field=field,
            value=value,
            text=cell.text,
            mark=unit("text", mark, "").mark,
            page=rows[place].page,
            box=cell.box.edges,
        )


def _around(rows: Sequence[Row], place: int, cell: Cell, value: str, amount: Decimal | None) -> str:
    """What is printed at the left of a value and around it, masked; else what is above it."""
    text = cell.text.replace(_HERE, " ")
    spans = [(a.start, a.end) for a in amounts_in(text) if amount in a.readings]
    start, end = spans[-1] if spans else (text.find(value), text.find(value) + len(value))
    if start >= 0:
        text = f"{text[:start]} {_HERE} {text[end:]}"
    left = [each.text for each in rows[place].cells if each.end <= cell.start]
    said = _label(" ".join([*left, text]))
    above = (
        each.text
        for row in reversed(rows[max(0, place - 3) : place])
        for each in row.cells
        if each.overlaps(cell) and any(map(str.isalpha, each.text))
    )
    wordless = not any(map(str.isalpha, re.sub("⟨[^⟩]*⟩", "", said)))
    return f"{_label(next(above, ''))}\n{said}" if wordless else said


def _label(text: str) -> str:
    return masked(text, _NO_ROLES, sentence=False)
