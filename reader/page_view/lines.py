"""Characters as lines of pieces, the way an eye reads them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from reader.page_view.pdfium import Box, Char

COLUMN: Final = 5.0  # points: about the width of a character of small print
_SAME_BASE: Final = 0.3  # of a character's height: sub- and superscripts stay in their line
_WORD_GAP: Final = 0.14  # of the height: less is the space between letters
_SPACE_GAP: Final = 0.04  # where a space is printed, which may lie anywhere
_PIECE_GAP: Final = 0.75  # of the height: more parts two pieces of text
_TIGHT: Final = 0.4  # of its width that a character may lie on the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of text that stands alone in its line."""

    text: str
    box: Box
    signs: tuple[Box, ...] = ()  # where each of its characters is, without spaces


Line = tuple[Piece, ...]


def lines_of(chars: Iterable[Char]) -> list[Line]:
    """The lines of upright characters, from the top, each from the left."""
    rows: list[list[Char]] = []
    for char in sorted(chars, key=lambda each: (each.base, each.box.left)):
        if char.made:
            continue
        row = rows[-1] if rows else []
        if row and char.base - row[0].base <= _SAME_BASE * min(char.box.height, row[0].box.height):
            row.append(char)
        else:
            rows.append([char])
    return [line for row in rows if (line := _line(row))]


def _line(row: list[Char]) -> Line:
    pieces: list[Piece] = []
    open_: list[Char] = []
    text, spaced = "", False
    for char in _once(sorted(row, key=lambda each: each.box.left)):
        if not char.text.strip():
            spaced = True
            continue
        gap = char.box.left - open_[-1].box.right if open_ else 0.0
        height = max(char.box.height, open_[-1].box.height) if open_ else 1.0
        if gap > _PIECE_GAP * height:
            pieces.append(_piece(text, open_))
            open_, text = [], ""
        elif open_ and gap > (_SPACE_GAP if spaced else _WORD_GAP) * height:
            text += " "
        open_.append(char)
        text, spaced = text + char.text, False
    return (*pieces, _piece(text, open_)) if open_ else ()


def _once(row: Sequence[Char]) -> list[Char]:
    """Without what is printed twice on one place, as some programs do for bold type."""
    kept: list[Char] = []
    for char in row:
        near = kept[-3:]
        wide = _TIGHT * (char.box.right - char.box.left)
        if not any(c.text == char.text and char.box.left - c.box.left < wide for c in near):
            kept.append(char)
    return kept


def _piece(text: str, chars: Sequence[Char]) -> Piece:
    signs = tuple(char.box for char in chars)
    return Piece(text=text, box=reduce(Box.around, signs), signs=signs)
