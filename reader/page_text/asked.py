"""Sentences over several lines that ask for a sum."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reader.page_text.amounts import Amount, amounts_in
from reader.page_text.dates import fold
from reader.page_text.rows import Cell, Row
from reader.page_text.vocabulary import ASKS, CONDITIONAL

_END: Final = re.compile(r"[.!?:;]$")
_STOP: Final = re.compile(r"(?:(?<!\d)\.|[!?;])(?=\s+[^\W\d_])")  # no ordinal's point
_WORDS_MIN: Final = 4
_RUNS_ON: Final = 30  # characters: a shorter line is a label
_LINES_MAX: Final = 3


def asked(rows: Sequence[Row]) -> Iterator[tuple[int, Cell, Amount]]:
    """Each amount in a sentence that asks for payment, with the place of its row and its cell.

    The amount's place in the text is that in its cell. What a payer may take off who pays early,
    or owes who pays late, is not asked for.
    """
    for place, row in enumerate(rows):
        for cell in row.cells:
            lines = [(place, cell), *_following(rows, place, cell)]
            yield from _asked(lines)


def _following(rows: Sequence[Row], place: int, cell: Cell) -> Iterator[tuple[int, Cell]]:
    """The lines that the cell's sentence runs on over."""
    for below in range(place + 1, min(place + _LINES_MAX, len(rows))):
        if (
            len(cell.text) < _RUNS_ON
            or _END.search(cell.text)
            or rows[below].page != rows[place].page
        ):
            return
        cell = rows[below].cells[0]
        if abs(cell.start - rows[place].cells[0].start) > 1:
            return
        yield below, cell


def _asked(lines: Sequence[tuple[int, Cell]]) -> Iterator[tuple[int, Cell, Amount]]:
    text = " ".join(cell.text for _, cell in lines)
    offset = 0
    for place, cell in lines:
        for amount in amounts_in(cell.text):
            sentence = fold(_around(text, offset + amount.start, offset + amount.end))
            asks = len(sentence.split()) >= _WORDS_MIN and ASKS.search(sentence)
            if amount.firm and asks and not CONDITIONAL.search(sentence):
                yield place, cell, amount
        offset += len(cell.text) + 1


def _around(text: str, start: int, end: int) -> str:
    stops = [match.end() for match in _STOP.finditer(text, 0, start)]
    after = _STOP.search(text, end)
    return text[stops[-1] if stops else 0 : after.start() if after else len(text)]
