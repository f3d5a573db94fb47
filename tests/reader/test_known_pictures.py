"""Pictures, drawings and payment codes: what is free, what agrees, and what a person accepts."""

import io
from collections.abc import Callable

import pytest
from PIL import Image
from reportlab.graphics.barcode.qr import QrCodeWidget
from reportlab.graphics.renderPDF import draw
from reportlab.graphics.shapes import Drawing
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from reader import Extraction
from reader.known_text.unit import Unit
from tests.kit.pdf_builder import invoice_lines
from tests.kit.reading import read_here

Hook = Callable[[Canvas], None]
IBAN = "AT611904300234573201"


def reading(*hooks: Hook) -> Extraction:
    """What is read of an invoice over EUR 120.00 on which these drew."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont("Courier", 9)
    for place, line in enumerate(invoice_lines(f"IBAN {IBAN}")):
        canvas.drawString(40, 800 - 14 * place, line)
    for hook in hooks:
        hook(canvas)
    canvas.save()
    found = read_here(buffer.getvalue())
    assert found.fields.total_due == "120.00"
    return found


def drawn(*hooks: Hook) -> list[Unit]:
    """Its pictures and drawings."""
    return [
        unit for unit in reading(*hooks).units if unit.kind != "text" or unit.text.startswith("BCD")
    ]


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


@pytest.mark.parametrize(
    "asked",
    [
        epc("EUR120.01"),
        epc("USD120.00"),
        epc(""),
        epc(iban="DE02120300000000202051"),
        epc(name="Somebody Else"),
        epc().replace("A-2026-17", "A-2026-18"),
        "https://pay.example/now",
    ],
)
def test_code_that_asks_for_anything_else_is_a_unit(asked: str) -> None:
    assert len(drawn(code(asked))) == 1


def test_code_that_asks_for_another_sum_is_another_unit() -> None:
    one, other = (marks(drawn(code(epc(sum_)))) for sum_ in ("USD120.00", "USD999.00"))
    assert one != other


def test_picture_is_known_wherever_it_is_and_in_one_pixel_another() -> None:
    [here], [there], [other] = drawn(picture()), drawn(picture(y=351.3)), drawn(picture(1))
    assert (here.mark, here.size) == (there.mark, there.size)
    assert here.mark != other.mark
    assert drawn(picture(wide=160))[0].size > 1.2 * here.size


def test_two_pictures_on_one_place_are_two_units() -> None:
    assert len(drawn(picture(), picture(1))) == 2


FRAME = ((35, 812, 560, 812), (35, 700, 560, 700), (35, 700, 35, 812), (560, 700, 560, 812))
CELL = ((38, 810, 120, 810), (38, 797, 120, 797), (38, 797, 38, 810), (120, 797, 120, 810))
LETTER = ((300, 400, 300, 460), (300, 460, 330, 460), (330, 430, 330, 460), (300, 430, 330, 430))


@pytest.mark.parametrize("parts", [FRAME, CELL, ((35, 500, 300, 500),)])
def test_rules_and_frames_of_text_are_free(parts: tuple[tuple[float, ...], ...]) -> None:
    assert drawn(lines(*parts)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parts",
    [
        LETTER,
        ((60, 400, 160, 460),),  # oblique
        ((35, 803, 300, 803),),  # through the text
        ((300, 400, 300, 430),),  # alone
        (*FRAME, *LETTER),
    ],
)
def test_other_lines_are_a_drawing(parts: tuple[tuple[float, ...], ...]) -> None:
    assert drawn(lines(*parts)) != []  # type: ignore[arg-type]


def test_drawing_is_known_wherever_it_is() -> None:
    moved = [(x1 + 40.3, y1 - 51.7, x2 + 40.3, y2 - 51.7) for x1, y1, x2, y2 in LETTER]
    assert marks(drawn(lines(*LETTER))) == marks(drawn(lines(*moved)))


def test_curve_is_a_drawing() -> None:
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
