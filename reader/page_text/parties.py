"""Who sells and who buys, as a page without coded data shows it."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from reader.page_text.amounts import has_money
from reader.page_text.dates import fold, has_date
from reader.page_text.labelled import Found
from reader.page_text.rows import Cell, Row
from reader.page_text.sender import (
    BUYER,
    COMPANY,
    NAME_CHARS_MAX,
    PARTED,
    PAYEE,
    SELLER,
    is_in_address,
    is_large,
    rest_of_name,
    senders,
)
from reader.page_text.titles import INVOICE_NAME
from reader.page_text.totals import kind_of
from reader.page_text.vocabulary import INVOICE

_NUMBER_LABEL: Final = re.compile(r"(?<!\w)(?:n|no|nr|num|nro|ref)[.:ºo°]*$")
_CODE: Final = re.compile(r"(?=\D*\d)[\w./-]+")
_WORD: Final = re.compile(r"[^\W\d](?:[^\W\d]|[.&'’-])+,?")
_SOLD_BY: Final = re.compile(r"\b(?:sold|provided|issued|billed) by (.{3,60})$", re.IGNORECASE)
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_NO_NAME: Final = re.compile(
    r"@|www\.|https?:"
    r"|\b(?:tel|fax|phone|page|seite|strana|number|nummer|gln|vom|date|datum|nr|no|iban|bic|vat"
    r"|ust|tax)\b|^\(|:$|^\d"
)
_NO_ADDRESS: Final = re.compile(
    r"\b(?:iban|bic|swift|tel|fax|phone|date|datum|vat|ust|page|seite)\b|@|www\.|https?:"
)
_ATTENTION: Final = re.compile(r"^(?:attn|z\. ?hd\.?|t\.a\.v\.)[:. ]*", re.IGNORECASE)
_ADDRESS_ROWS: Final = 5
_HEAD_ROWS: Final = 4
_LARGE_ROWS: Final = 10  # in which a name in large type heads a page, beside other columns
_TABLE_CELLS: Final = 4  # a row of so many is the head of a table


def parties(rows: Sequence[Row]) -> dict[str, Found]:
    """Seller, buyer, their addresses and the seller's e-mail, as far as labels show them."""
    found: dict[str, Found] = {}
    for name, label in (("seller", SELLER), ("buyer", BUYER)):
        block = _block(rows, label)
        if block:
            page, lines = block
            found[name] = Found(value=lines[0], page=page, label=name)
            if lines[1:]:
                text = ", ".join(lines[1:_ADDRESS_ROWS])
                found[f"{name}_address"] = Found(value=text, page=page, label=name)
    if "seller" not in found:
        found.update(_paid_to(rows) or _unlabelled(rows, found.get("buyer")))
    if email := _email(rows, found.get("buyer")):
        found["seller_email"] = email
    return found


def _block(rows: Sequence[Row], label: re.Pattern[str]) -> tuple[int, list[str]] | None:
    """The lines in a labelled cell's column, after the label and below it."""
    for index, row in enumerate(rows):
        for position, cell in enumerate(row.cells):
            match = label.match(cell.folded)
            if not match or len(cell.text) > 60:  # a sentence
                continue
            first = cell.text[match.end() :].strip(" :") if len(cell.folded) > match.end() else ""
            lines = [first] if first else []
            lines += _column(rows[index + 1 : index + 2 + _ADDRESS_ROWS], cell)
            lines = [_ATTENTION.sub("", line) for line in lines]
            if not lines and position + 1 < len(row.cells):
                lines = [row.cells[position + 1].text]
            lines = [line for line in lines if not label.match(line.casefold())]
            if lines and not amounts_like(lines[0]) and kind_of(fold(lines[0])) is None:
                return row.page, lines
    return None


def _column(rows: Sequence[Row], above: Cell) -> list[str]:
    lines = []
    for row in rows:
        cell = next((c for c in row.cells if abs(c.start - above.start) <= 3), None)
        if cell is None or cell.text.endswith(":") or len(row.cells) >= _TABLE_CELLS:
            break
        if BUYER.match(cell.folded) or SELLER.match(cell.folded):
            break
        if _NO_ADDRESS.search(cell.folded) or kind_of(cell.folded) or INVOICE.search(cell.folded):
            break
        if not cell.text.startswith("("):
            lines.append(cell.text)
    return lines


def amounts_like(text: str) -> bool:
    """Whether a line is a number or an amount and so no name."""
    return has_money(text) or not re.search(r"[^\W\d]{2}", text)


