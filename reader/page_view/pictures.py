"""What is written in pictures and drawings of a page: stamps, titles and logos that are no text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from PIL import Image, ImageChops, ImageFilter, ImageOps

from reader.page_view import recognise
from reader.page_view.pdfium import Box, Sheet
from reader.page_view.pieces import RUNS_MAX, CrowdedError, Piece, drawn, pieces

_CELL: Final = 4.0  # points: the grain in which neighbouring ink is found
_NEAR: Final = 5  # cells between the letters and words of one stamp
_PAPER_MIN: Final = 230  # of 255: what is lighter is a tint, and nobody sees it as writing
_CLEAR_MIN: Final = 200  # what is lighter may join two letters
_LIGHTER: Final = 0.45  # of the way from a dark ground to white: writing on it
_SQUARE: Final = 0.05  # of its width by which a square code may be higher or lower
_FILLED: Final = 0.12  # of every row and column of such a code is ink
_SOLID: Final = 0.93  # of its box that a bar covers
_SOLID_SHARE: Final = 0.7  # of the pieces of a bar code or a chart
_PARTS_MAX: Final = 12  # of one page
_LETTER: Final = (3.5, 90.0)  # points: the longer side of a letter
_RULE_MIN: Final = 30.0  # points: so long and empty is a rule or a frame
_RULE_SHARE: Final = 0.14  # of its box that a frame covers
_LETTERS_MIN: Final = 2  # pieces; two letters of a word may touch
_PIXELS_MAX: Final = 1_400  # the longer side of a part as it is read
_LETTER_PIXELS: Final = 34  # of a letter as it is read
_SCALE_MAX: Final = 8.0
_ANGLES: Final = range(-85, 90, 5)  # degrees; Tesseract bears some of its own
_UPRIGHT_ROOM: Final = 1.06  # turning must save so much room
_THUMB: Final = 96  # pixels: enough to find how a part is turned
_MARGIN: Final = 12  # pixels of paper around what is read
_SURE: Final = 80  # of 100: so sure is it of words that are read the right way round


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What a picture or drawing says; ``sure`` is from 0 to 100, ``angle`` as it is turned.

    ``doubtful`` are lines that it says if it is turned another way.
    """

    lines: tuple[str, ...]
    doubtful: tuple[str, ...]
    sure: int
    box: Box
    angle: int
    letters: int  # pieces of ink that have a letter's size


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A group of cells: its edges in cells, and which of the cells are its own."""

    edges: tuple[int, int, int, int]
    mask: Image.Image


def writings(sheet: Sheet) -> list[Writing]:
    """What is written in the pictures and drawings of a page, turned or not.

    Raises:
        RecogniserMissingError: no pixel can be read here.
    """
    with sheet.drawings_alone():
        whole = sheet.drawn()
        return [found for part in _parts(whole, sheet) if (found := _writing(sheet, whole, part))]


def _writing(sheet: Sheet, whole: Image.Image, part: _Part) -> Writing | None:
    """What a part of the page says; None where it has nothing of the size of letters.

    What is too crowded for that may be anything, and counts as writing that is not read.
    """
    scale = whole.width / sheet.width
    left, top, right, bottom = (round(edge * _CELL * scale) for edge in part.edges)
    small = whole.crop((left, top, right, bottom))
    near = part.mask.resize(small.size, Image.Resampling.NEAREST)
    inks = [ImageChops.darker(each, near) for each in _inks(small, near)]
    try:
        found = [_letters(each, scale) for each in inks]
    except CrowdedError:
        box = _box((left, top, right, bottom), scale)
        return Writing(lines=(), doubtful=(), sure=0, box=box, angle=0, letters=RUNS_MAX)
    letters = max(found, key=_extent)
    if len(letters) < _LETTERS_MIN or _is_code(inks[0], letters):
        return None
    light = letters is found[-1]
    ink = drawn(letters, small.size)
    edges = ink.getbbox() or (0, 0, *small.size)
    places = (left + edges[0], top + edges[1], left + edges[2], top + edges[3])
    box = _box(places, scale)
    ink = ink.crop(edges)
    size = median(each.longer for each in letters) / scale
    angle = _angle(ink)
    tries = [*_readings(_enlarged(sheet, box, ink, size, light), angle)]
    best = max(tries, key=_weight)
    return Writing(
        lines=_lines(best[1]),
        doubtful=tuple(line for each in tries if each is not best for line in _lines(each[1])),
        sure=best[0],
        box=box,
        angle=angle,
        letters=len(letters),
    )


def _box(edges: tuple[int, int, int, int], scale: float) -> Box:
    left, top, right, bottom = (edge / scale for edge in edges)
    return Box(left=left, top=top, right=right, bottom=bottom)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line.strip())


def _dark(part: Image.Image, paper: int = _PAPER_MIN) -> Image.Image:
    return part.point([255] * paper + [0] * (256 - paper))


def _inks(part: Image.Image, near: Image.Image) -> tuple[Image.Image, ...]:
    """What is dark, what is clearly so, and what is light on a dark ground, each as ink."""
    dark = _dark(part)
    shades = part.histogram(ImageChops.darker(dark, near))
    ground = max(range(256), key=shades.__getitem__)
    least = min(255, ground + round(_LIGHTER * (255 - ground)))
    return dark, _dark(part, _CLEAR_MIN), part.point([0] * least + [255] * (256 - least))


def _extent(letters: Sequence[Piece]) -> int:
    """How large all but one are: a ground, or the space within a frame, is one."""
    sizes = [each.longer for each in letters]
    return sum(sizes) - max(sizes, default=0)


def _is_code(ink: Image.Image, letters: Sequence[Piece]) -> bool:
    """Whether it is a code for machines: bars, or a square without a blank line in it."""
    if sum(each.share > _SOLID for each in letters) >= _SOLID_SHARE * len(letters):
        return True
    square = ink.crop(ink.getbbox())
    if abs(square.width - square.height) > _SQUARE * square.width:
        return False
    across = square.resize((1, square.height), Image.Resampling.BOX).tobytes()
    down = square.resize((square.width, 1), Image.Resampling.BOX).tobytes()
    return bool(min(*across, *down) >= _FILLED * 255)


def _letters(ink: Image.Image, scale: float) -> list[Piece]:
    """The pieces of a letter's size: no frames, no rules, no dust, no paper around."""
    least, most = (scale * side for side in _LETTER)
    wide, high = ink.size
    found = [
        each
        for each in pieces(ink)
        if least <= each.longer <= most
        and not (each.longer >= scale * _RULE_MIN and each.share < _RULE_SHARE)
        and not (each.shorter < scale and each.longer > scale * _RULE_MIN)
        and (each.left > 0 and each.top > 0 and each.right < wide and each.bottom < high)
    ]
    return [each for each in found if sum(each.holds(other) for other in found) < 3]


