"""Builds small PDFs for the tests of extraction: lines of text, and files inside."""

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from zlib import crc32

from pypdf import PdfWriter
from pypdf.generic import NameObject, StreamObject
from reportlab.pdfgen.canvas import Canvas

_LINE = 14


def text_pdf(*pages: Sequence[str], files: Mapping[str, bytes] | None = None) -> bytes:
    """A PDF whose pages show these lines; two spaces or more separate columns."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for lines in pages:
        canvas.setFont("Courier", 9)
        for index, line in enumerate(lines):
            canvas.drawString(40, 800 - _LINE * index, line)
        canvas.showPage()
    canvas.save()
    return with_files(buffer.getvalue(), files) if files else buffer.getvalue()


def with_files(pdf: bytes, files: Mapping[str, bytes]) -> bytes:
    """The PDF with embedded files."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    for name, data in files.items():
        writer.add_attachment(name, data)
    return _written(writer)


def empty_pages_pdf(count: int) -> bytes:
    """A PDF with so many blank pages."""
    writer = PdfWriter()
    for _ in range(count):
        writer.add_blank_page(200, 200)
    return _written(writer)


def operators_pdf(chunks: Iterable[bytes]) -> bytes:
    """A PDF with one page and any content, compressed."""
    writer = PdfWriter()
    page = writer.add_blank_page(200, 200)
    stream = StreamObject()
    stream.set_data(b"".join(chunks))
    page[NameObject("/Contents")] = writer._add_object(stream.flate_encode())
    return _written(writer)


def encrypted_pdf(user_password: str) -> bytes:
    """A text PDF, encrypted with AES-256; an empty user password opens for anyone."""
    writer = PdfWriter(clone_from=io.BytesIO(text_pdf(invoice_lines())))
    writer.encrypt(user_password, "the owner's", algorithm="AES-256")
    return _written(writer)


def invoice_lines(
    *extra: str, total: str = "Total  EUR 120.00", number: str = "A-2026-17"
) -> list[str]:
    """A plain English invoice; under another number of another day."""
    days = 0 if number == "A-2026-17" else 1 + crc32(number.encode()) % 300
    return [
        "Acme Tools Ltd                           INVOICE",
        f"Invoice number: {number}",
        f"Invoice date: {date(2026, 1, 5) - timedelta(days)}                 Due date: 2026-02-04",
        "IBAN AT61 1904 3002 3457 3201",
        total,
        *extra,
    ]


def _written(writer: PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
