"""Makes the sample PDFs: ``python -m samples.make [FOLDER]``; the same bytes every time."""

import argparse
import io
from collections.abc import Callable
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from samples import SAMPLES, YEAR, invented
from samples.drawing import Bill, draw, money
from samples.facturx import with_xml

_SCAN_SIZE: Final = (1240, 1754)  # A4 at 150 dpi


def scan(bill: Bill) -> bytes:
    """A page that holds a slightly crooked picture of an invoice, and no text."""
    sheet = Image.new("L", _SCAN_SIZE, 246)
    pen = ImageDraw.Draw(sheet)
    y = 130
    title = (
        (bill.seller[0], 44),
        ("INVOICE", 60),
        (f"Number {bill.number}", 30),
        (bill.issued, 30),
    )
    body = [(f"{line.text}   {money(line.amount)}", 26) for line in bill.lines]
    for text, size in (*title, *body, (f"Amount due   EUR {money(bill.total_due)}", 36)):
        pen.text((120, y), text, fill=52, font=ImageFont.load_default(size))
        y += size * 2
    pen.line((120, y, 1120, y), fill=90, width=3)
    crooked = sheet.rotate(1.1, fillcolor=246, resample=Image.Resampling.BILINEAR)
    picture = crooked.quantize(16).convert("L")
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1, pageCompression=1)
    canvas.setTitle(f"Scan {bill.title}")
    canvas.drawImage(ImageReader(picture), 0, 0, *A4)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def broken(bill: Bill) -> bytes:
    """An invoice, cut off in the middle."""
    whole = draw(bill)
    return whole[: len(whole) // 2]


BILLS: Final = {
    "plain": invented.PLAIN,
    "en16931": invented.EN16931,
    "over_limit": invented.OVER_LIMIT,
    "injected": invented.INJECTED,
    "multi_page_gbp": invented.MULTI_PAGE_GBP,
    "broken": invented.PLAIN,
    "scan": invented.PLAIN,
}
_MAKERS: Final[dict[str, Callable[[Bill], bytes]]] = {
    "en16931": lambda bill: with_xml(draw(bill), bill),
    "scan": scan,
    "broken": broken,
}


def sample(name: str, number: str = "", year: int = YEAR) -> bytes:
    """The sample of that name and year, under another invoice number where one is given."""
    return _MAKERS.get(name, draw)(invented.in_year(BILLS[name], year, number))


def make(folder: Path) -> None:
    """Write every sample into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in SAMPLES:
        (folder / each.file).write_bytes(sample(each.name))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    make(parser.parse_args().folder)


if __name__ == "__main__":
    main()
