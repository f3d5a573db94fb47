"""The invoices that the gallery brings along: small PDFs, made when they are needed."""

import io
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from pypdf import PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

import samples
from pipeline.register.sample_register import new_digits
from pipeline.steps.identify import today

_PAGE = (595, 842)  # A4, in points
_SIZE, _LEADING, _TOP = 5, 14, 790  # points; the longest line fits on the page
SELLER = "Eastgate Office Supply Ltd"
IBAN = "LU28 0019 4006 4475 0000"  # as the register has it
_FONT = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Courier"}


def plain_invoice() -> bytes:
    """The plain sample under a number of its own: 1,284.50 EUR, with nothing wrong about it."""
    return _sample("plain")


def asking(
    amount_minor: int, currency: str, number: str, iban: str = IBAN, seller: str = SELLER
) -> bytes:
    """An open invoice of a registered supplier, or another, in a currency with two decimals.

    It names the supplier's account or another one. Its number begins with this one, and is drawn:
    no invoice here is a duplicate by chance.
    """
    drawn = new_digits()
    return bill(amount_minor, currency, f"{number}-{drawn[:5]}-{drawn[5:]}", iban, seller)


def bill(
    amount_minor: int, currency: str, number: str, iban: str = IBAN, seller: str = SELLER
) -> bytes:
    """An open invoice over this amount, under this number."""
    issued, due = _dates(number)
    return _page(
        f"{seller}                           INVOICE",
        f"Invoice number: {number}",
        f"Invoice date: {issued}                 Due date: {due}",
        f"IBAN {iban}",
        f"Total  {_sum(amount_minor, currency)}",
    )


def rearranged(amount_minor: int, currency: str, number: str) -> bytes:
    """The invoice that ``bill`` makes, in another layout."""
    issued, due = _dates(number)
    return _page(
        SELLER,
        "INVOICE",
        "",
        f"Date: {issued:%d %B %Y}",
        f"Invoice no.: {number}",
        "",
        f"Amount due: {_sum(amount_minor, currency)}",
        f"Payable by {due:%d %B %Y} to IBAN {IBAN}",
    )


def with_data_and(lines: Sequence[str]) -> bytes:
    """The sample with EN 16931 XML inside, and one more page that shows these lines."""
    writer = PdfWriter(clone_from=io.BytesIO(_sample("en16931")))
    return _written(_with_page(writer, lines))


def of_this_year(lines: Sequence[str]) -> list[str]:
    """The lines with dates that are plausible today."""
    return [samples.in_year(line, samples.year_of(today())) for line in lines]


def _dates(number: str) -> tuple[date, date]:
    """When it was issued and is due: no two invoices here are of one day by chance."""
    issued = date(samples.year_of(today()), 3, 2) - samples.earlier(number)
    return issued, issued + timedelta(days=30)


def _sample(name: str) -> bytes:
    from samples import fresh  # it draws with reportlab: only where an attack is fired

    return fresh.drawn(name, new_digits(), samples.year_of(today()))


def _page(*lines: str) -> bytes:
    return _written(_with_page(PdfWriter(), lines))


def _sum(amount_minor: int, currency: str) -> str:
    return f"{currency} {Decimal(amount_minor) / 100:,.2f}"


def _with_page(writer: PdfWriter, lines: Sequence[str]) -> PdfWriter:
    page = writer.add_blank_page(*_PAGE)
    stream = StreamObject()
    stream.set_data(_shown(lines))
    page[NameObject("/Contents")] = writer._add_object(stream)
    font = DictionaryObject({NameObject(k): NameObject(v) for k, v in _FONT.items()})
    fonts = DictionaryObject({NameObject("/F1"): font})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    return writer


def _shown(lines: Sequence[str]) -> bytes:
    """The page's content: each line on a line of its own."""
    shown = " T* ".join(f"({_escaped(line)}) Tj" for line in lines)
    return f"BT /F1 {_SIZE} Tf {_LEADING} TL 40 {_TOP} Td {shown} ET".encode("latin-1")


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _written(writer: PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
