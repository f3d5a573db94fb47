"""Which characters of a page a person sees: those whose removal changes its pixels."""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from PIL import Image, ImageChops

from reader.page_view.pdfium import SEPARATORS, Box, Char, Sheet, switched_off, texts

_INK: Final = b"\xff"
_CONTRAST_MIN: Final = 40  # of 255 shades of grey; light grey #cccccc on white has 51
_SHADES_MAX: Final = 6  # of a colour, that nobody sees
_HEIGHT_MIN: Final = 3.0  # points from ascent to descent: nobody reads less
_DASHES: Final = "-–—−"
_DASH_MIN: Final = 1.0  # points along a dash: so long is one of readable text
_BLEED: Final = 1.0  # points that a letter may leave its box
_INNER: Final = 0.2  # of a glyph's width at either side, where only its neighbours have ink
_SHARED_MAX: Final = 0.5  # of a character's box that another one may cover
_WATERMARK: Final = 3  # times the height of the text that is read on it
_NEIGHBOURS: Final = 40  # characters looked at for one that lies on the same place


def ink_of(sheet: Sheet) -> Image.Image:
    """Where the text of a page changes its pixels with contrast, as white on black."""
    whole = sheet.drawn()
    with switched_off(texts(sheet.raw)):
        changed = ImageChops.difference(whole, sheet.drawn())
    del whole  # its memory is that of the next picture
    return changed.point([0] * _CONTRAST_MIN + [*_INK] * (256 - _CONTRAST_MIN))


def nameless(
    sheet: Sheet, ink: Image.Image, chars: Sequence[Char], visible: Sequence[bool]
) -> Iterator[tuple[Box, bytes]]:
    """The glyphs that are seen and stand for no character: their boxes, and how they look.

    What the characters beside them leave in their boxes is theirs.
    """
    odd = [char for char in chars if not char.made and not _is_named(char.text)]
    seen = zip(chars, visible, strict=True) if odd else ()
    named = [char.box for char, ok in seen if ok and _is_named(char.text)]
    for char in odd:
        box, scale = char.box, sheet.scale
        inset = _INNER * (box.right - box.left)
        inner = box._replace(left=box.left + inset, right=box.right - inset)
        if not ink.crop(inner.pixels(scale)).getbbox():
            continue
        part = ink.crop(box.pixels(scale))
        for other in named:
            if other.right + _BLEED > box.left and other.left - _BLEED < box.right:
                left, top, right, bottom = other.pixels(scale, _BLEED)
                at = (int(box.left * scale), int(box.top * scale))
                part.paste(0, (left - at[0], top - at[1], right - at[0], bottom - at[1]))
        if part.getbbox():
            yield box, part.tobytes()


@cache
def _is_named(text: str) -> bool:
    """Whether it stands for a character, and that is neither a space nor of private use."""
    text = text.strip()
    return bool(text) and text != "\ufffd" and unicodedata.category(text) not in ("Co", "Cn")


def seen(ink: Image.Image, sheet: Sheet, chars: Sequence[Char]) -> list[bool]:
    """Whether each character is seen.

    The page is drawn with and without its text. A character is seen where the two pictures differ
    with contrast, whatever the reason that one does not: it is drawn in no ink, clipped, covered,
    off the page, in a layer that is switched off. Where two different characters lie on the same
    place, neither counts.
    """
    stacked, shades, scale, found = _stacked(chars), ink.tobytes(), sheet.scale, list[bool]()
    for place, char in enumerate(chars):
        if char.made or not char.text.strip():  # a space is seen with what is before it
            found.append(not found or found[-1])
        else:
            wide, high = char.box.right - char.box.left, char.box.height
            # Under an ActualText, PDFium gives the ink alone, which is flat for a dash.
            flat = char.text in _DASHES
            size = max(wide, high) if flat else high if char.upright else wide
            large = size >= (_DASH_MIN if flat else _HEIGHT_MIN) and place not in stacked
            found.append(large and _has_ink(shades, ink.size, char.mark.pixels(scale)))
    return found


def _has_ink(shades: bytes, size: tuple[int, int], part: tuple[int, int, int, int]) -> bool:
    """Whether a part of a picture, black where it is without ink, is not black all over."""
    (wide, high), (left, top, right, bottom) = size, part
    left, right = max(0, left), max(0, min(wide, right))
    rows = range(max(0, top) * wide, min(high, bottom) * wide, wide)
    return any(shades.find(_INK, row + left, row + right) >= 0 for row in reversed(rows))


def pale(sheet: Sheet, unseen: Sequence[Char]) -> list[Char]:
    """Characters that are no fact, but in whose place the page has other colours without text."""
    changed = ImageChops.difference(sheet.coloured(()), sheet.coloured(texts(sheet.raw)))
    changed = changed.point(lambda shade: 255 * (shade > _SHADES_MAX))
    return [e for e in unseen if e.text.strip() and sheet.part(changed, e.box).getbbox()]


def _stacked(chars: Sequence[Char]) -> set[int]:
    """The characters that share their place with another character of another text."""
    printed = [(i, c) for i, c in enumerate(chars) if not c.made and c.text.strip()]
    printed.sort(key=lambda item: (round(item[1].base / 4), item[1].box.left))
    found: set[int] = set()
    for at, (place, char) in enumerate(printed):
        for other_place, other in printed[at + 1 : at + 1 + _NEIGHBOURS]:
            if other.box.left >= char.box.right:
                break
            if other.text == char.text or _shared(char.box, other.box) <= _SHARED_MAX:
                continue
            if _ligature(place, char, other_place, other) or _kerned(char, other):
                continue
            if not _on_watermark(char, other):
                found |= {place, other_place}
    return found


def _ligature(place: int, char: Char, other_place: int, other: Char) -> bool:
    """Whether two characters come of one glyph: "fl" is two letters."""
    near = abs(place - other_place) <= 2 and char.owner == other.owner
    return near and char.box.left == other.box.left


def _kerned(one: Char, other: Char) -> bool:
    """Whether one is a point or comma that is set under the arm of a letter, as in "P."."""
    signs = {one.text, other.text}
    return any(sign in SEPARATORS for sign in signs) and any(map(str.isalpha, signs))


def _on_watermark(one: Char, other: Char) -> bool:
    """Whether one is turned and so large that the other is read on it."""
    smaller, larger = sorted((one.box.height, other.box.height))
    return one.upright != other.upright and larger > _WATERMARK * smaller


def _shared(one: Box, other: Box) -> float:
    """How much of the smaller box lies in the other."""
    wide = min(one.right, other.right) - max(one.left, other.left)
    high = min(one.bottom, other.bottom) - max(one.top, other.top)
    area = min((one.right - one.left) * one.height, (other.right - other.left) * other.height)
    return max(0.0, wide) * max(0.0, high) / area if area > 0 else 0.0
