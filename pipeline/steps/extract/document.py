"""One document from bytes to fields; runs in the child process only."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pypdf import PdfReader

from pipeline.steps.extract.decide import invoice_from_xml
from pipeline.steps.extract.embedded_xml.cii import is_cii, read_cii
from pipeline.steps.extract.embedded_xml.structured import Coded
from pipeline.steps.extract.embedded_xml.ubl import is_ubl, read_ubl
from pipeline.steps.extract.embedded_xml.xmltree import looks_like_xml, parse
from pipeline.steps.extract.invoice import NOTES_CHARS_MAX, Extraction
from pipeline.steps.extract.page_text.text import invoice_from_text
from pipeline.steps.extract.reader import (
    Page,
    check_sound,
    embedded_files,
    open_pdf,
    pages,
)
from pipeline.steps.extract.reasons import ExtractionError

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
    extraction = _read(open_pdf(data, pages_max=pages_max))
    check_sound(data)
    return extraction


def _read(reader: PdfReader) -> Extraction:
    invoices = _coded(reader)
    if not invoices:
        shown = pages(reader)
        fields, evidence = invoice_from_text(shown)
        notes = _bounded([page.plain for page in shown])
        return Extraction(
            fields=fields, evidence=evidence, notes=notes, source="text", pages=len(shown)
        )
    return _from_xml(invoices, pages(reader))


def _from_xml(invoices: Sequence[Coded], shown: Sequence[Page]) -> Extraction:
    coded = invoices[0]
    fields, evidence, warnings = invoice_from_xml(coded, shown)
    others = {(item.numbers, item.dues, item.currencies, item.ibans) for item in invoices}
    if len(others) > 1 and fields.pay_status == "open":
        fields = replace(fields, pay_status="ambiguous")
    return Extraction(
        fields=fields,
        evidence=evidence,
        notes=_bounded([*coded.notes, *coded.terms, *(page.plain for page in shown)]),
        source="xml",
        pages=len(shown),
        warnings=warnings,
    )


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
