"""Who sells and who buys, as a page without coded data shows it."""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Final

from reader.page_text.amounts import has_money
from reader.page_text.dates import fold
from reader.page_text.labelled import Found
from reader.page_text.rows import Cell, Row
from reader.page_text.sender import (
    BUYER,
    COMPANY,
    NAME_CHARS_MAX,
    PARTED,
    PAYEE,
    SELLER,
    is_large,
    labels_of,
    line_below,
    names_company,
    prints_own,
)
from reader.page_text.totals import kind_of
from reader.page_text.vocabulary import INVOICE, INVOICE_NAME

_SOLD_BY: Final = re.compile(r"\b(?:sold|provided|issued|billed) by (.{3,60})$", re.IGNORECASE)
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_NO_NAME: Final = re.compile(
    r"@|www\.|https?:"
    r"|\b(?:tel|fax|phone|page|seite|strana|\w*number|\w*nummer|gln|vom|date|datum|nr|no|iban|bic|vat"
    r"|ust|tax)\b|^\(|:$|^\d"
)
_NO_ADDRESS: Final = re.compile(
    r"\b(?:iban|bic|swift|tel|fax|phone|date|datum|vat|ust|page|seite)\b|@|www\.|https?:"
)
_SENT_TO: Final = re.compile(r"(?:ship|deliver|liefer|aflever)")
_ADDRESS_ROWS: Final = 5
_HEAD_ROWS: Final = 4
_LARGE_ROWS: Final = 8  # in which a name in large type heads a page, beside other columns
_TABLE_CELLS: Final = 4  # a row of so many is the head of a table


def parties(rows: Sequence[Row]) -> dict[str, Found]:
    """Seller, buyer, their addresses and the seller's e-mail, as far as labels show them."""
    found: dict[str, Found] = {}
    for name, blocks in (("seller", [*_blocks(rows, SELLER)]), ("buyer", buyers(rows))):
        for page, lines in blocks[:1]:
            found[name] = Found(value=lines[0], page=page, label=name)
            if lines[1:]:
                text = ", ".join(lines[1:_ADDRESS_ROWS])
                found[f"{name}_address"] = Found(value=text, page=page, label=name)
    if "seller" not in found:
        found.update(_paid_to(rows) or _sold_by(rows) or _heading(rows, found.get("buyer")))
    return found | _email(rows)


def buyers(rows: Sequence[Row]) -> list[tuple[int, list[str]]]:
    """The page and the lines of each address that a label calls the buyer's.

    Where goods are sent says who buys only where nothing else does.
    """
    return [*_blocks(rows, BUYER, never=_SENT_TO)] or [*_blocks(rows, BUYER)]


