"""What stands in pictures and drawings of a page: stamps, titles and logos that are no text."""

from collections.abc import Iterator
from typing import Final

from PIL import Image

from pipeline.steps.extract.page_view import recognise
from pipeline.steps.extract.page_view.pdfium import Box, Sheet

_CELL: Final = 4.0  # points: the grain in which neighbouring ink is found
_NEAR: Final = 3  # cells between the letters of one stamp
_DARK: Final = 200  # of 255: what is lighter is a tint, and nobody reads it as a stamp
_PARTS_MAX: Final = 12  # of one page
_SIDE_MIN: Final = 10.0  # points: what is smaller is no writing of any size
_PIXELS_MAX: Final = 1_400  # the longer side of a part as it is read
_ANGLES: Final = range(-85, 90, 5)  # degrees; Tesseract bears some of its own
_THUMB: Final = 96  # pixels: enough to find how a part is turned
_FRAME: Final = (0.06, 0.2)  # of width and height: what a stamp's frame may take on each side
_SURE_LETTERS: Final = 5.0  # a part that reads so well lies upright


def words(sheet: Sheet) -> list[str]:
    """The lines of writing in the pictures and drawings of a page, turned ones too.

    Raises:
        RecogniserMissingError: no pixel can be read here.
    """
    with sheet.drawings_alone():
        drawn = sheet.drawn()
    return [line for box in _parts(drawn, sheet) for line in _read(drawn, box, sheet.scale)]


def _read(drawn: Image.Image, box: Box, scale: float) -> list[str]:
    """What a part says: upright, turned as it lies in the least room, or within its frame."""
    edges = (box.left, box.top, box.right, box.bottom)
    part = drawn.crop(tuple(round(edge * scale) for edge in edges))  # type: ignore[arg-type]
    if (longer := max(part.size)) > _PIXELS_MAX:
        part.thumbnail((_PIXELS_MAX, _PIXELS_MAX))
    elif longer < _PIXELS_MAX // 4:
        part = part.resize((part.width * 2, part.height * 2), Image.Resampling.BICUBIC)
    tries = [recognise.rated(part, psm=6)]
    if _letters(tries[0]) < _SURE_LETTERS:
        for turned in _turned(part):
            tries += (recognise.rated(turned, psm=6), recognise.rated(_inside(turned), psm=7))
    return [line for line in max(tries, key=_letters)[1].splitlines() if line.strip()]


def _turned(part: Image.Image) -> Iterator[Image.Image]:
    """The part as its ink takes the least room, and by a right angle more where it is high."""
    small = part.copy()
    small.thumbnail((_THUMB, _THUMB))
    ink = small.point([255] * _DARK + [0] * (256 - _DARK))

    def room(angle: int) -> int:
        left, top, right, bottom = ink.rotate(angle, expand=True).getbbox() or (0, 0, 0, 0)
        return (right - left) * (bottom - top)

    angle = min((0, *_ANGLES), key=room)
    whole = part.rotate(angle, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    dark = whole.point([255] * _DARK + [0] * (256 - _DARK)).getbbox()
    found = whole.crop(dark) if dark else whole
    if found.height <= found.width:
        yield from (found, found.transpose(Image.Transpose.ROTATE_180))
    else:
        yield from (
            found.transpose(Image.Transpose.ROTATE_90),
            found.transpose(Image.Transpose.ROTATE_270),
        )


def _inside(part: Image.Image) -> Image.Image:
    """The part without the frame that it may have."""
    across, down = (round(share * side) for share, side in zip(_FRAME, part.size, strict=True))
    return part.crop((across, down, part.width - across, part.height - down))


def _letters(found: tuple[int, str]) -> float:
    """How many letters stand in words, by how sure it is of them: noise has few."""
    sure, text = found
    words = (word.strip(".,:;!-()") for word in text.split())
    return sure / 100 * sum(len(word) for word in words if word.isalpha() and len(word) > 2)


def _parts(drawn: Image.Image, sheet: Sheet) -> Iterator[Box]:
    """Where there is dark ink, close pieces as one."""
    if drawn.point([255] * _DARK + [0] * (256 - _DARK)).getbbox() is None:
        return
    wide, high = int(sheet.width / _CELL) + 1, int(sheet.height / _CELL) + 1
    ink = drawn.point([255] * _DARK + [0] * (256 - _DARK)).resize(
        (wide, high), Image.Resampling.BOX
    )
    data = ink.tobytes()
    todo = {place for place, value in enumerate(data) if value}
    parts = [*_grown(todo, wide)]
    parts.sort(key=lambda part: -(part[2] - part[0]) * (part[3] - part[1]))
    for left, top, right, bottom in parts[:_PARTS_MAX]:
        box = Box(
            left=max(0.0, (left - 1) * _CELL),
            top=max(0.0, (top - 1) * _CELL),
            right=min(sheet.width, (right + 2) * _CELL),
            bottom=min(sheet.height, (bottom + 2) * _CELL),
        )
        if min(box.height, box.right - box.left) >= _SIDE_MIN:
            yield box


def _grown(todo: set[int], wide: int) -> Iterator[tuple[int, int, int, int]]:
    """The bounds, in cells, of each group of cells that are near each other."""
    around = [dy * wide + dx for dy in range(-_NEAR, _NEAR + 1) for dx in range(-_NEAR, _NEAR + 1)]
    while todo:
        group, edge = list[int](), [todo.pop()]
        while edge:
            place = edge.pop()
            group.append(place)
            near = {place + step for step in around} & todo
            todo -= near
            edge += near
        rows, columns = [place // wide for place in group], [place % wide for place in group]
        yield min(columns), min(rows), max(columns), max(rows)
