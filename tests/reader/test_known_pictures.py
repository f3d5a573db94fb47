"""Pictures, drawings and payment codes: what is free, what agrees, and what a person accepts."""

import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from PIL import Image
from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject, read_object
from reportlab.graphics.barcode.qr import QrCodeWidget
from reportlab.graphics.renderPDF import draw
from reportlab.graphics.shapes import Drawing
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from reader import Extraction, ExtractionError
from reader.known_text.unit import Unit
from reader.page_view import graphics
from tests.kit.pdf_builder import invoice_lines, text_pdf
from tests.kit.reading import read_here

Hook = Callable[[Canvas], None]
IBAN = "AT611904300234573201"


def reading(*hooks: Hook, code: bytes = b"", **resources: Any) -> Extraction:
    """What is read of an invoice over EUR 120.00 on which these drew, and this code of a page."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont("Courier", 9)
    for place, line in enumerate(invoice_lines(f"IBAN {IBAN}")):
        canvas.drawString(40, 800 - 14 * place, line)
    for hook in hooks:
        hook(canvas)
    canvas.save()
    found = read_here(page_with(buffer.getvalue(), code, resources))
    assert found.fields.total_due == "120.00"
    return found


def drawn(*hooks: Hook, code: bytes = b"", **resources: Any) -> list[Unit]:
    """Its pictures and drawings."""
    units = reading(*hooks, code=code, **resources).units
    return [unit for unit in units if unit.kind != "text" or unit.text.startswith("BCD")]


def page_with(pdf: bytes, code: bytes, resources: Mapping[str, Any]) -> bytes:
    """The document, whose page draws this, too, with resources of their kind's name."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    [page] = writer.pages
    parts = [writer._add_object(stream(b"q %s Q" % code)), page.raw_get("/Contents")]
    page[NameObject("/Contents")] = ArrayObject(parts)
    held: Any = page["/Resources"]
    for kind, each in resources.items():
        own = writer._add_object(each)
        held[NameObject(f"/{kind}")] = DictionaryObject({NameObject("/Own"): own})
        page[NameObject(f"/{kind}")] = ArrayObject([own])  # annotations are the page's
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def stream(data: bytes, said: str = "") -> StreamObject:
    """A stream with entries as PDF writes them."""
    made = StreamObject()
    made.update(dictionary(said))
    made.set_data(data)
    return made


def dictionary(said: str) -> Any:
    return read_object(io.BytesIO(f"<< {said} >>".encode()), None)


def epc(amount: str = "EUR120.00", iban: str = IBAN, name: str = "Acme Tools Ltd") -> str:
    return "\n".join(("BCD", "002", "1", "SCT", "", name, iban, amount, "", "", "A-2026-17"))


def code(text: str) -> Hook:
    def hook(canvas: Canvas) -> None:
        made = QrCodeWidget(text, barLevel="M", barWidth=110, barHeight=110)
        sheet = Drawing(110, 110)
        sheet.add(made)
        draw(sheet, canvas, 400, 120)

    return hook


def picture(shade: int = 0, x: float = 60, y: float = 300, wide: float = 80) -> Hook:
    image = Image.new("RGB", (40, 40), (200, 30, 30))
    image.putpixel((20, 20), (shade, 0, 0))
    return lambda canvas: canvas.drawImage(ImageReader(image), x, y, wide, wide)


def lines(*parts: tuple[float, float, float, float]) -> Hook:
    def hook(canvas: Canvas) -> None:
        for part in parts:
            canvas.line(*part)

    return hook


def marks(units: list[Unit]) -> list[str]:
    return [unit.mark for unit in units]


@pytest.mark.parametrize("asked", [epc(), epc(iban="AT61 1904 3002 3457 3201")])
def test_code_that_asks_for_what_was_read_is_no_unit(asked: str) -> None:
    assert drawn(code(asked)) == []


def test_reference_of_a_code_that_agrees_is_the_invoices() -> None:
    assert reading(code(epc())).fields.reference == "A-2026-17"
    assert reading(code(epc("EUR120.01"))).fields.reference is None


