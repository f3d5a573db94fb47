"""Who sells and who buys, as a page without coded data shows it."""

import re
from collections.abc import Sequence
from typing import Final

from pipeline.extract.amounts import amounts_in
from pipeline.extract.labelled import Found
from pipeline.extract.rows import Cell, Row
from pipeline.extract.vocabulary import INVOICE

_SELLER: Final = re.compile(
    r"^(?:seller|vendor|supplier|provider|service provider|from|billed by|issued by|sold by|biller"
    r"|verkaufer|lieferant|rechnungs(?:steller|ersteller)|aussteller|prodejce|prodavajici|dodavatel"
    r"|verkoper|leverancier|vendeur|fournisseur|emetteur|vendedor|proveedor|emisor|fornitore"
    r"|cedente|sprzedawca)(?: (?:provider|seller|supplier|vendor))?\s*:?(?:\s+|$)"
)
_BUYER: Final = re.compile(
    r"^(?:buyer|customer|client|purchaser|bill(?:ed)? to|invoice to|ship to|sold to|to|attn"
    r"|bill to address|kaufer|kunde|rechnungsempfanger|kupujici|odberatel|kaeufer|klant|koper"
    r"|factuuradres|afleveradres|client|acheteur|destinataire|facture a|comprador|cliente"
    r"|destinatario|nabywca)\b(?: (?:purchaser|buyer|customer|address))?\s*:?(?:\s+|$)"
)
_COMPANY: Final = re.compile(
    r"(?<!\w)(?:gmbh|mbh|ag|kg|ohg|ug|e\.k\.|se|inc\.?|llc|ltd\.?|limited|corp\.?|plc|llp|b\.v\.|bv|n\.v\.|nv"
    r"|s\.r\.o\.|a\.s\.|sarl|s\.a\.r\.l\.|sas|s\.a\.s\.?|s\.a\.|sa|s\.r\.l\.|srl|s\.p\.a\.|spa|s\.l\.|sl|oy|ab|aps|as"
    r"|sp\. z o\.o\.|kft\.?|gbr|pty|co\.)(?![\w])"
)
_SOLD_BY: Final = re.compile(r"\b(?:sold|provided|issued|billed) by (.{3,60}?)\.?$", re.IGNORECASE)
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_NO_NAME: Final = re.compile(
    r"@|www\.|https?:|\b(?:tel|fax|phone|page|seite|strana|date|datum|nr|no|iban|bic|vat|ust|tax)\b|^\(|:$|^\d"
)
_ADDRESS_ROWS: Final = 5


def parties(rows: Sequence[Row]) -> dict[str, Found]:
    """Seller, buyer, their addresses and the seller's e-mail, as far as labels show them."""
    found: dict[str, Found] = {}
    for name, label in (("seller", _SELLER), ("buyer", _BUYER)):
        block = _block(rows, label)
        if block:
            page, lines = block
            found[name] = Found(value=lines[0], page=page, label=name)
            if lines[1:]:
                text = ", ".join(lines[1:_ADDRESS_ROWS])
                found[f"{name}_address"] = Found(value=text, page=page, label=name)
    if "seller" not in found and (seller := _unlabelled(rows, found.get("buyer"))):
        found["seller"] = seller
    if email := _email(rows, found.get("buyer")):
        found["seller_email"] = email
    return found


def _block(rows: Sequence[Row], label: re.Pattern[str]) -> tuple[int, list[str]] | None:
    """The lines in a labelled cell's column, after the label and below it."""
    for index, row in enumerate(rows):
        for position, cell in enumerate(row.cells):
            match = label.match(cell.folded)
            if not match or _as_sentence(cell):
                continue
            first = cell.text[match.end() :].strip(" :") if len(cell.folded) > match.end() else ""
            lines = [first] if first else []
            lines += _column(rows[index + 1 : index + 2 + _ADDRESS_ROWS], cell)
            if not lines and position + 1 < len(row.cells):
                lines = [row.cells[position + 1].text]
            lines = [line for line in lines if not label.match(line.casefold())]
            if lines and not amounts_like(lines[0]):
                return row.page, lines
    return None


def _column(rows: Sequence[Row], above: Cell) -> list[str]:
    lines = []
    for row in rows:
        cell = next((c for c in row.cells if abs(c.start - above.start) <= 3), None)
        if cell is None or cell.text.endswith(":") or _SELLER.match(cell.folded):
            break
        if _BUYER.match(cell.folded):
            break
        if not cell.text.startswith("("):
            lines.append(cell.text)
    return lines


def _as_sentence(cell: Cell) -> bool:
    return len(cell.text) > 60


def amounts_like(text: str) -> bool:
    """Whether a line is a number or an amount and so no name."""
    return any(amount.firm for amount in amounts_in(text)) or not re.search(r"[^\W\d]{2}", text)


def _unlabelled(rows: Sequence[Row], buyer: Found | None) -> Found | None:
    """A seller by what it is sold by, by a company's legal form, or at the top of the page."""
    taken = buyer.value if buyer else ""
    cells = [(row, cell) for row in rows for cell in row.cells]
    for row, cell in cells:
        if match := _SOLD_BY.search(cell.text):
            return Found(value=match[1], page=row.page, label="sold by")
    for row, cell in cells:
        name = re.split(r"\s[-–·●|•]\s|\s{2,}", cell.text)[0].strip()
        if _COMPANY.search(name.casefold()) and name != taken and len(name) <= 60:
            if not amounts_like(name) and not _NO_NAME.search(name.casefold()):
                return Found(value=name, page=row.page, label="company")
    for row, cell in cells[:8]:
        plain = not INVOICE.search(cell.folded) and not _NO_NAME.search(cell.folded)
        if plain and not amounts_like(cell.text) and cell.text != taken and not _as_sentence(cell):
            return Found(value=cell.text, page=row.page, label="letterhead")
    return None


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
