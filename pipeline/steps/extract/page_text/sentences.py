"""Sentences over several lines, and those that ask for a sum of money."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from pipeline.steps.extract.page_text.amounts import Amount, amounts_in
from pipeline.steps.extract.page_text.dates import fold
from pipeline.steps.extract.page_text.rows import Cell, Row
from pipeline.steps.extract.page_text.vocabulary import ASKS, CONDITIONAL

_END: Final = re.compile(r"[.!?:;]$")
_STOP: Final = re.compile(r"(?:(?<!\d)\.|[!?;])(?=\s+[^\W\d_])")  # no ordinal's point
_WORDS_MIN: Final = 4
_RUNS_ON: Final = 30  # characters: a shorter line is a label
_LINES_MAX: Final = 3
_WRAPPED_CHARS: Final = 35  # a shorter line is not continued in the next one


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


def continued(rows: Sequence[Row]) -> frozenset[str]:
    """Folded lines that go on from the line above or into the one below: no sentences."""
    found = set()
    for above, below in pairwise(rows):
        upper, lower = above.cells[0], below.cells[0]
        if abs(upper.start - lower.start) <= 1 and _goes_on(upper.text, lower.text):
            found |= {upper.folded, lower.folded, fold(above.text), fold(below.text)}
    return frozenset(found)


def _goes_on(line: str, following: str) -> bool:
    ended = line.rstrip().endswith((".", "!", "?", ";", ":"))
    if following[:1].isalpha() and not following[:1].islower():
        return not ended and len(line) >= _WRAPPED_CHARS
    return not ended  # an amount or a number belongs to its label


def unwrapped(lines: Sequence[str]) -> str:
    """One text, in which only lines that go on run into the next one."""
    text, last = "", ""
    for line in map(str.strip, lines):
        text += (" " if _goes_on(last, line) else " ;; ") + line if line else ""
        last = line
    return text