def _paid_to(rows: Sequence[Row]) -> dict[str, Found]:
    """The holder of the account, where the same name is printed elsewhere, as in a letterhead."""
    block = _block(rows, PAYEE) or _beside(rows, PAYEE)
    if block is None or not _may_be_name(block[1][0], ""):
        return {}
    name = block[1][0]
    for index, row in enumerate(rows):
        for cell in row.cells:
            if cell.text == name and not PAYEE.match(rows[max(0, index - 1)].cells[0].folded):
                below = _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
                return _named(name, below, row.page, "account holder")
    return {}


def _beside(rows: Sequence[Row], label: re.Pattern[str]) -> tuple[int, list[str]] | None:
    for row in rows:
        for cell, right in pairwise(row.cells):
            if label.match(cell.folded):
                return row.page, [right.text]
    return None


def _unlabelled(rows: Sequence[Row], buyer: Found | None) -> dict[str, Found]:
    """A seller by "sold by", by a company's legal form, or at the top of the page."""
    taken = buyer.value if buyer else ""
    cells = [(index, cell) for index, row in enumerate(rows) for cell in row.cells]
    for index, cell in cells:
        if match := _SOLD_BY.search(cell.text):
            name = match[1] if COMPANY.search(match[1]) else match[1].rstrip(".")
            return {"seller": Found(value=name, page=rows[index].page, label="sold by")}
    for index, cell, name in senders(rows, taken):
        if _may_be_name(name, ""):
            rest = [part.strip() for part in PARTED.split(cell.text)[1:]]
            below = rest or _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
            return _named(name, below, rows[index].page, "company")
    head = [
        (i, c) for i, c in cells if i < _HEAD_ROWS or (i < _LARGE_ROWS and is_large(rows, i, c))
    ]
    labels = [(index, cell) for index, cell in head if BUYER.match(cell.folded)]
    for index, cell in head:
        if INVOICE.search(cell.folded):
            continue
        if any(place <= index and cell.overlaps(label) for place, label in labels):
            continue
        if _may_be_name(cell.text, taken) and _heads_page(rows, index, cell, taken):
            below = _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
            rest = [*rest_of_name(rows, index, cell)]
            below = [line for line in below if line not in rest]
            return _named(" ".join([cell.text, *rest]), below, rows[index].page, "letterhead")
    return {}


def _heads_page(rows: Sequence[Row], index: int, cell: Cell, taken: str) -> bool:
    """Whether text at the top of a page is a name, and no title, value or head of a table."""
    text = cell.text
    if has_date(text) or ": " in text or not any(map(_WORD.fullmatch, text.split())):
        return False
    if kind_of(cell.folded) or _NUMBER_LABEL.search(cell.folded):
        return False
    if INVOICE_NAME.fullmatch(cell.folded):
        return False
    cells = rows[index].cells
    below = rows[index + 1].cells if index + 1 < len(rows) else ()
    if any(_CODE.fullmatch(other.text) for other in below if other.overlaps(cell)):
        return False  # the label of a number
    columns = len(cells) > 1 and sum(any(map(str.isdigit, other.text)) for other in below) > 1
    if columns or len(cells) >= _TABLE_CELLS:
        return False
    return not is_in_address(rows, index, cell, taken)


def _named(name: str, below: Sequence[str], page: int, label: str) -> dict[str, Found]:
    found = {"seller": Found(value=name, page=page, label=label)}
    if below:
        found["seller_address"] = Found(value=", ".join(below), page=page, label=label)
    return found


def _may_be_name(text: str, taken: str) -> bool:
    """Whether a piece of text can be somebody's name, and is not the buyer's."""
    folded = text.casefold()
    labels = _NO_NAME.search(folded) or BUYER.match(folded)
    return len(text) <= NAME_CHARS_MAX and text != taken and not labels and not amounts_like(text)


def _email(rows: Sequence[Row], buyer: Found | None) -> Found | None:
    """The only e-mail address on the document, or the first outside the buyer's lines."""
    near: set[str] = set()
    every: dict[str, Found] = {}
    for index, row in enumerate(rows):
        for match in _EMAIL.finditer(row.text):
            every.setdefault(match[0], Found(value=match[0], page=row.page, label="e-mail"))
            around = " ".join(other.text for other in rows[max(0, index - 3) : index + 1])
            if buyer and buyer.value in around:
                near.add(match[0])
    return next((found for address, found in every.items() if address not in near), None)
