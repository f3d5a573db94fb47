"""A page that is a picture, read by the recogniser as if it had text."""

from collections.abc import Iterator
from typing import Any, Final

from reader.page_view import recognise
from reader.page_view.lines import lines_of
from reader.page_view.page import Page
from reader.page_view.pdfium import Box, Char, Sheet

PAGES_MAX: Final = 3  # a page takes one to two seconds of processor time
_SCALE: Final = 3.0  # pixels of a point: 216 dpi
_TALL: Final = 1.3  # a line's height by that of its letters


def read(sheet: Sheet, number: int) -> Page:
    """What the recogniser reads on a page.

    Raises:
        RecogniserMissingError: no pixel can be read here.
    """
    image = sheet.drawn(scale=min(_SCALE, sheet.scale * _SCALE / 2))
    scale = image.width / sheet.width
    lines = tuple(lines_of(_words(image, scale)))
    plain = "\n".join(" ".join(piece.text for piece in line) for line in lines)
    return Page(number=number, lines=lines, plain=plain)


def _words(image: Any, scale: float) -> Iterator[Char]:
    for line, words in recognise.lines(image):
        height = (line[3] - line[1]) / scale
        for text, (left, _, right, _) in words:
            top, base = line[1] / scale, line[3] / scale
            box = Box(left=left / scale, top=top, right=right / scale, bottom=top + _TALL * height)
            yield Char(text=text, box=box, mark=box, base=base, upright=True, made=False, owner=0)
