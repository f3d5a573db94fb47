"""PDFium, which reads and draws a page: its characters with their places, and its pixels."""

import ctypes
import math
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from PIL import Image

from reader.reasons import ExtractionError

PIXELS_MAX: Final = 4_000_000  # of one picture of a page: A4 at 144 dpi has 2 million
SCALE: Final = 2.0  # pixels of a point
COLOURS: Final = 3  # of a pixel, each a byte
CHARS_MAX: Final = 60_000  # of one page; one of small print has 10,000
_TEXT_BYTES_MAX: Final = 2_000  # of one alternative text
_DEPTH_MAX: Final = 8  # forms within forms
_UPRIGHT: Final = 0.1  # radians
_FINE: Final = 64  # of a point: PDFium answers in whole pixels
_HYPHENS: Final = "-\u2010\u2011\u00ad"  # the last is soft: drawn, it is one all the same
SEPARATORS: Final = ".,"  # small in a box that neighbours reach into, and worth a hundred times


class Box(NamedTuple):
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
        left, top, right, bottom = (round(each, 1) for each in self)
        return left, top, right, bottom

    def pixels(self, scale: float, more: float = 0.0) -> tuple[int, int, int, int]:
        """Its edges in pixels, with so many points around it."""
        return (
            int((self.left - more) * scale),
            int((self.top - more) * scale),
            int((self.right + more) * scale) + 1,
            int((self.bottom + more) * scale) + 1,
        )

    def around(self, other: "Box") -> "Box":
        """The smallest box that holds both."""
        return Box(*map(min, self[:2], other[:2]), *map(max, self[2:], other[2:]))


Point = tuple[float, float]


class Matrix(NamedTuple):
    """How a form's coordinates become those of what holds it, as PDF writes it."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def of(self, x: float, y: float) -> Point:
        """The point outside."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def within(self, outer: "Matrix") -> "Matrix":
        """This one, and then the outer one."""
        a, b = outer.of(self.a, self.b), outer.of(self.c, self.d)
        moved = outer.of(self.e, self.f)
        return Matrix(*(a[0] - outer.e, a[1] - outer.f), *(b[0] - outer.e, b[1] - outer.f), *moved)


PLAIN: Final = Matrix(1, 0, 0, 1, 0, 0)


class Char(NamedTuple):
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
        self._whole = 0, 0, int(self.width * _FINE), int(self.height * _FINE), 0
        # Pages lie by quarter turns: x as it is shown depends on one coordinate, y on the other.
        self._along = lru_cache(maxsize=1_024)(lambda edge: self._of_point(edge, edge))
        self.readings: dict[Any, Future[str]] = {}  # of its lines, by how each is drawn

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
            base=self.place(x.value, y.value)[1],
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
        along_x, along_y = self._along(x), self._along(y)
        return (along_y[0], along_x[1]) if self._turned % 180 else (along_x[0], along_y[1])

    def _of_point(self, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(self.raw, *self._whole, x, y, across, down)
        return across.value / _FINE, down.value / _FINE

    def alternatives(self) -> Iterator[str]:
        """The texts that programs are told to read in place of what is drawn."""
        for each, _ in placed(self.raw):
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

    def coloured(self, without: Iterable[Any]) -> Image.Image:
        """The page without these and its annotations, a pixel for a point, as COLOURS columns."""
        with switched_off(without):
            drawn = self._page.render(scale=self.scale / 2, draw_annots=False, may_draw_forms=False)
        size = COLOURS * drawn.width, drawn.height
        return Image.frombuffer("L", size, drawn.buffer, "raw", "L", drawn.stride, 1)

    def part(self, coloured: Image.Image, box: Box, more: float = 0.0) -> Image.Image:
        """What the page in its colours has in a box, with so many points around it."""
        left, top, right, bottom = box.pixels(coloured.height / self.height, more)
        left, top = COLOURS * max(0, left), max(0, top)
        right, bottom = min(coloured.width, COLOURS * right), min(coloured.height, bottom)
        return coloured.crop((left, top, max(left, right), max(top, bottom)))


@contextmanager
def switched_off(found: Iterable[Any]) -> Iterator[None]:
    """Context manager: PDFium draws none of these objects."""
    hidden = [*found]
    for each in hidden:
        raw.FPDFPageObj_SetIsActive(each, False)
    try:
        yield
    finally:
        for each in hidden:
            raw.FPDFPageObj_SetIsActive(each, True)


def texts(page: Any) -> Iterator[Any]:
    """The objects of a page that draw text."""
    return (e for e, _ in placed(page) if raw.FPDFPageObj_GetType(e) == raw.FPDF_PAGEOBJ_TEXT)


def placed(page: Any) -> Iterator[tuple[Any, Matrix]]:
    """Every object of a page and of the forms in it, and how its coordinates become the page's.

    Raises:
        ExtractionError: DOC-009, forms are too deep in each other to be looked at.
    """
    for place in range(raw.FPDFPage_CountObjects(page)):
        yield from _within(raw.FPDFPage_GetObject(page, place), PLAIN, 0)


def _within(item: Any, matrix: Matrix, depth: int) -> Iterator[tuple[Any, Matrix]]:
    yield item, matrix
    if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_FORM:
        if depth == _DEPTH_MAX:
            raise ExtractionError("DOC-009")
        inner = matrix_of(item).within(matrix)
        for place in range(raw.FPDFFormObj_CountObjects(item)):
            yield from _within(raw.FPDFFormObj_GetObject(item, place), inner, depth + 1)


def matrix_of(item: Any) -> Matrix:
    """How the coordinates of an object become those of what holds it."""
    found = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(item, found)
    return Matrix(found.a, found.b, found.c, found.d, found.e, found.f)


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
