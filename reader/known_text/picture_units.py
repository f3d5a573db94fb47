"""The pictures and drawings of a document as units: all but rules, frames and bands of text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from typing import Final

from PIL import Image, ImageChops

from reader.invoice import Invoice
from reader.known_text import payment_codes
from reader.known_text.mask import Roles, masked
from reader.known_text.unit import Unit, unit
from reader.page_text.text import Printed
from reader.page_view.graphics import Graphic, graphics
from reader.page_view.pdfium import COLOURS, Box, Sheet, texts

STROKES_MAX: Final = 3_000  # lines and rectangles of a page that can be free; more are a drawing
_SPANS: Final = 1 / 3  # of the page, by a rule
_THIN: Final = 2.0  # points: a line; what is wider is a rectangle
_BAND_MIN: Final = 8.0  # points: what is wider than a line and narrower than a text is no band
_TOUCH: Final = 1.0  # points between lines of one frame
_MIDDLE: Final = (0.3, 0.7)  # of a letter's height, which no rule crosses
_UNDER: Final = 8.0  # points from a text to the line under or over it
_BESIDE: Final = 30.0  # points from a text to the line of its cell
_COVERED: Final = 0.6  # of a line under a text is under it
_NEAR: Final = 6.0  # points between the parts of one drawing
_CODE_MIN: Final = 30.0  # points: a smaller square is no code
_EDGE: Final = 4  # points around the edge of a drawing in which it shows
_SQUARE: Final = 0.8


def picture_units(
    sheets: Sequence[Sheet], document: Printed, invoice: Invoice, roles: Roles
) -> tuple[list[Unit], list[str]]:
    """The units of every page, and the references of the codes that ask for what was read."""
    units, references = list[Unit](), list[str]()
    for number, sheet in enumerate(sheets, 1):
        letters = [
            box
            for row in document.rows
            if row.page == number
            for cell in row.cells
            for box in (cell.signs or ((cell.box,) if cell.box else ()))
        ]
        for group in _groups(_looked_at(sheet, letters)):
            box = reduce(Box.around, (each.box for each in group))
            said = _code(sheet, box)
            if said is None:
                units.append(_unit(number, group, box))
            elif payment_codes.agrees(said, document, invoice):
                references.append(payment_codes.reference_of(said))
            else:
                asks = payment_codes.is_payment(said)
                masked_text = "⟨code⟩" + (said if asks else masked(said, roles, sentence=True))
                units.append(unit("picture", masked_text, said, page=number, box=box.edges))
    return units, references


def _unit(page: int, group: Sequence[Graphic], box: Box) -> Unit:
    looks = sorted(
        f"{round(each.box.left - box.left)} {round(each.box.top - box.top)} {each.look}"
        for each in group
    )
    kind = group[0].kind if len(group) == 1 else "drawing"
    return unit(kind, "\n".join(looks), "", size=max(1.0, box.height), page=page, box=box.edges)


def _code(sheet: Sheet, box: Box) -> str | None:
    """What a square code says; None where the picture is none."""
    wide, high = box.right - box.left, box.height
    if min(wide, high) < max(_CODE_MIN, _SQUARE * max(wide, high)):
        return None
    return payment_codes.decoded(sheet, box)


@dataclass(frozen=True, slots=True)
class _Stroke:
    """A line or a rectangle of a drawing; ``inked`` are its edges, and not its area alone."""

    at: int  # the place of its drawing
    box: Box
    inked: bool


def _looked_at(sheet: Sheet, near: Sequence[Box]) -> list[Graphic]:
    """All but the drawings that are rules, frames or bands of text, and look like that."""
    found = graphics(sheet)
    if not found:
        return []
    strokes = [
        _Stroke(at, box, each.pen > 0 or min(box.right - box.left, box.height) <= _THIN)
        for at, each in enumerate(found)
        for box in each.strokes
    ]
    kept = {at for at, each in enumerate(found) if not each.strokes}
    kept |= _not_free(strokes, sheet, near)
    words = [*texts(sheet.raw)]
    bare = sheet.coloured([*words, *(found[at].item for at in kept)])
    free = [each for each in strokes if each.at not in kept]
    uneven = _uneven(bare, sheet, free) if free else set[int]()
    whole = sheet.coloured(words) if kept | uneven else bare
    ink, left = ImageChops.difference(whole, bare), []
    for at in sorted(kept | uneven):
        look, more = found[at].look, found[at].pen + 1
        if at in uneven or not look:
            look += sha256(sheet.part(whole, found[at].box, more).tobytes()).hexdigest()
        elif not sheet.part(ink, found[at].box, more).getbbox():
            look += " unseen"
        left.append(replace(found[at], look=look))
    return left


def _uneven(bare: Image.Image, sheet: Sheet, strokes: Sequence[_Stroke]) -> set[int]:
    """The drawings that change within their edges, as dashes, patterns and masks do."""
    scale, (wide, high) = bare.height / sheet.height, bare.size
    across, down = (
        ImageChops.difference(bare, bare.crop((right, below, wide, high)))  # where both are
        for right, below in ((COLOURS, 0), (0, 1))
    )
    for stroke in strokes:
        left, top, right, bottom = stroke.box.pixels(scale, _EDGE)
        for x in (left, right - 2 * _EDGE):
            across.paste(0, (COLOURS * x, top, COLOURS * (x + 2 * _EDGE), bottom))
        for y in (top, bottom - 2 * _EDGE):
            down.paste(0, (COLOURS * left, y, COLOURS * right, y + 2 * _EDGE))
    found = set[int]()
    for stroke in sorted(strokes, key=lambda e: e.box.height * (e.box.right - e.box.left)):
        for changed in (across, down):
            if sheet.part(changed, stroke.box, 1).getbbox():
                left, top, right, bottom = stroke.box.pixels(scale, 1)
                changed.paste(0, (COLOURS * left, top, COLOURS * right, bottom))
                found.add(stroke.at)
    return found


def _not_free(strokes: Sequence[_Stroke], sheet: Sheet, texts: Sequence[Box]) -> set[int]:
    """The drawings of which a line is no rule, frame or band of text by its place."""
    if len(strokes) > STROKES_MAX:
        return {each.at for each in strokes}
    frames = [[each] for each in strokes if _is_ground(each.box, sheet)]
    others = [each for each in strokes if not _is_ground(each.box, sheet)]
    together = _together([each.box for each in others], _TOUCH)
    frames += [[others[place] for place in places] for places in together]
    return {each.at for frame in frames if not _is_free(frame, sheet, texts) for each in frame}


def _is_ground(box: Box, sheet: Sheet) -> bool:
    """Whether it is a ground or a frame of much of the page."""
    wide, high = box.right - box.left, box.height
    return bool(wide >= sheet.width * _SPANS and high >= sheet.height * _SPANS)


def _together(boxes: Sequence[Box], apart: float) -> list[list[int]]:
    """The places of the boxes that are near each other, group by group."""
    group = [*range(len(boxes))]

    def first(place: int) -> int:
        while group[place] != place:
            group[place] = group[group[place]]
            place = group[place]
        return place

    open_: list[int] = []
    for place in sorted(group, key=lambda each: boxes[each].left):
        box = boxes[place]
        open_ = [each for each in open_ if boxes[each].right >= box.left - apart]
        for other in open_:
            if _touch(boxes[other], box, apart):
                group[first(other)] = first(place)
        open_.append(place)
    found: dict[int, list[int]] = {}
    for place in range(len(boxes)):
        found.setdefault(first(place), []).append(place)
    return [*found.values()]


def _touch(one: Box, other: Box, apart: float) -> bool:
    return (
        one.left <= other.right + apart
        and other.left <= one.right + apart
        and one.top <= other.bottom + apart
        and other.top <= one.bottom + apart
    )


def _is_free(frame: Sequence[_Stroke], sheet: Sheet, texts: Sequence[Box]) -> bool:
    whole = reduce(Box.around, (each.box for each in frame))
    near = [text for text in texts if _touch(whole, text, _BESIDE)]
    if any(_crosses(each.box, text) for each in frame if each.inked for text in near):
        return False
    if len(frame) == 1:
        return _spans(whole, sheet) or _is_of_text(whole, near)
    return any(_holds(whole, text) for text in near) and all(
        _spans(each.box, sheet)
        or _is_side(each.box, whole)
        or (
            not _THIN < min(each.box.right - each.box.left, each.box.height) < _BAND_MIN
            and any(_touch(each.box, text, _BESIDE) for text in near)
        )
        for each in frame
    )


def _is_side(box: Box, whole: Box) -> bool:
    """Whether a line is at the edge of its frame, along half of it at least."""
    left, right = box.left - whole.left, whole.right - box.right
    top, bottom = box.top - whole.top, whole.bottom - box.bottom
    wide, high = box.right - box.left, box.height
    if wide >= high:
        return min(top, bottom) <= _TOUCH and 2 * wide >= whole.right - whole.left
    return min(left, right) <= _TOUCH and 2 * high >= whole.height


def _spans(box: Box, sheet: Sheet) -> bool:
    """Whether it is a rule over a third of the page, or a ground or frame of as much."""
    wide, high = box.right - box.left, box.height
    spans = wide >= sheet.width * _SPANS, high >= sheet.height * _SPANS
    return all(spans) or (min(wide, high) <= _THIN and any(spans))


def _is_of_text(box: Box, texts: Sequence[Box]) -> bool:
    """Whether a rectangle is around a text, or a line under, over or beside one."""
    wide, high = box.right - box.left, box.height
    if min(wide, high) > _THIN:
        return any(_holds(box, text) for text in texts)
    if wide < high:
        return any(text.top < box.bottom and box.top < text.bottom for text in texts)
    near = [
        text
        for text in texts
        if -_THIN <= box.top - text.bottom <= _UNDER or -_THIN <= text.top - box.bottom <= _UNDER
    ]
    shared = (min(text.right, box.right) - max(text.left, box.left) for text in near)
    return sum(each for each in shared if each > 0) >= _COVERED * wide


def _holds(box: Box, text: Box) -> bool:
    x, y = (text.left + text.right) / 2, (text.top + text.bottom) / 2
    return box.left <= x <= box.right and box.top <= y <= box.bottom


def _crosses(box: Box, text: Box) -> bool:
    """Whether an edge of it goes through the middle of a letter."""
    upper, lower = (text.top + share * text.height for share in _MIDDLE)
    across = min(box.right, text.right) - max(box.left, text.left)
    if across > 1.0 and any(upper <= edge <= lower for edge in (box.top, box.bottom)):
        return True
    middle = (text.left + text.right) / 2
    inside = box.top < lower and upper < box.bottom
    return inside and any(
        abs(edge - middle) < (text.right - text.left) * 0.2 for edge in (box.left, box.right)
    )


def _groups(found: Sequence[Graphic]) -> list[list[Graphic]]:
    """Pictures one by one, and drawings that are near each other together."""
    drawings = [each for each in found if each.kind == "drawing"]
    together = _together([each.box for each in drawings], _NEAR)
    pictures = [[each] for each in found if each.kind == "picture"]
    return [*pictures, *([drawings[place] for place in places] for places in together)]
