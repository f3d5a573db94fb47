"""The pictures and drawings of a page: what each is, wherever it is drawn."""

import ctypes
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

import pypdfium2.raw as raw

from reader.page_view.pdfium import Box, Matrix, Point, Sheet, matrix_of, placed
from reader.reasons import ExtractionError

GRAPHICS_MAX: Final = 20_000  # of one page; a bar code has some hundred
PIXELS_MAX: Final = 16_000_000  # of a picture that is decoded; a larger one is known as it is drawn
_STRAIGHT: Final = 0.3  # points that a line may lean
_HAIRLINE: Final = 0.1  # points
_GRAIN: Final = 0.5  # points in which the shape of a drawing is compared
_FRAME_MIN: Final = 60.0  # points: a shorter box may be the stroke of a letter
_RULE_MIN: Final = 12.0  # points: so long is a rule of a table ...
_RULE_WIDTH_MAX: Final = 1.0  # ... and so thin
_OFF_HALVES: Final = 0.13  # of a point: shapes are drawn in halves and quarters


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphic:
    """A picture or a drawing with its place.

    ``item`` is PDFium's object. ``look`` is all but its place: pixels, or lines and colours; empty
    where only the page shows it. ``strokes`` are the boxes of its lines and rectangles, with half
    the ``pen`` that draws their edges, where all are straight and upright, else none; ``filled``
    are those whose areas are drawn.
    """

    item: Any
    kind: Literal["picture", "drawing"]
    box: Box
    look: str
    strokes: tuple[Box, ...] = ()
    pen: float = 0.0
    filled: bool = False


def graphics(sheet: Sheet) -> list[Graphic]:
    """Every picture and drawing on a page.

    Raises:
        ExtractionError: DOC-009, more than a page can hold.
    """
    found: list[Graphic] = []
    for item, matrix in placed(sheet.raw):
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_FORM or (kind == raw.FPDF_PAGEOBJ_TEXT and not _clips(item)):
            continue
        graphic = _path(sheet, item, matrix) if kind == raw.FPDF_PAGEOBJ_PATH else None
        found.append(graphic or _other(sheet, item, matrix, kind))
        if len(found) > GRAPHICS_MAX:
            raise ExtractionError("DOC-009")
    return [each for each in found if _is_on(sheet, each.box)]


def frames(sheet: Sheet) -> Iterator[Any]:
    """The objects that are upright straight lines, one side of which is long.

    A filled one has no short parts: those may be the strokes of letters.
    """
    for item, matrix in placed(sheet.raw):
        if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_PATH:
            found = _path(sheet, item, matrix)
            if found is not None and found.strokes and _is_frame(found):
                yield item


def _is_frame(drawing: Graphic) -> bool:
    shorter, longer = _sides(drawing.box)
    short = drawing.filled and any(_sides(each)[1] < _RULE_MIN for each in drawing.strokes)
    return not short and longer >= (_RULE_MIN if shorter <= _RULE_WIDTH_MAX else _FRAME_MIN)


def _sides(box: Box) -> list[float]:
    return sorted((box.right - box.left, box.height))


def _clips(text: Any) -> bool:
    """Whether a text is what others are drawn within: they look like it."""
    mode = raw.FPDFTextObj_GetTextRenderMode(text)
    return bool(mode >= raw.FPDF_TEXTRENDERMODE_FILL_CLIP)


def _is_on(sheet: Sheet, box: Box) -> bool:
    return box.right > 0 and box.bottom > 0 and box.left < sheet.width and box.top < sheet.height


def _other(sheet: Sheet, item: Any, matrix: Matrix, kind: int) -> Graphic:
    """A picture, or what is neither that nor lines, such as a shading, and has no look."""
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(item, *edges)
    left, bottom, right, top = (each.value for each in edges)
    corners = [matrix.of(x, y) for x in (left, right) for y in (bottom, top)]
    box = _bounds([sheet.place(*corner) for corner in corners])
    if kind != raw.FPDF_PAGEOBJ_IMAGE:
        return Graphic(item=item, kind="drawing", box=box, look="")
    wide, high = ctypes.c_uint(), ctypes.c_uint()
    raw.FPDFImageObj_GetImagePixelSize(item, wide, high)
    if wide.value * high.value > PIXELS_MAX:
        return Graphic(item=item, kind="picture", box=box, look="")
    turned = matrix_of(item).within(matrix)
    signs = "".join(
        "-" if round(each, 2) < 0 else "+" if round(each, 2) else "0" for each in turned[:4]
    )
    look = f"{signs} {_pixels(sheet, item, f'{wide.value} {high.value}')}"
    return Graphic(item=item, kind="picture", box=box, look=look)


