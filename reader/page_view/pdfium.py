"""PDFium, which reads and draws a page: its characters with their places, and its pixels."""

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from PIL import Image

from reader.reasons import ExtractionError

PIXELS_MAX: Final = 4_000_000  # of one picture of a page: A4 at 144 dpi has 2 million
SCALE: Final = 2.0  # pixels of a point
CHARS_MAX: Final = 60_000  # of one page; one of small print has 10,000
_TEXT_BYTES_MAX: Final = 2_000  # of one alternative text
_FRAME_MIN: Final = 60.0  # points: a shorter box may be the stroke of a letter
_RULE_MIN: Final = 12.0  # points: so long is a rule of a table ...
_RULE_WIDTH_MAX: Final = 1.0  # ... and so thin
_DEPTH_MAX: Final = 8  # forms within forms
_UPRIGHT: Final = 0.1  # radians
_HYPHENS: Final = "-\u2010\u2011\u00ad"  # the last is soft: drawn, it is one all the same
SEPARATORS: Final = ".,"  # small in a box that neighbours reach into, and worth a hundred times


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle on the page as it is shown, in points from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, in tenths of a point."""
        return (
            round(self.left, 1),
            round(self.top, 1),
            round(self.right, 1),
            round(self.bottom, 1),
        )

    def around(self, other: "Box") -> "Box":
        """The smallest box that holds both."""
        return Box(
            left=min(self.left, other.left),
            top=min(self.top, other.top),
            right=max(self.right, other.right),
            bottom=max(self.bottom, other.bottom),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Char:
    """One character of the text layer; ``base`` is its baseline from the top.

    ``made`` was not printed: PDFium adds spaces and line ends where it finds gaps.
    """

    text: str
    box: Box
    mark: Box  # where its ink is, where that is known closer than by the box
    base: float
    upright: bool
    made: bool
    owner: int  # the text object that draws it


class Sheet:
    """An open page of a document."""

    def __init__(self, page: Any) -> None:
        self._page, self.raw, self.document = page, page.raw, page.pdf.raw
        self.width, self.height = page.get_size()
        self._turned = page.get_rotation()

    def chars(self) -> list[Char]:
        """Its characters in the order of the file.

        Raises:
            ExtractionError: DOC-009, more than a page can hold.
        """
        text = self._page.get_textpage()
        count = text.count_chars()
        if count > CHARS_MAX:
            raise ExtractionError("DOC-009")
        return [self._char(text.raw, place) for place in range(count)]

    def _char(self, text: Any, place: int) -> Char:
        code = raw.FPDFText_GetUnicode(text, place)
        if not code or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            code = ord(" ")  # it says nothing, whatever it looks like
        code = ord("-") if chr(code) in _HYPHENS else code
        box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
        raw.FPDFText_GetLooseCharBox(text, place, box)
        raw.FPDFText_GetCharOrigin(text, place, x, y)
        angle = raw.FPDFText_GetCharAngle(text, place) + math.radians(self._turned)
        owner = raw.FPDFText_GetTextObject(text, place)
        loose = self._shown(box.left, box.top, box.right, box.bottom)
        return Char(
            text=chr(code),
            box=loose,
            mark=self._mark(text, place) if chr(code) in SEPARATORS else loose,
            base=self._shown(x.value, y.value, x.value, y.value).top,
            upright=abs(math.sin(angle)) < _UPRIGHT and math.cos(angle) > 0,
            made=raw.FPDFText_IsGenerated(text, place) == 1,
            owner=ctypes.addressof(owner.contents) if owner else 0,
        )

    def _mark(self, text: Any, place: int) -> Box:
        edges = [ctypes.c_double() for _ in range(4)]
        raw.FPDFText_GetCharBox(text, place, *edges)
        left, right, bottom, top = (each.value for each in edges)
        return self._shown(left, top, right, bottom)

    def _shown(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The box of two points of the page's own space."""
        (x1, y1), (x2, y2) = (self.place(left, top), self.place(right, bottom))
        return Box(left=min(x1, x2), top=min(y1, y2), right=max(x1, x2), bottom=max(y1, y2))

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The place on the page as it is shown, of a point of the page's own space."""
        found_x, found_y = ctypes.c_int(), ctypes.c_int()
        fine = 64  # PDFium answers in whole pixels
        size = int(self.width * fine), int(self.height * fine)
        raw.FPDF_PageToDevice(self._page.raw, 0, 0, *size, 0, x, y, found_x, found_y)
        return found_x.value / fine, found_y.value / fine

    def alternatives(self) -> Iterator[str]:
        """The texts that programs are told to read in place of what is drawn."""
        for each in objects(self._page.raw):
            for place in range(raw.FPDFPageObj_CountMarks(each)):
                mark = raw.FPDFPageObj_GetMark(each, place)
                if text := _parameter(mark, b"ActualText"):
                    yield text

    @property
    def scale(self) -> float:
        """Pixels of a point, fewer on a page of a poster's size."""
        return min(SCALE, math.sqrt(PIXELS_MAX / max(1.0, self.width * self.height)))

    def drawn(self, box: Box | None = None, scale: float = 0.0) -> Image.Image:
        """The page, or a part of it, in shades of grey, with its annotations."""
        scale = scale or self.scale
        crop = (0.0, 0.0, 0.0, 0.0)
        if box is not None:
            crop = (box.left, self.height - box.bottom, self.width - box.right, box.top)
        image: Image.Image = self._page.render(scale=scale, crop=crop, grayscale=True).to_pil()
        return image

    @contextmanager
    def without_text(self) -> Iterator[None]:
        """Context manager: PDFium draws no text."""
        with _switched_off(each for each in objects(self._page.raw) if _is_text(each)):
            yield

    @contextmanager
    def drawings_alone(self) -> Iterator[None]:
        """Within it, pictures and drawings alone: no text, no rules, frames and bands."""
        with _switched_off(
            each for each in objects(self._page.raw) if _is_text(each) or _is_frame(each)
        ):
            yield


