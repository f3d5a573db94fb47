"""Ways to put a text into a page so that a parser reads it and a person does not."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject
from reportlab.lib.colors import Color, HexColor, white
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfdoc import PDFArray, PDFDictionary, PDFName, PDFString

from samples.generated.hybrid import written
from samples.generated.pen import Pen, Spot
from samples.generated.raster import mark

MARGIN: Final = 90.0  # between the CropBox and the MediaBox
LAYER: Final = "GenLayer"
_BAND: Final = HexColor("#2f4858")
_HIDDEN: Final = 2  # annotation flag, ISO 32000-1 table 165
_NO_VIEW: Final = 32

Hide = Callable[[Pen, Spot, int], None]


def write(pen: Pen, spot: Spot, ink: Any, size: float = 0) -> None:
    """The text of the spot in an ink."""
    pen.canvas.setFillColor(ink)
    pen.canvas.setFont(pen.font(spot.bold), size or spot.size)
    pen.canvas.drawString(spot.x, spot.y, spot.text)


def invisible_mode(pen: Pen, spot: Spot, variant: int) -> None:
    """Text render mode 3, or 7, which only clips."""
    canvas = pen.canvas
    canvas.saveState()
    text = canvas.beginText(spot.x, spot.y)
    text.setFont(pen.font(spot.bold), spot.size)
    text.setTextRenderMode((3, 3, 7)[variant % 3])
    text.textOut(spot.text)
    canvas.drawText(text)
    canvas.restoreState()


def off_page(pen: Pen, spot: Spot, variant: int) -> None:
    """Beyond one of the four edges of the MediaBox."""
    width, height = pen.size
    length = pen.width(spot.text, spot.size, spot.bold)
    x, y = (
        (-length - 30, spot.y),
        (width + 20, spot.y),
        (spot.x, height + 15),
        (spot.x, -30.0),
    )[variant % 4]
    write(pen, replace(spot, x=x, y=y), spot.ink if spot.paper == white else HexColor("#20242a"))


def off_crop(pen: Pen, spot: Spot, variant: int) -> None:
    """Inside the MediaBox and outside the CropBox."""
    width, height = pen.size
    x, y = ((spot.x, height + 24), (spot.x, -40.0), (width + 2, spot.y))[variant % 3]
    small = min(spot.size, 9.0)
    if variant % 3 == 2:
        small = min(small, small * (MARGIN - 6) / pen.width(spot.text, small, spot.bold))
    write(pen, replace(spot, x=x, y=y, size=small), HexColor("#20242a"))


def tiny(pen: Pen, spot: Spot, variant: int) -> None:
    """A tenth or a hundredth of a point high."""
    write(pen, spot, spot.ink, (0.1, 0.01, 0.1)[variant % 3])


def paper_ink(pen: Pen, spot: Spot, variant: int) -> None:
    """The ink of the paper."""
    write(pen, spot, spot.paper)


def almost_white(pen: Pen, spot: Spot, variant: int) -> None:
    """An ink that no eye tells from the paper."""
    level = (0.995, 0.99, 0.985)[variant % 3]
    write(pen, spot, Color(level, level, level))


def on_band(pen: Pen, spot: Spot, variant: int) -> None:
    """The ink of a band beneath."""
    if spot.paper != white:
        write(pen, spot, spot.paper)
        return
    paint = (_BAND, HexColor("#dfe7ee"), HexColor("#8a5a12"))[variant % 3]
    pen.band(spot.x - 3, spot.y - 3, pen.width(spot.text, spot.size, spot.bold) + 6, 14, paint)
    write(pen, spot, paint)


def _cover(pen: Pen, spot: Spot) -> tuple[float, float, float, float]:
    width = pen.width(spot.text, spot.size, spot.bold)
    return spot.x - 1, spot.y - spot.size * 0.3, width + 2, spot.size * 1.35


def under_box(pen: Pen, spot: Spot, variant: int) -> None:
    """Drawn, then covered by a box in the colour of the paper."""
    write(pen, spot, spot.ink)
    pen.band(*_cover(pen, spot), spot.paper)


def under_picture(pen: Pen, spot: Spot, variant: int) -> None:
    """Drawn, then covered by a picture."""
    write(pen, spot, spot.ink)
    pen.picture(ImageReader(mark()), *_cover(pen, spot))


def clipped(pen: Pen, spot: Spot, variant: int) -> None:
    """Drawn where a clipping path lets nothing through."""
    canvas = pen.canvas
    canvas.saveState()
    path = canvas.beginPath()
    path.rect(*((0, 0, 1, 1), (spot.x - 9, spot.y - 40, 4, 4))[variant % 2])
    canvas.clipPath(path, stroke=0, fill=0)
    write(pen, spot, spot.ink)
    canvas.restoreState()


def transparent(pen: Pen, spot: Spot, variant: int) -> None:
    """Drawn without any opacity."""
    pen.canvas.saveState()
    write(pen, spot, Color(0.1, 0.1, 0.1, alpha=0))
    pen.canvas.restoreState()


def layer_off(pen: Pen, spot: Spot, variant: int) -> None:
    """Drawn in a layer; ``switched_off`` adds the layer to the finished file."""
    pen.canvas._code.append(f"/OC /{LAYER} BDC")
    write(pen, spot, spot.ink)
    pen.canvas._code.append("EMC")


def switched_off(pdf: bytes) -> bytes:
    """The document whose marked contents belong to a layer that is off."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    group = DictionaryObject(
        {NameObject("/Type"): NameObject("/OCG"), NameObject("/Name"): TextStringObject("Notes")}
    )
    held = writer._add_object(group)
    for page in writer.pages:
        resources = cast(DictionaryObject, page["/Resources"].get_object())
        resources[NameObject("/Properties")] = DictionaryObject({NameObject(f"/{LAYER}"): held})
    defaults = DictionaryObject(
        {NameObject("/BaseState"): NameObject("/ON"), NameObject("/OFF"): ArrayObject([held])}
    )
    writer._root_object[NameObject("/OCProperties")] = DictionaryObject(
        {NameObject("/OCGs"): ArrayObject([held]), NameObject("/D"): defaults}
    )
    return written(writer)


