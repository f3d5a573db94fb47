"""What is drawn in and beside an amount without being its text: a digit, a sign, a currency."""

from collections.abc import Sequence
from typing import Final

from PIL import Image

from reader.page_view.graphics import frames
from reader.page_view.pdfium import Box, Sheet, switched_off, texts
from reader.page_view.recognise import padded

_REACH: Final = 1.5  # of its height: what is so near is read with a number
_CONTRAST_MIN: Final = 40  # of 255 shades of grey


def drawn_beside(sheet: Sheet, box: Box) -> bool:
    """Whether a picture, a path or an annotation is in or beside a box.

    Rules, frames and bands do not count, nor does what is evenly coloured, such as paper.
    """
    band = padded(sheet, box, _REACH * box.height, 0.0)
    with switched_off([*texts(sheet.raw), *frames(sheet)]):
        return _uneven(sheet.drawn(band, sheet.scale).convert("L"))


def _uneven(drawn: Image.Image) -> bool:
    """Whether a picture has more than paper and straight lines from edge to edge."""
    data, wide = drawn.tobytes(), drawn.width
    rows = [data[start : start + wide] for start in range(0, len(data), wide)]
    paper = max(set(data), key=data.count, default=0)
    kept = [row for row in rows if _varies(row) or abs(row[0] - paper) < _CONTRAST_MIN]
    return any(map(_varies, zip(*kept, strict=True)))


def _varies(shades: Sequence[int]) -> bool:
    return max(shades) - min(shades) >= _CONTRAST_MIN
