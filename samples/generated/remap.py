"""Fonts that draw one text and say another to a parser."""

from dataclasses import replace
from random import Random
from typing import Any, Final

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.pdfdoc import PDFArray, PDFDictionary, PDFName, PDFStream
from stdnum import iban

from samples.generated import fonts
from samples.generated.pen import Pen, Spot
from samples.generated.raster import rectangles

_FIRST: Final = 0x41
_TRIES_MAX: Final = 1_500
_CMAP: Final = """\
/CIDInit /ProcSet findresource begin
12 dict begin
begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def
/CMapType 2 def
1 begincodespacerange
<00> <FF>
endcodespacerange
{count} beginbfchar
{lines}
endbfchar
endcmap
CMapName currentdict /CMap defineresource pop
end
end"""


def other_digits(rng: Random, text: str) -> str:
    """The text with its digits exchanged for others, one for one; the first is not 0."""
    first = next(sign for sign in text if sign.isdigit())
    while True:
        digits = rng.sample("0123456789", 10)
        changed = text.translate(str.maketrans("0123456789", "".join(digits)))
        if digits[int(first)] not in ("0", first):
            return changed


def other_account(rng: Random, text: str) -> str | None:
    """A valid IBAN that differs from this one by an exchange of digits, if one is found."""
    for _ in range(_TRIES_MAX):
        changed = other_digits(rng, text)
        if iban.is_valid(changed):
            return changed
    return None


def draw(pen: Pen, spot: Spot, how: str, seen: str, read: str) -> None:
    """Draw ``seen`` at the spot so that a parser reads ``read``, of the same length."""
    pen.canvas.setFillColor(spot.ink)
    vera, _ = fonts.names_of("Vera")
    wide = 0 if how == "encoding" else pdfmetrics.stringWidth(seen, vera, spot.size)
    if wide > spot.width:
        spot = replace(spot, size=round(spot.size * spot.width / wide, 2))
    if how == "truetype":
        _truetype(pen, spot, seen, read)
        return
    pairs = sorted(set(zip(seen, read, strict=True)))
    name = _standard(pen, pairs) if how == "encoding" else _type3(pen, pairs)
    codes = "".join(f"{_FIRST + pairs.index(pair):02x}" for pair in zip(seen, read, strict=True))
    pen.canvas._code.append(
        f"BT /{name} {spot.size} Tf 1 0 0 1 {spot.x:.2f} {spot.y:.2f} Tm <{codes}> Tj ET"
    )


def _truetype(pen: Pen, spot: Spot, seen: str, read: str) -> None:
    name = fonts.forged_name()
    font: Any = pdfmetrics.getFont(name)
    font.says = {ord(sign): ord(said) for sign, said in zip(seen, read, strict=True)}
    pen.canvas.setFont(name, spot.size)
    pen.canvas.drawString(spot.x, spot.y, seen)


def _to_unicode(pen: Pen, name: str, pairs: list[tuple[str, str]]) -> Any:
    lines = [f"<{_FIRST + index:02x}> <{ord(said):04x}>" for index, (_, said) in enumerate(pairs)]
    stream = PDFStream(content=_CMAP.format(count=len(lines), lines="\n".join(lines)))
    return pen.canvas._doc.Reference(stream, f"{name}ToUnicode")


def _register(pen: Pen, name: str, entries: dict[str, Any]) -> str:
    document = pen.canvas._doc
    reference = document.Reference(PDFDictionary(entries), name)
    document.idToObject["BasicFonts"].dict[name] = reference
    return name


def _standard(pen: Pen, pairs: list[tuple[str, str]]) -> str:
    """A standard font whose /Differences and /ToUnicode contradict each other."""
    base = pen.font() if pen.family not in ("Vera", "DejaVu") else "Helvetica"
    vector = pdfmetrics.getEncoding("WinAnsiEncoding").vector
    glyphs = [vector[seen.encode("cp1252", "replace")[0]] for seen, _ in pairs]
    widths = [int(pdfmetrics.stringWidth(seen, base, 1000)) for seen, _ in pairs]
    differences = PDFArray([_FIRST, *(PDFName(glyph) for glyph in glyphs)])
    encoding = {"Type": PDFName("Encoding"), "Differences": differences}
    return _register(
        pen,
        "GenRecoded",
        {
            "Type": PDFName("Font"),
            "Subtype": PDFName("Type1"),
            "BaseFont": PDFName(base),
            "FirstChar": _FIRST,
            "LastChar": _FIRST + len(pairs) - 1,
            "Widths": PDFArray(widths),
            "Encoding": PDFDictionary(encoding),
            "ToUnicode": _to_unicode(pen, "GenRecoded", pairs),
        },
    )


def _type3(pen: Pen, pairs: list[tuple[str, str]]) -> str:
    """A font of drawn glyphs."""
    procedures, widths = {}, []
    names = fonts.names_of("Vera")
    for index, (seen, _) in enumerate(pairs):
        width = int(pdfmetrics.stringWidth(seen, names[0], 1000))
        runs = [
            f"{1000 * x:.0f} {1000 * y:.0f} {1000 * wide:.0f} {1000 * high:.0f} re"
            for x, y, wide, high in rectangles(seen, 40)
        ]
        content = f"{width} 0 0 -300 {width} 1000 d1 {' '.join(runs)} f"
        stream = PDFStream(content=content)
        procedures[f"g{index}"] = pen.canvas._doc.Reference(stream, f"GenGlyph{index}")
        widths.append(width)
    differences = PDFArray([_FIRST, *(PDFName(f"g{index}") for index in range(len(pairs)))])
    encoding = {"Type": PDFName("Encoding"), "Differences": differences}
    return _register(
        pen,
        "GenDrawn",
        {
            "Type": PDFName("Font"),
            "Subtype": PDFName("Type3"),
            "FontBBox": PDFArray([0, -300, 1000, 1000]),
            "FontMatrix": PDFArray([0.001, 0, 0, 0.001, 0, 0]),
            "FirstChar": _FIRST,
            "LastChar": _FIRST + len(pairs) - 1,
            "Widths": PDFArray(widths),
            "CharProcs": PDFDictionary(procedures),
            "Encoding": PDFDictionary(encoding),
            "Resources": PDFDictionary({}),
            "ToUnicode": _to_unicode(pen, "GenDrawn", pairs),
        },
    )
