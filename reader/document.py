"""One document from bytes to fields; runs in the child process only."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Final

from pypdf import PdfReader

from reader.data_alone import read_data
from reader.decide import invoice_from_xml
from reader.embedded_xml.dialects import coded_in
from reader.embedded_xml.structured import Coded
from reader.embedded_xml.xmltree import looks_like_xml, parse
from reader.holds import status_of
from reader.invoice import Extraction, Given, Picture, noted
from reader.kinds import is_pdf
from reader.known_text.picture_units import picture_units
from reader.known_text.readings import readings_of
from reader.known_text.text_units import data_units, roles_of, text_units
from reader.known_text.unit import bounded, unit
from reader.page_text.dates import fold
from reader.page_text.references import only, references_in
from reader.page_text.rows import rows_of
from reader.page_text.text import has_text, invoice_from_text, printed
from reader.page_view import check, scan
from reader.page_view.crops import CROPS_MAX, Place, crop, field_places, picture
from reader.page_view.page import Page, View, viewed
from reader.page_view.pdfium import opened, sheets
from reader.page_view.recognise import RecogniserMissingError
from reader.reader import annotated, check_sound, drawn_notes, embedded_files, open_pdf
from reader.reasons import ExtractionError

_BLANK_SCALE: Final = 0.5  # pixels of a point at which a line of text still shows


def answered(
    data: bytes, *, pages_max: int, given: Given | None = None, page: int = 0
) -> Extraction | Picture:
    """What is read of a document; or the picture of a page, counted from 1.

    Raises:
        ExtractionError: as ``read``; DOC-005, there is no such page.
    """
    return drawn(data, page) if page else read(data, pages_max=pages_max, given=given)


def drawn(data: bytes, page: int) -> Picture:
    """The picture of a page, counted from 1.

    Raises:
        ExtractionError: DOC-005, there is no such page; DOC-009, it cannot be drawn.
    """
    with opened(data) as document:
        for number, sheet in enumerate(sheets(document), 1):
            if number == page:
                return picture(sheet)
    raise ExtractionError("DOC-005")


def read(data: bytes, *, pages_max: int, given: Given | None = None) -> Extraction:
    """Read an invoice: its embedded XML if it has one, else its text.

    Embedded XML that cannot be read is an error, not a reason to trust the page. ``given`` is
    what a person says that fields are: it decides where the page leaves a doubt.

    Raises:
        ExtractionError: for every reason but time and memory.
    """
    given = given or {}
    if not is_pdf(data):
        return read_data(data, given)
    reader = open_pdf(data, pages_max=pages_max)
    with viewed(data, reader, check.begin_account) as view:
        extraction = _read(_coded(reader), reader, view, given)
        sizes = tuple((sheet.width, sheet.height) for sheet in view.sheets)
    check_sound(data)
    return replace(extraction, sizes=sizes)


def _with_units(
    found: Extraction, invoices: Sequence[Coded], reader: PdfReader, view: View, given: Given
) -> Extraction:
    """With all that a person has to accept, and with the reference that the page or a code names.

    As it is where no amount was read.

    Raises:
        ExtractionError: DOC-018, more than is looked at.
    """
    if not found.fields.total_due:
        return found
    document = printed(view.shown, given)
    roles = roles_of(document, found.fields)
    beside = [f"Attached file: {each.name}" for each in embedded_files(reader)]
    beside += (text for page in reader.pages for text in annotated(page))
    pale = (each for page in view.shown for each in page.pale)
    beside += (f"Pale text of {each.box.height:.0f} points: {each.text}" for each in pale)
    said = [text for each in invoices for text in (*each.terms, *each.notes, *each.line_notes)]
    said += [f"Payment reference: {text}" for each in invoices for text in each.references]
    pictures, references = picture_units(view.sheets, document, found.fields, roles)
    units = (
        *text_units(document, roles, view.shown),
        *data_units([*said, *beside], roles),
        *pictures,
        *(
            unit("drawing", look, "", page=number)
            for number, page in enumerate(reader.pages, 1)
            for look in drawn_notes(page)
        ),
    )
    if not any(each.references for each in invoices):
        references = references or [r for row in document.rows for r in references_in(row.text)]
        found = replace(found, fields=replace(found.fields, reference=only(references)))
    return replace(found, units=bounded(units))


def _read(invoices: Sequence[Coded], reader: PdfReader, view: View, given: Given) -> Extraction:
    if not invoices and not has_text(view.shown):
        return _scanned(view, given)
    found = _from_xml(invoices, view, given) if invoices else _from_text(view, view.shown, given)
    if view.hides and found.fields.total_due is None:
        hidden = _from_text(view, view.told, given)
        if hidden.fields.total_due is not None:
            hidden = _held(hidden, "hidden_text")  # nobody sees what it says
            return _with_units(hidden, invoices, reader, view, given)
    if found.fields.pay_status == "open":
        check.begin_readings(view.sheets, printed(view.shown, given), found.fields)
    found = _with_units(found, invoices, reader, view, given)
    return _pointable(_checked(found, view, given), view.shown, given)


def _pointable(found: Extraction, pages: Sequence[Page], given: Given) -> Extraction:
    """With the readings of what is missing or in doubt."""
    fields = found.fields
    if fields.pay_status not in ("incomplete", "scanned") and fields.invoice_number:
        return found
    return replace(found, candidates=readings_of(printed(pages, given), fields))


def _scanned(view: View, given: Given) -> Extraction:
    """Pages without visible text, read from their pixels: a person has to confirm what is read.

    Raises:
        ExtractionError: DOC-010, the pages are blank.
    """
    shades = (sheet.drawn(scale=_BLANK_SCALE).getextrema() for sheet in view.sheets)
    if all(darkest == lightest for darkest, lightest in shades):
        raise ExtractionError("DOC-010")
    pages: list[Page] = []
    with suppress(RecogniserMissingError):  # then a person reads it alone
        pages += (scan.read(each, n) for n, each in enumerate(view.sheets[: scan.PAGES_MAX], 1))
    found = _from_text(view, pages, given)
    found = _with_crops(found, view, [*field_places(printed(pages, given), found.fields)])
    if found.fields.pay_status == "open" and "total_due" not in given:
        found = _held(found, "scanned")
    return replace(_pointable(found, pages, given), pages=len(view.sheets))


def _from_text(view: View, pages: Sequence[Page], given: Given) -> Extraction:
    fields, evidence = invoice_from_text(pages, given)
    return Extraction(
        fields=fields,
        evidence=evidence,
        notes=noted([*map(_everything, view.told)]),
        source="text",
        pages=len(pages),
    )


def _checked(found: Extraction, view: View, given: Given) -> Extraction:
    """The extraction, held where its page shows a person something else than its text says."""
    document, due = printed(view.shown, given), found.fields.total_due
    place = check.due_place(document, Decimal(due)) if due else None
    found = _with_crops(found, view, [("amount due", place)] if place else [])
    if found.fields.pay_status != "open":
        return found
    compared = "total_due" in given and (found.source == "text" or not has_text(view.shown))
    if place is None and not compared:  # only the data says so
        return _held(found, "page_and_data_differ" if has_text(view.shown) else "scanned")
    unseen = [
        (page.number, piece.box, piece.text)
        for page in view.shown
        for line in page.unseen
        for piece in line
    ]
    lines = [_words(row.text) for row in document.rows]
    told = [*rows_of(view.told), *document.noted]
    new = [text for _, _, text in unseen if not _repeats(text, lines)]
    if any(map(check.is_field, new)) or check.competes(document, told, found.fields):
        return _with_crops(_held(found, "hidden_text"), view, [("hidden text", e) for e in unseen])
    try:
        other = check.differs(view.sheets, document, found.fields)
        if other:
            return _with_crops(_held(found, "hidden_text"), view, [("shown differently", other)])
    except RecogniserMissingError:
        return _held(found, "unverified")
    return found


def _repeats(text: str, lines: Sequence[str]) -> bool:
    """Whether a text says nothing new: no number, and its words in this order."""
    return not any(map(str.isdigit, text)) and any(_words(text) in line for line in lines)


def _words(text: str) -> str:
    return " {} ".format(" ".join(re.findall(r"[^\W_]+", fold(text))))


def _with_crops(found: Extraction, view: View, places: Sequence[tuple[str, Place]]) -> Extraction:
    room = CROPS_MAX - len(found.crops)
    added = [
        crop(view.sheets[page - 1], page, box, name, text)
        for name, (page, box, text) in places[:room]
    ]
    return replace(found, crops=(*found.crops, *added))


def _held(found: Extraction, hold: str) -> Extraction:
    return replace(found, fields=replace(found.fields, pay_status=status_of(hold), hold=hold))


def _everything(page: Page) -> str:
    return f"{page.plain}\n{page.noted}"


def _from_xml(invoices: Sequence[Coded], view: View, given: Given) -> Extraction:
    shown = view.shown
    coded = invoices[0].completed(given)
    fields, evidence = invoice_from_xml(coded, shown)
    found = Extraction(
        fields=fields,
        evidence=evidence,
        notes=noted([*coded.notes, *coded.terms, *map(_everything, view.told)]),
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
        coded = coded_in(parse(item.data))
        if coded is not None:
            found.append(coded)
    return found