@pytest.mark.parametrize("asked", [
    epc("EUR120.01"),
    epc("USD120.00"),
    epc(""),
    epc(iban="DE02120300000000202051"),
    epc(name="Somebody Else"),
    epc().replace("A-2026-17", "A-2026-18"),
    "https://pay.example/now",
])  # fmt: skip
def test_code_that_asks_for_anything_else_is_a_unit(asked: str) -> None:
    assert len(drawn(code(asked))) == 1


def test_code_with_something_beside_it_is_a_unit_and_with_another_sum_another_one() -> None:
    assert drawn(code(epc()), lambda canvas: canvas.circle(455, 124, 5)) != []
    one, other = (marks(drawn(code(epc(sum_)))) for sum_ in ("USD120.00", "USD999.00"))
    assert one != other


def test_picture_is_known_wherever_it_is_and_in_one_pixel_another() -> None:
    [here], [there], [other] = drawn(picture()), drawn(picture(y=351.3)), drawn(picture(1))
    assert (here.mark, here.size) == (there.mark, there.size)
    assert here.mark != other.mark
    assert drawn(picture(wide=160))[0].size > 1.2 * here.size
    assert len(drawn(picture(), picture(1))) == 2


FRAME = ((35, 812, 560, 812), (35, 700, 560, 700), (35, 700, 35, 812), (560, 700, 560, 812))
CELL = ((38, 810, 120, 810), (38, 797, 120, 797), (38, 797, 38, 810), (120, 797, 120, 810))
LETTER = ((300, 400, 300, 460), (300, 460, 330, 460), (330, 430, 330, 460), (300, 430, 330, 430))


@pytest.mark.parametrize("parts", [FRAME, CELL, ((35, 500, 300, 500),)])
def test_rules_and_frames_of_text_are_free(parts: tuple[tuple[float, ...], ...]) -> None:
    assert drawn(lines(*parts)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [
    LETTER,
    ((60, 400, 160, 460),),  # oblique
    ((35, 803, 300, 803),),  # through the text
    ((300, 400, 300, 430),),  # alone
    (*FRAME, *LETTER),
])  # fmt: skip
def test_other_lines_are_a_drawing(parts: tuple[tuple[float, ...], ...]) -> None:
    assert drawn(lines(*parts)) != []  # type: ignore[arg-type]


def test_curve_is_a_drawing_and_each_is_known_wherever_it_is() -> None:
    moved = [(x1 + 40.3, y1 - 51.7, x2 + 40.3, y2 - 51.7) for x1, y1, x2, y2 in LETTER]
    assert marks(drawn(lines(*LETTER))) == marks(drawn(lines(*moved)))
    assert len(drawn(lambda canvas: canvas.circle(300, 300, 60))) == 1


def test_text_that_others_are_drawn_within_is_a_drawing() -> None:
    def hook(canvas: Canvas) -> None:
        canvas.saveState()
        text = canvas.beginText(300, 300)
        text.setFont("Helvetica-Bold", 40)
        text.setTextRenderMode(7)
        text.textOut("PAID")
        canvas.drawText(text)
        canvas.rect(0, 250, 595, 150, stroke=0, fill=1)
        canvas.restoreState()

    assert len(drawn(hook)) == 1


BAND = b"34 765 530 15 re f"  # around a line of text: of a plain colour it is free
WORD = b"BT /F 12 Tf 200 768 Td (PAID) Tj ET"
FONT = "/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
TILE = "/PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 595 842] /XStep 595 /YStep 842"


@pytest.mark.parametrize("code", [
    b"/Pattern cs /Own scn " + BAND,
    b"[20 4 3 9 500] 0 d 40 400 m 500 400 l S",  # dashes
    b"40 400 m 80 400 l 80 401 l 90 401 l 90 400 l 500 400 l S",  # corners
    b"6 w 40 600 m 550 600 l S 300 480 m 300 765 l S",  # a thick cross
    b"5 w 40 783 m 550 783 l S",  # its pen reaches into the letters of a line
])  # fmt: skip
def test_free_is_what_looks_like_a_plain_line_or_band(code: bytes) -> None:
    assert drawn(code=b"0.9 g " + BAND) == []
    assert drawn(code=code, Pattern=stream(WORD, f"{TILE} {FONT}")) != []


SHADING = "/ShadingType 2 /ColorSpace /DeviceGray /Coords [60 0 300 0] /Function "
IMAGE = "/Subtype /Image /Width 2 /Height 2 /BitsPerComponent 8 /ColorSpace "


