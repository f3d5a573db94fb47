"""What is drawn in and beside an amount without being its text: a digit, a sign, a currency."""

from collections.abc import Iterable, Sequence
from typing import Final

from PIL import Image, ImageChops

from reader.page_view.pdfium import Box, Sheet

_REACH: Final = 1.5  # of its height: what is so near is read with a number
_INSET: Final = 0.2  # of its height above and below, where rules and other lines are
_CONTRAST_MIN: Final = 40  # of 255 shades of grey
_BLEED: Final = 1.0  # points that a letter may leave its box


def drawn_beside(sheet: Sheet, box: Box, texts: Iterable[Box]) -> bool:
    """Whether a picture, a path, an annotation or text without a reading is in or beside a box.

    ``texts`` are the boxes of what is read on the page. Rules, frames and bands do not count, nor
    does what is evenly coloured, such as paper.
    """
    with sheet.drawings_alone():
        if _uneven(sheet.drawn(_band(sheet, box, 0.0), sheet.scale).convert("L")):
            return True
    band = _band(sheet, box, _INSET)
    whole = sheet.drawn(band, sheet.scale)
    with sheet.without_text():
        ink = ImageChops.difference(whole, sheet.drawn(band, sheet.scale)).convert("L")
    for each in texts:
        _blank(ink, each, band, sheet.scale)
    return max(ink.tobytes(), default=0) >= _CONTRAST_MIN


def _band(sheet: Sheet, box: Box, inset: float) -> Box:
    """The box with what is beside it, without a part of its height above and below."""
    reach, less = _REACH * box.height, inset * box.height
    return Box(
        left=max(0.0, box.left - reach),
        top=max(0.0, box.top + less),
        right=min(sheet.width, box.right + reach),
        bottom=min(sheet.height, box.bottom - less),
    )


def _uneven(drawn: Image.Image) -> bool:
    """Whether a picture has more than paper and straight lines from edge to edge."""
    data, wide = drawn.tobytes(), drawn.width
    rows = [data[start : start + wide] for start in range(0, len(data), wide)]
    paper = max(set(data), key=data.count, default=0)
    kept = [row for row in rows if _varies(row) or abs(row[0] - paper) < _CONTRAST_MIN]
    return any(map(_varies, zip(*kept, strict=True)))


def _varies(shades: Sequence[int]) -> bool:
    return max(shades) - min(shades) >= _CONTRAST_MIN


def _blank(ink: Image.Image, text: Box, band: Box, scale: float) -> None:
    """Take away the ink of a text that is read."""
    edges = (
        (text.left - _BLEED - band.left) * scale,
        (text.top - _BLEED - band.top) * scale,
        (text.right + _BLEED - band.left) * scale,
        (text.bottom + _BLEED - band.top) * scale,
    )
    left, top, right, bottom = map(round, edges)
    if left < ink.width and right > 0 and top < ink.height and bottom > 0:
        ink.paste(0, (left, top, right, bottom))
