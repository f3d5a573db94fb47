"""One document from bytes to fields; runs in the child process only."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from pypdf import PdfReader

from reader.decide import invoice_from_xml
from reader.embedded_xml.cii import is_cii, read_cii
from reader.embedded_xml.structured import Coded
from reader.embedded_xml.ubl import is_ubl, read_ubl
from reader.embedded_xml.xmltree import looks_like_xml, parse
from reader.holds import status_of
from reader.invoice import NOTES_CHARS_MAX, Extraction
from reader.page_text.rows import Row, cells_in
from reader.page_text.text import Printed, has_text, invoice_from_text, printed
from reader.page_text.wording import hold_by_picture
from reader.page_view import pictures, scan, stamps
from reader.page_view.check import competes, differs, due_place, is_field, other_money
from reader.page_view.crops import CROPS_MAX, Place, crop, field_places
from reader.page_view.page import Page, View, viewed
from reader.page_view.recognise import RecogniserMissingError
from reader.reader import check_sound, embedded_files, open_pdf
from reader.reasons import ExtractionError

_PICTURED_PAGES: Final = 3  # and the last one: where stamps are
_OTHER_DOCUMENTS: Final = (
    "Order",
    "OrderResponse",
    "DespatchAdvice",
    "Reminder",
    "Quotation",
    "Statement",
    "RemittanceAdvice",
    "Catalogue",
    "CrossIndustryOrder",
    "CrossIndustryQuotation",
    "CrossIndustryDespatchAdvice",
    "SCRDMCCBDACIOMessageStructure",
    "SCRDMCCBDACIDAMessageStructure",
)


def read(data: bytes, *, pages_max: int) -> Extraction:
    """Read an invoice: its embedded XML if it has one, else its text.

    Embedded XML that cannot be read is an error, not a reason to trust the page.

    Raises:
        ExtractionError: for every reason but time and memory.
    """
    reader = open_pdf(data, pages_max=pages_max)
    with viewed(data, reader) as view:
        extraction = _read(_coded(reader), view)
    check_sound(data)
    return extraction


def _read(invoices: Sequence[Coded], view: View) -> Extraction:
    if invoices:
        return _checked(_from_xml(invoices, view), view)
    if not has_text(view.shown):
        return _scanned(view)
    try:
        found = _from_text(view, view.shown)
    except ExtractionError:
        if not view.hides:
            raise
        return _held(_from_text(view, view.told), "hidden_text")  # nobody sees what it says
    return _checked(found, view)


def _scanned(view: View) -> Extraction:
    """Pages without visible text, read from their pixels: for a person, and never paid alone.

    Raises:
        ExtractionError: DOC-010, nothing can be read there either.
    """
    try:
        pages = [scan.read(each, n) for n, each in enumerate(view.sheets[: scan.PAGES_MAX], 1)]
    except RecogniserMissingError as error:
        raise ExtractionError("DOC-010") from error
    found = _from_text(view, pages)
    found = _with_crops(found, view, [*field_places(printed(pages), found.fields)])
    held = found.fields.pay_status == "open"
    return replace(_held(found, "scanned") if held else found, pages=len(view.sheets))


def _from_text(view: View, pages: Sequence[Page]) -> Extraction:
    fields, evidence = invoice_from_text(pages)
    return Extraction(
        fields=fields,
        evidence=evidence,
        notes=_bounded([*map(_everything, view.told)]),
        source="text",
        pages=len(pages),
    )


def _checked(found: Extraction, view: View) -> Extraction:
    """The extraction, held where its page shows a person something else than its text says."""
    document = printed(view.shown)
    place = due_place(document, Decimal(found.fields.total_due))
    found = _with_crops(found, view, [("amount due", place)] if place else [])
    if found.fields.pay_status != "open":
        return found
    if place is None:  # only data says so: the page is a picture, or shows another sum
        return _held(found, "page_and_data_differ" if has_text(view.shown) else "scanned")
    unseen = [
        (page.number, piece.box, piece.text)
        for page in view.shown
        for line in page.unseen
        for piece in line
    ]
    told, words = printed(view.told), stamps.PageWords(row.text for row in document.rows)
    new = [text for _, _, text in unseen if not words.repeat(text)]
    if any(map(is_field, new)) or competes(document, told, found.fields):
        return _with_crops(_held(found, "hidden_text"), view, [("hidden text", e) for e in unseen])
    try:
        other = differs(view.sheets, document, found.fields)
        if other:
            return _with_crops(_held(found, "hidden_text"), view, [("shown differently", other)])
        return _stamped(found, view, document, words)
    except RecogniserMissingError:
        return _held(found, "unverified")


def _with_crops(found: Extraction, view: View, places: Sequence[tuple[str, Place]]) -> Extraction:
    room = CROPS_MAX - len(found.crops)
    added = [
        crop(view.sheets[page - 1], page, box, name, text)
        for name, (page, box, text) in places[:room]
    ]
    return replace(found, crops=(*found.crops, *added))


def _stamped(
    found: Extraction, view: View, document: Printed, words: stamps.PageWords
) -> Extraction:
    """The extraction, held where a picture or a drawing says what the text does not: PAID."""
    every = [*enumerate(view.sheets, 1)]
    said = [
        (number, sheet, each)
        for number, sheet in (*every[:_PICTURED_PAGES], *every[_PICTURED_PAGES:][-1:])
        for each in pictures.writings(sheet)
    ]
    rows, doubtful = (
        [Row(page=1, cells=cells) for line in lines if (cells := cells_in(line))]
        for lines in (
            [line for _, _, each in said for line in each.lines],
            [line for _, _, each in said for line in each.doubtful],
        )
    )
    hold = hold_by_picture([*rows, *doubtful]) or stamps.misread(
        [each for _, _, each in said], words
    )
    odd = [
        (number, each.box, " ".join(each.lines))
        for number, sheet, each in said
        if stamps.foreign(each, sheet.height, words)
    ]
    if not hold and other_money(document, rows, found.fields):
        hold = "hidden_text"
    if not hold and not odd:
        return found
    return _with_crops(_held(found, hold or "unread_picture"), view, [("picture", e) for e in odd])


def _held(found: Extraction, hold: str) -> Extraction:
    return replace(found, fields=replace(found.fields, pay_status=status_of(hold), hold=hold))


def _everything(page: Page) -> str:
    return f"{page.plain}\n{page.beside}"


def _from_xml(invoices: Sequence[Coded], view: View) -> Extraction:
    shown = view.shown
    coded = invoices[0]
    fields, evidence = invoice_from_xml(coded, shown)
    found = Extraction(
        fields=fields,
        evidence=evidence,
        notes=_bounded([*coded.notes, *coded.terms, *map(_everything, view.told)]),
        source="xml",
        pages=len(shown),
    )
    others = {(item.numbers, item.dues, item.currencies, item.ibans) for item in invoices}
    several = len(others) > 1 and fields.pay_status == "open"
    return _held(found, "two_invoices") if several else found


def _coded(reader: PdfReader) -> list[Coded]:
    """Every invoice among the embedded files, in the order of the file."""
    found: list[Coded] = []
    for item in embedded_files(reader):
        if item.data is None:
            if item.name.lower().endswith(".xml"):
                raise ExtractionError("DOC-013")
            continue
        if not looks_like_xml(item.name, item.data):
            continue
        root = parse(item.data)
        if is_cii(root):
            found.append(read_cii(root))
        elif is_ubl(root):
            found.append(read_ubl(root))
        elif root.name in _OTHER_DOCUMENTS:
            raise ExtractionError("DOC-015")
    return found


def _bounded(parts: Sequence[str]) -> str:
    return "\n".join(part.strip() for part in parts if part.strip())[:NOTES_CHARS_MAX]