def _enlarged(sheet: Sheet, box: Box, ink: Image.Image, size: float, light: bool) -> Image.Image:
    """The letters alone, dark on white, at the size at which they are read best."""
    longer = max(box.right - box.left, box.height)
    image = sheet.drawn(box, min(_LETTER_PIXELS / size, _SCALE_MAX, _PIXELS_MAX / longer))
    if light:
        image = ImageOps.invert(image)
    mask = ink.filter(ImageFilter.MaxFilter(5)).resize(image.size)
    paper = Image.new("L", image.size, 255)
    paper.paste(ImageOps.autocontrast(image, mask=mask), mask=mask)
    return paper


def _angle(ink: Image.Image) -> int:
    """How the ink is turned so that it takes the least room."""
    small = ink.copy()
    small.thumbnail((_THUMB, _THUMB))

    def room(angle: int) -> int:
        left, top, right, bottom = small.rotate(angle, expand=True).getbbox() or (0, 0, 0, 0)
        return (right - left) * (bottom - top)

    best = min(_ANGLES, key=room)
    return best if room(0) > _UPRIGHT_ROOM * room(best) else 0


def _readings(clear: Image.Image, angle: int) -> Iterator[tuple[int, str]]:
    """Readings as it is turned least, and in the other ways as long as none is good."""
    turned = clear.rotate(angle, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    dark = turned.point([255] * _PAPER_MIN + [0] * (256 - _PAPER_MIN)).getbbox()
    found = ImageOps.expand(turned.crop(dark) if dark else turned, _MARGIN, 255)
    turns: Sequence[Image.Transpose | None] = (None, Image.Transpose.ROTATE_180)
    if found.height > found.width:
        turns = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_270)
        turns = turns if angle else (None, *turns)
    for turn in turns:
        read = recognise.rated(found.transpose(turn) if turn else found, psm=6)
        yield read
        high = turn in (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_270)
        if read[0] >= _SURE and _weight(read) > 0 and not high:
            return


def _weight(read: tuple[int, str]) -> float:
    """How many letters stand in words, by how sure it is of them: noise has few."""
    sure, text = read
    words = (word.strip(".,:;!-()") for word in text.split())
    return sure / 100 * sum(len(word) for word in words if word.isalpha() and len(word) > 2)


def _parts(whole: Image.Image, sheet: Sheet) -> Iterator[_Part]:
    """Where there is dark ink, close pieces as one; the largest first."""
    ink = _dark(whole)
    if ink.getbbox() is None:
        return
    wide, high = int(sheet.width / _CELL) + 1, int(sheet.height / _CELL) + 1
    data = ink.resize((wide, high), Image.Resampling.BOX).tobytes()
    groups = [*_grown({place for place, value in enumerate(data) if value}, wide)]
    groups.sort(key=lambda group: -len(group))
    for group in groups[:_PARTS_MAX]:
        cells = bytearray(wide * high)
        for place in group:
            cells[place] = 255
        mask = Image.frombytes("L", (wide, high), bytes(cells)).filter(ImageFilter.MaxFilter(3))
        if edges := mask.getbbox():
            yield _Part(edges=edges, mask=mask.crop(edges))


def _grown(todo: set[int], wide: int) -> Iterator[list[int]]:
    """Each group of cells that are near each other."""
    around = [dy * wide + dx for dy in range(-_NEAR, _NEAR + 1) for dx in range(-_NEAR, _NEAR + 1)]
    while todo:
        group, edge = list[int](), [todo.pop()]
        while edge:
            place = edge.pop()
            group.append(place)
            near = {place + step for step in around} & todo
            todo -= near
            edge += near
        yield group
