"""Whether what was taken for the seller's name is one, and not a label or the buyer's name."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.steps.extract.page_text.labelled import Found
from pipeline.steps.extract.page_text.rows import Cell, Row

_CERTAIN: Final = frozenset({"seller", "sold by"})  # labels that only a seller's name has
_TO_BUYER: Final = re.compile(
    r"^(?:(?:bill(?:ed|ing)?|invoiced?|sold|ship(?:ped)?|deliver(?:ed)?|issued) (?:to|address)|to"
    r"|customer|client"
    r"|buyer|purchaser|attn|payable by|rechnung (?:an|fur)|kaufer|kunde|(?:rechnungs"
    r"|liefer)\w*(?:empfanger|adresse"
    r"|anschrift)|auftraggeber|zahlbar durch|an|factur(?:e|ation)? a|(?:adresse|destinataire)\b.*"
    r"|acheteur|payable par"
    r"|factur(?:ado|ar) a|cliente|comprador|destinatari[oa]|pagabile da|spett\.?(?:le)?"
    r"|fatturare a"
    r"|cessionario|committente|faturad?o? a|adquirente|exmo.*|klant|koper|factuuradres|factuur "
    r"aan|afnemer"
    r"|gefactureerd aan|nabywca|klient|zamawiajacy|platnik|odberatel|kupujici|zakaznik"
    r"|fakturovat"
    r"|kunde|k[øo]ber|kj[øo]per|faktura(?:adress\w*| til| till)|kund|kopare|mottaker|modtager"
    r"|mottagare|till?"
    r"|asiakas|ostaja|laskutusosoite|laskun saaja|vastaanottaja|vevo|megrendelo|cimzett"
    r"|ugyfel)\s*:?$"
)
_COMPANY: Final = re.compile(
    r"(?<!\w)(?:gmbh|mbh|ag|kg|ohg|ug|gbr|e\.k\.|inc|llc|ltd|limited|corp|plc|llp|dac|b\.?v\.?"
    r"|n\.?v\.?"
    r"|s\.r\.o\.|a\.s\.|sarl|sasu?|s\.?a\.?|s\.?r\.?l\.?|s\.?p\.?a\.?|s\.?l\.?|lda|oyj?|ab|aps"
    r"|a/s|asa?"
    r"|sp\. ?z ?o\. ?o|kft|zrt|nyrt|bt)\.?$"
)
_TABLE_CELLS: Final = 4
_BLOCK_ROWS: Final = 2  # a name is this far below its label at most


def names_sender(found: Found | None, buyer: Found | None, rows: Sequence[Row]) -> bool:
    """Whether a seller was found by its label, or a company that is not the buyer."""
    if found is not None and found.label in _CERTAIN:
        return True
    names = {cell.text for row in rows for cell in row.cells if _COMPANY.search(cell.folded)}
    if found is not None and (found.label == "company" or _heads(found.value, rows)):
        names.add(found.value)
    taken = buyer.value if buyer else ""
    return any(name != taken and not _is_buyers(name, rows) for name in names)


def _heads(name: str, rows: Sequence[Row]) -> bool:
    """Whether a name is printed where it is no head of a table or of a row of values."""
    place = next((place for place, row in enumerate(rows) if name in row.text), 0)
    cells = rows[place].cells
    below = rows[place + 1].cells if place + 1 < len(rows) else ()
    columns = len(cells) > 1 and sum(any(map(str.isdigit, cell.text)) for cell in below) > 1
    return len(cells) < _TABLE_CELLS and not columns


def _is_buyers(name: str, rows: Sequence[Row]) -> bool:
    """Whether a label of the buyer is anywhere beside a name, or closely above it."""
    return any(
        _TO_BUYER.match(label.folded)
        for place, row in enumerate(rows)
        for position, cell in enumerate(row.cells)
        if name in cell.text
        for label in (*row.cells[max(0, position - 1) : position], *_above(cell, rows, place))
    )


def _above(cell: Cell, rows: Sequence[Row], place: int) -> Iterator[Cell]:
    for row in rows[max(0, place - _BLOCK_ROWS) : place]:
        yield from (other for other in row.cells if abs(other.start - cell.start) <= 1)
