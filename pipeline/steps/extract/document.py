"""One document from bytes to fields; runs in the child process only."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from pypdf import PdfReader

from pipeline.steps.extract.decide import invoice_from_xml
from pipeline.steps.extract.embedded_xml.cii import is_cii, read_cii
from pipeline.steps.extract.embedded_xml.structured import Coded
from pipeline.steps.extract.embedded_xml.ubl import is_ubl, read_ubl
from pipeline.steps.extract.embedded_xml.xmltree import looks_like_xml, parse
from pipeline.steps.extract.holds import status_of
from pipeline.steps.extract.invoice import NOTES_CHARS_MAX, Extraction
from pipeline.steps.extract.page_text.text import invoice_from_text, printed
from pipeline.steps.extract.page_view.check import differs
from pipeline.steps.extract.page_view.page import Page, View, viewed
from pipeline.steps.extract.page_view.recognise import RecogniserMissingError
from pipeline.steps.extract.reader import check_sound, embedded_files, open_pdf
from pipeline.steps.extract.reasons import ExtractionError

_FACTS: Final = ("invoice_number", "seller", "payee", "iban", "currency", "amount_minor")
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
    try:
        found = _from_text(view, view.shown)
    except ExtractionError:
        if not view.hides:
            raise
        return _held(_from_text(view, view.told), "hidden_text")  # nobody sees what it says
    if view.hides and _competes(found, view):
        return _held(found, "hidden_text")
    return _checked(found, view)


def _from_text(view: View, pages: Sequence[Page]) -> Extraction:
    fields, evidence = invoice_from_text(pages)
    return Extraction(
        fields=fields,
        evidence=evidence,
        notes=_bounded([*map(_everything, view.told)]),
        source="text",
        pages=len(pages),
    )


def _competes(found: Extraction, view: View) -> bool:
    """Whether the pages with their hidden text would be read as another invoice."""
    try:
        told = invoice_from_text(view.told)[0]
    except ExtractionError:
        return True
    return any(getattr(told, name) != getattr(found.fields, name) for name in _FACTS)


def _checked(found: Extraction, view: View) -> Extraction:
    """The extraction, held where the pixels of its page say something else than its text."""
    if found.fields.pay_status != "open":
        return found
    due = Decimal(found.fields.total_due)
    try:
        other = differs(view.sheets, printed(view.shown), due, found.fields.iban)
    except RecogniserMissingError:
        return _held(found, "unverified")
    return _held(found, "hidden_text") if other else found


def _held(found: Extraction, hold: str) -> Extraction:
    return replace(found, fields=replace(found.fields, pay_status=status_of(hold), hold=hold))


def _everything(page: Page) -> str:
    return f"{page.plain}\n{page.noted}"


def _from_xml(invoices: Sequence[Coded], view: View) -> Extraction:
    shown = view.shown
    coded = invoices[0]
    fields, evidence, warnings = invoice_from_xml(coded, shown)
    found = Extraction(
        fields=fields,
        evidence=evidence,
        notes=_bounded([*coded.notes, *coded.terms, *map(_everything, view.told)]),
        source="xml",
        pages=len(shown),
        warnings=warnings,
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