@contextmanager
def _switched_off(found: Iterable[Any]) -> Iterator[None]:
    hidden = [*found]
    for each in hidden:
        raw.FPDFPageObj_SetIsActive(each, False)
    try:
        yield
    finally:
        for each in hidden:
            raw.FPDFPageObj_SetIsActive(each, True)


def _is_text(item: Any) -> bool:
    return bool(raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_TEXT)


def _is_frame(item: Any) -> bool:
    """Whether it is a path of upright straight lines, one side of which is long.

    A filled one has no short parts: those may be the strokes of letters.
    """
    if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_PATH:
        return False
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(item, *edges)
    left, bottom, right, top = (each.value for each in edges)
    longer, shorter = max(right - left, top - bottom), min(right - left, top - bottom)
    if longer < (_RULE_MIN if shorter <= _RULE_WIDTH_MAX else _FRAME_MIN):
        return False
    points = [
        point for place in range(raw.FPDFPath_CountSegments(item)) if (point := _end(item, place))
    ]
    return (
        len(points) == raw.FPDFPath_CountSegments(item)
        and all(abs(x1 - x2) < 1 or abs(y1 - y2) < 1 for (x1, y1), (x2, y2) in pairwise(points))
        and not (_filled(item) and any(length < _RULE_MIN for length in _parts(item, points)))
    )


def _filled(path: Any) -> bool:
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(path, mode, stroke)
    return bool(mode.value != raw.FPDF_FILLMODE_NONE)


def _parts(path: Any, points: Sequence[tuple[float, float]]) -> Iterator[float]:
    """The longer side of each part of a path that begins anew."""
    starts = [
        place
        for place in range(len(points))
        if raw.FPDFPathSegment_GetType(raw.FPDFPath_GetPathSegment(path, place))
        == raw.FPDF_SEGMENT_MOVETO
    ]
    for start, end in pairwise([*starts, len(points)]):
        across, down = zip(*points[start:end], strict=True)
        yield max(max(across) - min(across), max(down) - min(down))


def _end(path: Any, place: int) -> tuple[float, float] | None:
    """Where a straight part of a path ends; None for a curve."""
    part = raw.FPDFPath_GetPathSegment(path, place)
    if raw.FPDFPathSegment_GetType(part) == raw.FPDF_SEGMENT_BEZIERTO:
        return None
    x, y = ctypes.c_float(), ctypes.c_float()
    raw.FPDFPathSegment_GetPoint(part, x, y)
    return x.value, y.value


def objects(page: Any) -> Iterator[Any]:
    """Every object of a page, and of the forms in it."""
    for place in range(raw.FPDFPage_CountObjects(page)):
        yield from _within(raw.FPDFPage_GetObject(page, place), 0)


def _within(item: Any, depth: int) -> Iterator[Any]:
    yield item
    if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_FORM and depth < _DEPTH_MAX:
        for place in range(raw.FPDFFormObj_CountObjects(item)):
            yield from _within(raw.FPDFFormObj_GetObject(item, place), depth + 1)


def _parameter(mark: Any, name: bytes) -> str:
    """A text that a marked part of the content carries; empty without it."""
    size = ctypes.c_ulong()
    buffer = ctypes.create_string_buffer(_TEXT_BYTES_MAX)
    found = raw.FPDFPageObjMark_GetParamStringValue(
        mark, name, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), len(buffer), size
    )
    return buffer.raw[: max(0, size.value - 2)].decode("utf-16-le", "replace") if found else ""


@contextmanager
def opened(data: bytes) -> Iterator[Any]:
    """The document, whose form fields are drawn too.

    Raises:
        ExtractionError: DOC-009, PDFium cannot open it.
    """
    try:
        document = pdfium.PdfDocument(data)
        document.init_forms()
    except pdfium.PdfiumError as error:
        raise ExtractionError("DOC-009") from error
    try:
        yield document
    finally:
        document.close()


def sheets(document: Any) -> Iterator[Sheet]:
    """Its pages in order.

    Raises:
        ExtractionError: DOC-009, a page cannot be read.
    """
    for place in range(len(document)):
        try:
            yield Sheet(document[place])
        except pdfium.PdfiumError as error:
            raise ExtractionError("DOC-009") from error
