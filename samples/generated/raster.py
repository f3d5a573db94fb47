"""Words as pictures and as filled rectangles, which no parser reads."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader

from samples.generated.fonts import VERA

_PIXELS: Final = 48  # of the letters of a picture
_DOTS: Final = 26  # of the letters made of rectangles
_RED: Final = (176, 32, 38)


@cache
def _face(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(VERA), size)


def _drawn(text: str, size: int, ink: Any, paper: Any, mode: str = "RGB") -> Image.Image:
    """The text alone, from its ascent to its descent, without a margin."""
    text = "".join(" " if sign.isspace() else sign for sign in text)
    face = _face(size)
    ascent, descent = face.getmetrics()
    sheet = Image.new(mode, (int(face.getlength(text)) + 2, ascent + descent), paper)
    ImageDraw.Draw(sheet).text((0, 0), text, fill=ink, font=face)
    return sheet


def word_picture(
    pen: Any, x: float, y: float, text: str, size: float, ink: Any, paper: Any
) -> float:
    """Draw a text as a picture with its base line at ``y``; return its width."""
    colours = [tuple(int(255 * part) for part in each.rgb()) for each in (ink, paper)]
    picture = _drawn(text, _PIXELS, colours[0], colours[1])
    scale = size / _PIXELS
    _, descent = _face(_PIXELS).getmetrics()
    width = picture.width * scale
    low = y - descent * scale
    pen.picture(ImageReader(picture), x, low, width, picture.height * scale)
    return width


def stamp_picture(text: str, angle: float) -> Any:
    """A red stamp with a frame, rotated, on nothing."""
    word = _drawn(text, _PIXELS, (*_RED, 255), (255, 255, 255, 0), "RGBA")
    stamp = Image.new("RGBA", (word.width + 60, word.height + 40), (255, 255, 255, 0))
    stamp.paste(word, (30, 20))
    corner = (stamp.width - 5, stamp.height - 5)
    ImageDraw.Draw(stamp).rectangle((4, 4, *corner), outline=(*_RED, 255), width=6)
    return stamp.rotate(angle, expand=True, resample=Image.Resampling.BICUBIC)


def rectangles(text: str, dots: int = _DOTS) -> Iterator[tuple[float, float, float, float]]:
    """The text as runs of dots (x, y, width, height), in units of the letters' size."""
    picture = _drawn(text, dots, 255, 0, "L")
    _, descent = _face(dots).getmetrics()
    pixels = picture.tobytes()
    for row in range(picture.height):
        line = pixels[row * picture.width : (row + 1) * picture.width]
        column = 0
        while column < len(line):
            start = column
            while column < len(line) and line[column] > 100:
                column += 1
            if column > start:
                y = picture.height - row - 1 - descent
                yield start / dots, y / dots, (column - start) / dots, 1.06 / dots
            column += 1


def mark(size: int = 90) -> Any:
    """A logo: rings of colours."""
    sheet = Image.new("RGB", (size * 3, size), (236, 240, 244))
    pen = ImageDraw.Draw(sheet)
    for index, ink in enumerate(((31, 95, 139), (122, 62, 107), (44, 110, 73))):
        left = 10 + index * 60
        pen.ellipse((left, 10, left + 70, 80), outline=ink, width=12)
    return sheet
