"""The fonts of the generator: the standard ones, and Vera with the letters it lacks."""

import struct
from functools import cache
from pathlib import Path
from typing import Any, Final

import reportlab
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

VERA: Final = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"
DEJAVU: Final = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")  # of more alphabets
_FAMILIES: Final = {
    "Helvetica": ("Helvetica", "Helvetica-Bold"),
    "Times": ("Times-Roman", "Times-Bold"),
    "Courier": ("Courier", "Courier-Bold"),
    "Vera": ("GenVera", "GenVera-Bold"),
    "DejaVu": ("GenDejaVu", "GenDejaVu-Bold"),
}
_ACCENTS: Final = {
    0x02DB: ("ąęĄĘ", "aeAE"),  # ogonek
    0x00B4: ("ńśźŃŚŹ", "nszNSZ"),  # acute
    0x02D9: ("żŻ", "zZ"),  # dot above
    0x02C7: ("ěřňďťĚŘŇŤ", "erndtERNT"),  # caron
    0x02DA: ("ůŮ", "uU"),  # ring
    0x02DD: ("őűŐŰ", "ouOU"),  # double acute
}
_FORGED_FACE: Final = "BitstreamVeraSans-Book"
_SPACES: Final = (0x2009, 0x202F)


class ForgedFont(TTFont):  # type: ignore[misc]  # reportlab has no types
    """A font that draws one letter and says another: what ``says`` holds."""

    says: dict[int, int] = {}

    def addObjects(self, doc: Any) -> None:  # noqa: N802  # reportlab calls it so
        super().addObjects(doc)
        for name, held in doc.idToObject.items():
            if str(name).startswith(f"toUnicodeCMap:AAAAAA+{_FORGED_FACE}"):
                held.content = _said(held.content, self.says)


def _said(cmap: str, says: dict[int, int]) -> str:
    """The map with other letters for some codes."""
    lines = cmap.split("\n")
    for index, line in enumerate(lines):
        code, _, letter = line.partition("> <")
        if code.startswith("<") and len(letter) == 5 and int(letter[:4], 16) in says:
            lines[index] = f"{code}> <{says[int(letter[:4], 16)]:04X}>"
    return "\n".join(lines)


def names_of(family: str) -> tuple[str, str]:
    """The regular and the bold font of a family, registered."""
    if family in ("Vera", "DejaVu"):
        _register()
    return _FAMILIES[family]


def forged_name() -> str:
    """A second Vera, used for one text alone, so that its map can say something else."""
    _register()
    return "GenForged"


@cache
def _register() -> None:
    sources = (("GenVera", "Vera.ttf"), ("GenVera-Bold", "VeraBd.ttf"), ("GenForged", "Vera.ttf"))
    for name, file in sources:
        pdfmetrics.registerFont(_completed(name, VERA.with_name(file)))
    if DEJAVU.exists():
        for name, stem in (("GenDejaVu", "DejaVuSans"), ("GenDejaVu-Bold", "DejaVuSans-Bold")):
            pdfmetrics.registerFont(TTFont(name, str(DEJAVU.with_stem(stem))))


def _completed(name: str, path: Path) -> Any:
    """The font, with composite glyphs for Polish, Czech and Hungarian, and thin spaces."""
    font = ForgedFont(name, str(path)) if name == "GenForged" else TTFont(name, str(path))
    face = font.face
    known: dict[int, int] = face.charToGlyph
    record = face.table["glyf"]
    outlines = face._ttf_data[record["offset"] : record["offset"] + record["length"]]
    for accent, (signs, bases) in _ACCENTS.items():
        for sign, base in zip(signs, bases, strict=True):
            if known.get(ord(sign)) or accent not in known:
                continue
            added = _composite(face, outlines, known[ord(base)], known[accent], sign)
            outlines = outlines.ljust(face.glyphPos[-1], b"\0") + added
            known[ord(sign)] = len(face.glyphPos) - 1
            face.glyphPos.append(len(outlines))
            face.hmetrics.append(face.hmetrics[known[ord(base)]])
            face.charWidths[ord(sign)] = face.charWidths[ord(base)]
    record["offset"], record["length"] = len(face._ttf_data), len(outlines)
    face._ttf_data += outlines
    for space in _SPACES:
        known[space] = known[0x20]
        face.charWidths[space] = face.charWidths[0x20]
    if name == "GenForged":
        face.name = _FORGED_FACE.encode()  # objects of a document are found by this name
    return font


def _composite(face: Any, outlines: bytes, base: int, accent: int, sign: str) -> bytes:
    """A glyph of two parts (OpenType ``glyf``, composite glyph description)."""
    left, low, right, high = _box(face, outlines, base)
    accent_left, accent_low, accent_right, accent_high = _box(face, outlines, accent)
    below = accent_high < low + (high - low) // 2
    shift = (left + right - accent_left - accent_right) // 2
    if below:
        shift = right - accent_right
    rise = 0 if below else max(0, high + 60 - accent_low)
    box = (
        min(left, accent_left + shift),
        min(low, accent_low + rise),
        max(right, accent_right + shift),
        max(high, accent_high + rise),
    )
    parts = struct.pack(">HHhh", 0x0023, base, 0, 0) + struct.pack(
        ">HHhh", 0x0003, accent, shift, rise
    )
    glyph = struct.pack(">hhhhh", -1, *box) + parts
    return glyph + b"\0" * (-len(glyph) % 4)


def _box(face: Any, outlines: bytes, glyph: int) -> tuple[int, int, int, int]:
    left, low, right, high = struct.unpack_from(">hhhh", outlines, face.glyphPos[glyph] + 2)
    return left, low, right, high
