"""Documents that cost more to read than an invoice: each ends with a reason, in time."""

import io
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from PIL import Image
from pypdfium2 import PdfiumError, PdfPage
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from reader import PAGES_MAX, ExtractionError, sandbox
from reader.page_view import pdfium, recognise, scan
from reader.page_view.page import Page
from reader.sandbox import run_child
from tests.kit.pdf_builder import invoice_lines, text_pdf
from tests.kit.reading import forget, read_here
from tests.reader.test_extract_document import code_of

BUSY = "10 10 m 500 500 l 20 700 l S\n"
SOME_SECONDS = 2  # in place of ten: what takes longer is stopped in the same way


def document(draw: Callable[[Any], Any], pages: int = 1, lines: bool = True) -> bytes:
    """An honest invoice with something drawn on each of its pages."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1, pageCompression=1)
    for page in range(pages):
        for place, text in enumerate(invoice_lines() if lines and not page else ()):
            canvas.drawString(60, 780 - 18 * place, text)
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def ended(data: bytes) -> str:
    """The hold or reason of a document."""
    try:
        return run_child(data, pages_max=PAGES_MAX).fields.hold or "open"
    except ExtractionError as error:
        return error.code


def nested_forms(canvas: Any) -> None:
    """Eight times eight times ... twenty circles, in 6 kB."""
    canvas.beginForm("form0")
    for place in range(20):
        canvas.circle(100 + place, 300 + place, 30)
    canvas.endForm()
    for depth in range(1, 7):
        canvas.beginForm(f"form{depth}")
        for _ in range(8):
            canvas.doForm(f"form{depth - 1}")
        canvas.endForm()
    canvas.doForm("form6")


def noise(canvas: Any) -> None:
    picture = Image.frombytes("L", (60, 80), Random(1).randbytes(60 * 80))  # noqa: S311
    canvas.drawImage(ImageReader(picture), 0, 0, 595, 842)


@pytest.mark.reader
@pytest.mark.parametrize("draw", [nested_forms, lambda canvas: canvas._code.append(BUSY * 300_000)])
def test_small_document_that_is_long_to_draw_is_stopped(
    draw: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "SECONDS_MAX", SOME_SECONDS)
    data = document(draw)
    assert len(data) < 40_000
    assert ended(data) in ("DOC-007", "DOC-008")


@pytest.mark.reader
def test_picture_of_a_hundred_million_pixels_is_read_or_stopped() -> None:
    def huge(canvas: Any) -> None:
        picture = Image.new("L", (10_000, 10_000), 255)
        canvas.drawImage(ImageReader(picture), 100, 300, 300, 300)

    assert ended(document(huge)) in ("open", "DOC-007", "DOC-008")


@pytest.mark.reader
def test_fifty_pages_of_noise_are_no_invoice() -> None:
    assert ended(document(noise, PAGES_MAX, lines=False)) in ("DOC-007", "no_amount")


@pytest.mark.reader
def test_scan_is_read_on_its_first_pages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    once = scan.read

    def counted(sheet: pdfium.Sheet, number: int) -> Page:
        read.append(number)
        return once(sheet, number)

    monkeypatch.setattr(scan, "read", counted)
    found = read_here(document(noise, scan.PAGES_MAX + 2, lines=False))
    assert found.fields.hold == "no_amount"
    assert read == [*range(1, scan.PAGES_MAX + 1)]


def test_page_of_more_characters_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = text_pdf([*invoice_lines(), "Hostile and long"])
    with pdfium.opened(data) as opened:
        count = len(next(pdfium.sheets(opened)).chars())
    monkeypatch.setattr(pdfium, "CHARS_MAX", count + 20)
    assert read_here(data).fields.pay_status == "open"
    forget()
    monkeypatch.setattr(pdfium, "CHARS_MAX", count - 20)
    assert code_of(data, read_here) == "DOC-009"


def test_page_that_cannot_be_drawn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **named: object) -> None:
        raise PdfiumError("no picture")

    forget()
    monkeypatch.setattr(PdfPage, "render", fails)
    assert code_of(text_pdf(invoice_lines()), read_here) == "DOC-009"
    forget()


@pytest.mark.parametrize("failing", ["SetImageBytes", "Recognize", "GetUTF8Text"])
def test_recogniser_that_dies_holds(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        def __getattr__(self, name: str) -> Any:
            return self.dies if name == failing else lambda *given: ""

        def dies(self, *given: object) -> None:
            raise RuntimeError

    forget()
    monkeypatch.setattr(recognise, "engine", Dying)
    if failing == "Recognize":
        assert read_here(document(noise, lines=False)).fields.hold == "no_amount"
    else:
        assert read_here(text_pdf(invoice_lines())).fields.hold == "unverified"
    forget()
