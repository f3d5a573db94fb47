"""The payment part of a Swiss QR bill (SIX, Swiss Implementation Guidelines QR-bill, 3.5)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reader.page_text.amounts import Amount, amounts_in
from reader.page_text.rows import Cell, Row

_PART: Final = re.compile(r"^(?:zahlteil|section paiement|sezione pagamento|payment part)$")
_AMOUNT: Final = re.compile(r"^(?:betrag|montant|importo|amount)$")
_CURRENCY: Final = re.compile(r"^(?:wahrung|monnaie|valuta|currency)$")
_CODES: Final = frozenset({"CHF", "EUR"})  # no other is allowed there
_ROWS: Final = 3  # in which a value is below its label


def slip_amounts(rows: Sequence[Row]) -> Iterator[tuple[int, Cell, Amount]]:
    """The sums of a document's payment parts and receipts, marked with their currency."""
    if not any(_PART.match(cell.folded) for row in rows for cell in row.cells):
        return
    for place, row in enumerate(rows):
        for cell in row.cells:
            if not _AMOUNT.match(cell.folded):
                continue
            under = [each for each in _under(rows, place, cell) if amounts_in(each[1].text)]
            codes = [
                below.text
                for label in row.cells
                if _CURRENCY.match(label.folded) and label.start < cell.start
                for _, below in _under(rows, place, label)
                if below.text in _CODES
            ]
            for where, below in under[:1] if codes else ():
                amount = amounts_in(below.text)[0]
                yield where, below, replace(amount, mark=codes[-1].casefold(), firm=True)


def _under(rows: Sequence[Row], place: int, label: Cell) -> list[tuple[int, Cell]]:
    return [
        (place + step, cell)
        for step, row in enumerate(rows[place + 1 : place + 1 + _ROWS], start=1)
        for cell in row.cells
        if cell.overlaps(label)
    ]