def annotation(pen: Pen, spot: Spot, variant: int) -> None:
    """A free text annotation that is hidden or has no place to appear."""
    entries = _annotated(pen, spot, (_HIDDEN, _NO_VIEW, _HIDDEN)[variant % 3])
    entries |= {
        "Subtype": PDFName("FreeText"),
        "Contents": PDFString(spot.text),
        "DA": PDFString("0 0 0 rg /Helv 9 Tf"),
    }
    pen.canvas._addAnnotation(PDFDictionary(entries), f"GenNote{spot.page}")


def form_field(pen: Pen, spot: Spot, variant: int) -> None:
    """A hidden text field whose value is the text."""
    entries = _annotated(pen, spot, (_HIDDEN, _NO_VIEW)[variant % 2])
    entries |= {
        "Subtype": PDFName("Widget"),
        "FT": PDFName("Tx"),
        "T": PDFString(("total", "amount_due", "iban")[variant % 3]),
        "V": PDFString(spot.text),
        "DA": PDFString("/Helv 0 Tf 0 g"),
    }
    document = pen.canvas._doc
    field = document.Reference(PDFDictionary(entries), "GenField")
    document.inForm()
    document.Catalog.AcroForm = PDFDictionary({"Fields": PDFArray([field])})
    pen.canvas._annotationrefs.append(field)


def _annotated(pen: Pen, spot: Spot, flags: int) -> dict[str, Any]:
    width = pen.width(spot.text, spot.size, spot.bold)
    rectangle = [round(each, 2) for each in (spot.x, spot.y - 3, spot.x + width, spot.y + 10)]
    return {"Type": PDFName("Annot"), "Rect": PDFArray(rectangle), "F": flags}


HIDES: Final[dict[str, Hide]] = {
    "invisible_mode": invisible_mode,
    "off_page": off_page,
    "off_crop": off_crop,
    "tiny": tiny,
    "white_on_white": paper_ink,
    "almost_white": almost_white,
    "on_band": on_band,
    "under_box": under_box,
    "under_picture": under_picture,
    "clipped": clipped,
    "transparent": transparent,
    "layer_off": layer_off,
    "annotation": annotation,
    "form_field": form_field,
}
