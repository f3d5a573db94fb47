"""Who sells and who buys, as a page without coded data shows it."""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise
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
    names_company,
    prints_own,
    rest_of_name,
    senders,
)
from reader.page_text.totals import kind_of
from reader.page_text.vocabulary import INVOICE, INVOICE_NAME

_NUMBER_LABEL: Final = re.compile(r"(?<!\w)(?:n|no|nr|num|nro|ref)[.:ºo°]*$")
_CODE: Final = re.compile(r"(?=\D*\d)[\w./-]+")
_WORD: Final = re.compile(r"[^\W\d](?:[^\W\d]|[.&'’-])+,?")
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
_NAME_LABEL: Final = re.compile(
    r"(?:\w+ ?)?(?:name|firma|nom|naam|nombre|nome|nazwa|nazev|nimi|nev|navn|namn)\b"
)
_ATTENTION: Final = re.compile(r"^(?:attn|z\. ?hd\.?|t\.a\.v\.)[:. ]*", re.IGNORECASE)
_ADDRESS_ROWS: Final = 5
_HEAD_ROWS: Final = 4
_LARGE_ROWS: Final = 10  # in which a name in large type heads a page, beside other columns
_TABLE_CELLS: Final = 4  # a row of so many is the head of a table


def parties(rows: Sequence[Row]) -> dict[str, Found]:
    """Seller, buyer, their addresses and the seller's e-mail, as far as labels show them."""
    found: dict[str, Found] = {}
    for name, blocks in (("seller", [*_blocks(rows, SELLER)]), ("buyer", _bought(rows))):
        for page, lines in blocks[:1]:
            found[name] = Found(value=lines[0], page=page, label=name)
            if lines[1:]:
                text = ", ".join(lines[1:_ADDRESS_ROWS])
                found[f"{name}_address"] = Found(value=text, page=page, label=name)
    if "seller" not in found:
        found.update(_paid_to(rows) or _unlabelled(rows, found.get("buyer")))
    if email := _email(rows, found.get("buyer")):
        found["seller_email"] = email
    return found


def buyers(rows: Sequence[Row]) -> list[list[str]]:
    """The lines of each address that a label calls the buyer's."""
    return [lines for _, lines in _bought(rows)]


def _bought(rows: Sequence[Row]) -> list[tuple[int, list[str]]]:
    """Where goods are sent says who buys only where nothing else does."""
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
                lines = [_ATTENTION.sub("", line) for line in lines]
                lines = [line for line in lines if not label.match(line.casefold())]
                lines = [*dropwhile(lambda line: not _is_named(line), lines)]
                if lines:
                    yield row.page, lines
                    break


def _is_named(line: str) -> bool:
    return _may_be_name(line, "") and kind_of(fold(line)) is None


def _column(rows: Sequence[Row], above: Cell) -> list[str]:
    """The lines below a label; of fields among them, only a name counts."""
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
            named = beside and _NAME_LABEL.match(cell.folded)
            lines += [beside[0].text.lstrip(": ")] if named else []
            continue
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
    block = next(_blocks(rows, PAYEE), None) or _beside(rows, PAYEE)
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
        if _may_be_name(name, "") and _sends(rows, index, cell, taken):
            rest = [part.strip() for part in PARTED.split(cell.text)[1:]]
            below = rest or _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
            return _named(name, below, rows[index].page, "company")
    head = [
        (i, c) for i, c in cells if i < _HEAD_ROWS or (i < _LARGE_ROWS and is_large(rows, i, c))
    ]
    named = [each for each in head if BUYER.match(each[1].folded) or names_company(each[1].text)]
    for index, cell in head:
        if INVOICE.search(cell.folded):
            continue
        if any(place <= index and cell.overlaps(label) for place, label in named):
            continue
        if _has_rival(rows, index, cell, taken):
            continue
        if _may_be_name(cell.text, taken) and _heads_page(rows, index, cell, taken):
            below = _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
            rest = [*rest_of_name(rows, index, cell)]
            below = [line for line in below if line not in rest]
            return _named(" ".join([cell.text, *rest]), below, rows[index].page, "letterhead")
    return {}


def _sends(rows: Sequence[Row], index: int, cell: Cell, taken: str) -> bool:
    """Whether a company is the sender by its place or by what it prints of itself.

    To be the only company of a page is no evidence, nor is to have a telephone: it may be the
    customer, unless a label says who that is, or the name is above the title or below the sums.
    """
    own = prints_own(rows, index, cell)
    if _has_rival(rows, index, cell, taken):
        return False
    above = [each.folded for row in rows[:index] for each in row.cells]
    labelled = any(BUYER.match(each.folded) for row in rows for each in row.cells)
    if not labelled and any(INVOICE.search(text) for text in above):
        below = _column(rows[index + 1 : index + _ADDRESS_ROWS], cell)
        alone = index < _HEAD_ROWS and len(rows[index].cells) == 1 and not below  # no address
        return alone or (own and any(kind_of(text) in ("due", "total") for text in above))
    return own or index < _HEAD_ROWS or is_large(rows, index, cell)


def _has_rival(rows: Sequence[Row], index: int, cell: Cell, taken: str) -> bool:
    """Whether another name with lines below it is beside a name, and no label tells them apart."""
    below = rows[index + 1].cells if index + 1 < len(rows) else ()
    return any(
        other is not cell
        and _may_be_name(other.text, taken)
        and not any(map(str.isdigit, other.text))
        and not INVOICE.search(other.folded)
        and kind_of(other.folded) is None
        and not SELLER.match(other.folded)
        and any(line.overlaps(other) for line in below)
        for other in rows[index].cells
    )


def _heads_page(rows: Sequence[Row], index: int, cell: Cell, taken: str) -> bool:
    """Whether text at the top of a page is a name, and no title, value or head of a table."""
    text = cell.text
    if sum(map(str.isdigit, text)) > 1:
        return False  # a street or a town
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