def _pixels(sheet: Sheet, item: Any, size: str) -> str:
    """A hash of a picture's pixels, and of what is left of them by its masks."""
    digest = hashlib.sha256(size.encode())
    for bitmap in (
        raw.FPDFImageObj_GetBitmap(item),
        raw.FPDFImageObj_GetRenderedBitmap(sheet.document, sheet.raw, item),
    ):
        if bitmap:
            count = raw.FPDFBitmap_GetStride(bitmap) * raw.FPDFBitmap_GetHeight(bitmap)
            digest.update(ctypes.string_at(raw.FPDFBitmap_GetBuffer(bitmap), count))
            raw.FPDFBitmap_Destroy(bitmap)
        else:
            digest.update(b"none")
    return digest.hexdigest()


def _path(sheet: Sheet, item: Any, matrix: Matrix) -> Graphic | None:
    own = matrix_of(item).within(matrix)
    parts = [
        raw.FPDFPath_GetPathSegment(item, at) for at in range(raw.FPDFPath_CountSegments(item))
    ]
    if not parts:
        return None
    points: list[Point] = []
    for part in parts:
        x, y = ctypes.c_float(), ctypes.c_float()
        raw.FPDFPathSegment_GetPoint(part, x, y)
        points.append(sheet.place(*own.of(x.value, y.value)))
    kinds = [raw.FPDFPathSegment_GetType(part) for part in parts]
    closes = [bool(raw.FPDFPathSegment_GetClose(part)) for part in parts]
    box = _bounds(points)
    paint = _paint(item)
    mode, outlined, width, *_ = paint.split()
    pen = max(_HAIRLINE, float(width) * max(map(abs, own[:4]))) if outlined == "1" else 0.0
    curved = raw.FPDF_SEGMENT_BEZIERTO in kinds
    shape = " ".join(
        f"{kind}{'z' if close else ''} {_grain(x - box.left)} {_grain(y - box.top)}"
        for kind, close, (x, y) in zip(kinds, closes, points, strict=True)
    )
    return Graphic(
        item=item,
        kind="drawing",
        box=box,
        look=f"{shape} {paint}",
        pen=pen,
        filled=mode != str(raw.FPDF_FILLMODE_NONE),
        strokes=() if curved or _is_clipped(item) else _strokes(kinds, closes, points, pen / 2),
    )


def _grain(distance: float) -> int:
    return round((distance + _OFF_HALVES) / _GRAIN)


def _is_clipped(item: Any) -> bool:
    """Whether more than rectangles clip it: then its lines are not what is seen of it."""
    clip = raw.FPDFPageObj_GetClipPath(item)
    count = raw.FPDFClipPath_CountPaths(clip) if clip else 0
    return any(
        raw.FPDFPathSegment_GetType(raw.FPDFClipPath_GetPathSegment(clip, path, part))
        == raw.FPDF_SEGMENT_BEZIERTO
        or raw.FPDFClipPath_CountPathSegments(clip, path) > 6
        for path in range(max(0, count))
        for part in range(raw.FPDFClipPath_CountPathSegments(clip, path))
    )


def _strokes(
    kinds: Sequence[int], closes: Sequence[bool], points: Sequence[Point], half: float
) -> tuple[Box, ...]:
    """The boxes of a path's parts that begin anew, with half a pen; none where a line leans."""
    starts = [at for at, kind in enumerate(kinds) if kind == raw.FPDF_SEGMENT_MOVETO]
    found = []
    for start, end in pairwise([*starts, len(points)]):
        part = [*points[start:end], *([points[start]] if any(closes[start:end]) else [])]
        if any(
            min(abs(x1 - x2), abs(y1 - y2)) > _STRAIGHT for (x1, y1), (x2, y2) in pairwise(part)
        ):
            return ()
        found.append(_bounds([(x + more, y + more) for x, y in part for more in (-half, half)]))
    return tuple(found)


def _bounds(points: Sequence[Point]) -> Box:
    across, down = zip(*points, strict=True)
    return Box(left=min(across), top=min(down), right=max(across), bottom=max(down))


def _paint(item: Any) -> str:
    """In what colours, and how wide, a path is drawn."""
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(item, mode, stroke)
    width = ctypes.c_float()
    raw.FPDFPageObj_GetStrokeWidth(item, width)
    said = [f"{mode.value} {stroke.value} {round(width.value, 1)}"]
    for colour in (raw.FPDFPageObj_GetFillColor, raw.FPDFPageObj_GetStrokeColor):
        shades = [ctypes.c_uint() for _ in range(4)]
        colour(item, *shades)
        said.append(",".join(str(each.value) for each in shades))
    return " ".join(said)