def _blocks(
    rows: Sequence[Row], label: re.Pattern[str], never: re.Pattern[str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The page and the lines of each address: in a labelled cell's column, or beside the label."""
    for index, row in enumerate(rows):
        for position, cell in enumerate(row.cells):
            match = label.match(cell.folded)
            if not match or len(cell.text) > NAME_CHARS_MAX or (never and never.match(cell.folded)):
                continue
            first = cell.text[match.end() :].strip(" :") if len(cell.folded) > match.end() else ""
            if first and not _is_named(first):
                continue  # "Customer: 2"
            beside = [other.text for other in row.cells[position + 1 : position + 2]]
            below = _column(rows[index + 1 : index + 2 + _ADDRESS_ROWS], cell)
            for lines in ([first, *below] if first else below, beside):
                lines = [line for line in lines if not label.match(line.casefold())]
                lines = [*dropwhile(lambda line: not _is_named(line), lines)]
                if lines:
                    yield row.page, lines
                    break


def _is_named(line: str) -> bool:
    return _may_be_name(line) and kind_of(fold(line)) is None


def _column(rows: Sequence[Row], above: Cell) -> list[str]:
    """The lines below a label, without fields."""
    lines: list[str] = []
    for row in rows:
        place = next((p for p, c in enumerate(row.cells) if abs(c.start - above.start) <= 3), None)
        if place is None or len(row.cells) >= _TABLE_CELLS:
            break
        cell, beside = row.cells[place], row.cells[place + 1 : place + 2]
        if BUYER.match(cell.folded) or SELLER.match(cell.folded):
            break
        if cell.text.endswith(":") or (beside and beside[0].text.startswith(":")):
            if lines:
                break
            continue
        if _NO_ADDRESS.search(cell.folded) or kind_of(cell.folded) or INVOICE.search(cell.folded):
            break
        if not cell.text.startswith("("):
            lines.append(cell.text)
    return lines


def _paid_to(rows: Sequence[Row]) -> dict[str, Found]:
    """The holder of the account, where the same name is printed elsewhere, as in a letterhead."""
    block = next(_blocks(rows, PAYEE), None)
    if block is None or not _may_be_name(block[1][0]):
        return {}
    name = block[1][0]
    for index, row in enumerate(rows):
        for cell in row.cells:
            if cell.text == name and not PAYEE.match(rows[max(0, index - 1)].cells[0].folded):
                below = _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
                return _named(name, below, row.page, "account holder")
    return {}


def _sold_by(rows: Sequence[Row]) -> dict[str, Found]:
    for row in rows:
        for cell in row.cells:
            if match := _SOLD_BY.search(cell.text):
                name = match[1] if COMPANY.search(match[1]) else match[1].rstrip(".")
                return _named(name, (), row.page, "sold by")
    return {}


def _heading(rows: Sequence[Row], buyer: Found | None) -> dict[str, Found]:
    """The first name at the top of the document that is printed as its sender's."""
    for index, row in enumerate(rows[:_LARGE_ROWS]):
        for cell in row.cells:
            large = is_large(rows, index, cell)
            if index >= _HEAD_ROWS and not large:
                continue
            name, *rest = (part.strip() for part in PARTED.split(cell.text))
            below = rest or _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
            if _is_title(cell) or not _is_named(name) or COMPANY.match(name):
                continue
            company, others = names_company(name), buyer is not None and buyer.value == name
            line = line_below(rows, index, cell)
            apart = large or bool(rest) or line is None or _is_title(line)
            sends = company and not others and apart
            sends = sends or ((company or not index) and prints_own(rows, index, cell))
            if sends and not _is_addressed(rows, index, cell):
                return _named(name, below, row.page, "letterhead")
    return {}


def _is_addressed(rows: Sequence[Row], index: int, cell: Cell) -> bool:
    """Whether a name may be the customer's, or a part of a name.

    It is where a label gives it to somebody else, where another name is above or beside it, or
    below the title of a document that says nowhere who buys.
    """
    below = rows[index + 1].cells if index + 1 < len(rows) else ()
    others = [each for each in rows[index].cells if each is not cell]
    rivals = [each for each in others if any(line.overlaps(each) for line in below)]
    labels = [*labels_of(rows, index, cell)]
    if any(_is_named(each.text) and not _is_title(each) for each in (*labels, *rivals)):
        return True
    if any(BUYER.match(label.folded) or label.text.endswith(":") for label in labels):
        return True
    if any(BUYER.match(each.folded) for row in rows for each in row.cells):
        return False
    return any(INVOICE.search(each.folded) for row in rows[:index] for each in row.cells)


def _is_title(cell: Cell) -> bool:
    return bool(INVOICE.search(cell.folded) or INVOICE_NAME.fullmatch(cell.folded))


def _named(name: str, below: Sequence[str], page: int, label: str) -> dict[str, Found]:
    found = {"seller": Found(value=name, page=page, label=label)}
    if below:
        found["seller_address"] = Found(value=", ".join(below), page=page, label=label)
    return found


def _may_be_name(text: str) -> bool:
    """Whether a piece of text can be somebody's name."""
    folded = text.casefold()
    labels = _NO_NAME.search(folded) or BUYER.match(folded)
    return len(text) <= NAME_CHARS_MAX and not labels and not has_money(text)


def _email(rows: Sequence[Row]) -> dict[str, Found]:
    """The only e-mail address of the document."""
    pages = {match[0]: row.page for row in rows for match in _EMAIL.finditer(row.text)}
    found = [Found(value=name, page=page, label="e-mail") for name, page in pages.items()]
    return {"seller_email": found[0]} if len(found) == 1 else {}