@pytest.mark.parametrize(("code", "kind", "looks"), [
    (b"/Pattern cs /Own scn " + BAND, "Pattern",
        [stream(b"1 0 0 rg %s" % word, f"{TILE} {FONT}") for word in (WORD, WORD + BAND)]),
    (b"60 300 240 60 re W n /Own sh", "Shading",
        [dictionary(f"{SHADING} << /FunctionType 2 /N {n} /Domain [0 1] >>") for n in (1, 3)]),
    (b"90 0 0 90 60 300 cm /Own Do", "XObject",  # a large picture
        [stream(bytes(4), f"{IMAGE} [/Indexed /DeviceGray 1 <{c}>]") for c in ("e0e0", "10e0")]),
])  # fmt: skip
def test_what_has_no_look_of_its_own_is_known_by_the_pixels_of_the_page(
    code: bytes, kind: str, looks: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphics, "PIXELS_MAX", 3)
    one, again, other = (marks(drawn(code=code, **{kind: looks[at]})) for at in (0, 0, 1))
    assert one == again != other


@pytest.mark.parametrize("hidden", [b"0 0 1 1 re W n %s", b"%s 1 g 50 290 400 100 re f"])
def test_drawing_that_nobody_saw_is_another_one_once_it_is_seen(hidden: bytes) -> None:
    curve = b"60 300 m 60 380 200 380 200 300 c S"
    before, after = (marks(drawn(code=each)) for each in (hidden % curve, curve))
    assert not set(after) <= set(before)


def test_forms_too_deep_in_each_other_are_refused() -> None:
    def within(depth: int) -> Hook:
        def hook(canvas: Canvas) -> None:
            for level in range(depth):
                canvas.beginForm(f"form{level}")
                canvas.doForm(f"form{level - 1}") if level else canvas.circle(300, 300, 60)
                canvas.endForm()
            canvas.doForm(f"form{depth - 1}")

        return hook

    assert len(drawn(within(8))) == 1
    with pytest.raises(ExtractionError, match="DOC-009"):
        drawn(within(9))


def noted(said: str, rect: str = "[60 380 360 440]") -> list[str]:
    """The marks of an annotation that is drawn."""
    return marks(drawn(Annots=dictionary(f"/Type /Annot /Rect {rect} /F 4 {said}")))


@pytest.mark.parametrize("said", [
    "/Subtype /Text /Contents (%s)", "/Subtype /Highlight /Contents (%s)",
    "/Subtype /Ink /InkList [[%s]]", "/Subtype /Stamp /AS /%s", "/Subtype /Link /AP << /N (%s) >>",
    "/Subtype /Widget /FT /Btn /MK << /CA (%s) >>", "/Subtype /FileAttachment /FS << /F (%s) >>",
    "/Subtype /Widget /Parent << /FT /Tx /Parent << /V (%s) >> >>",
])  # fmt: skip
def test_note_is_known_by_all_that_it_has_and_by_its_size(said: str) -> None:
    one, again = noted(said % 1), noted(said % 1, "[60 480 360 540]")
    assert one == again != []
    assert one != noted(said % 2)
    assert one != noted(said % 1, "[60 380 160 440]")


def test_links_are_free_and_signatures_may_differ() -> None:
    assert noted("/Subtype /Link /A << /S /URI /URI (https://acme.example) >>") == []
    signed = "/Subtype /Widget /FT /Sig /V << /Type /Sig /Contents <%s> >>"
    assert noted(signed % "00") == noted(signed % "01") != []


@pytest.mark.parametrize("limit", ["_ANNOTATIONS_MAX", "_LOOK_DEPTH_MAX"])
def test_too_much_in_notes_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reader.reader." + limit, 0)
    with pytest.raises(ExtractionError, match="DOC-009"):
        noted(f"/Subtype /Text /Contents ({limit})")


def test_name_of_an_attached_file_is_a_unit_whatever_it_has() -> None:
    files = {"factur-x.xml": b"<a/>", "ALREADY PAID.xml": b"<a/>"}
    said = {unit.text for unit in read_here(text_pdf(invoice_lines(), files=files)).units}
    assert {f"Attached file: {name}" for name in files} <= said
