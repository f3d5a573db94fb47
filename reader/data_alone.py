"""An invoice that is XML and nothing else, such as an XRechnung; runs in the child process only."""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final

from reader.decide import invoice_from_xml
from reader.embedded_xml.dialects import coded_in
from reader.embedded_xml.structured import Coded, amount, iso_date
from reader.embedded_xml.xmltree import Node, parse
from reader.holds import status_of
from reader.invoice import Extraction, Given, Invoice, noted
from reader.known_text.mask import Roles, masked, may_vary
from reader.known_text.text_units import marks_of
from reader.known_text.unit import Unit, bounded, unit
from reader.page_text.labelled import accounts_in
from reader.reasons import ExtractionError

_LINE: Final = "IncludedSupplyChainTradeLineItem"
# What a line sells is not judged, as on a page; of an attached file it is the name.
_SOLD: Final = (
    ("SupplyChainTradeTransaction", _LINE, "SpecifiedTradeProduct"),
    ("SpecifiedSupplyChainTradeTransaction", _LINE, "SpecifiedTradeProduct"),
    ("InvoiceLine", "Item"),
)
_ATTACHED: Final = ("AttachmentBinaryObject", "EmbeddedDocumentBinaryObject")
# What may be any number, day, place in the list or unit (UN/ECE 20); a change of sign is a change.
_NUMBERS: Final = ("Amount", "Quantity", "Percent", "Measure", "Numeric", "Rate")
_DAYS: Final = ("Date", "DateTime", "DateString", "DateTimeString")
_DAY: Final = re.compile(r"[\dT:.+Z-]{8,35}")
_PLACES: Final = ("LineID", "InvoiceLine/ID")
_UNIT_CODE: Final = re.compile(r"[A-Z0-9]{2,3}")
_WHOSE: Final = ("Party", "Account", "Institution")  # what names these is never any name or id
# Where a person may let any text stand (BT-10 to BT-19, and whom to ask), outside the lines.
_VARYING: Final = (
    *("BuyerReference", "AccountingCost", "ReferencedDocument", "ProcuringProject"),
    *("AccountingAccount", "OrderReference", "DocumentReference", "ProjectReference"),
    *("DefinedTradeContact", "Contact"),
)
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")  # begins in an element's name
_SUMS: Final = (("total", "BT-112"), ("net", "BT-109"), ("tax", "BT-110"), ("off", "BT-113"))
_ONCE: Final = ("BT-106", "BT-109", "BT-112")
_AT_MOST_ONCE: Final = ("BT-107", "BT-108", "BT-110", "BT-113", "BT-114")


def read_data(data: bytes, given: Given) -> Extraction:
    """Read an invoice without a page: its codes decide, and all else in it has to be accepted.

    Raises:
        ExtractionError: DOC-015, it is no invoice; else as for data that a PDF carries.
    """
    root = parse(data)
    coded = coded_in(root)
    if coded is None:
        raise ExtractionError("DOC-015")
    coded = coded.completed(given)
    fields, evidence = invoice_from_xml(coded, ())
    hold = "" if fields.hold else _hold(root, coded)
    if hold:
        fields = replace(fields, hold=hold, pay_status=status_of(hold))
    return Extraction(
        fields=fields,
        evidence=evidence,
        notes=noted([*coded.notes, *coded.terms]),
        source="xml",
        pages=0,
        units=bounded(dict.fromkeys(_units(root, _roles(coded, fields)))),
    )


def _hold(root: Node, coded: Coded) -> str:
    """Why data without a page is not payable; empty for no reason.

    No page confirms the amount: all that it is reckoned from has to be there, once.
    """
    counts = {term: len(coded.sums.get(term, ())) for term in (*_ONCE, *_AT_MOST_ONCE)}
    is_whole = (
        all(counts[term] == 1 for term in _ONCE)
        and all(counts[term] <= 1 for term in _AT_MOST_ONCE)
        and bool(coded.numbers and coded.issue_date and coded.sums.get("BT-131"))
        and (len(coded.dues), len(coded.numbers), len(coded.currencies)) == (1, 1, 1)
        and bool(coded.taxes)
        and all(each.base is not None and each.amount is not None for each in coded.taxes)
    )
    if not is_whole:
        return "lacking_data"
    said = {account for _, text in root.strings(_ATTACHED) for account in accounts_in(text)}
    own = {"".join(each.split()).upper() for each in (*coded.ibans, *coded.payer_ibans)}
    return "two_accounts" if said - own else ""


def _units(root: Node, roles: Roles) -> Iterator[Unit]:
    """Every text, number and attribute, each with the names that lead to it."""
    for path, text in root.strings(_ATTACHED):
        inside = path[1:]
        if any(inside[: len(sold)] == sold for sold in _SOLD):
            continue
        said = _said(path, text, roles)
        shown = _WORD.sub(" ", " ".join(path[-2:]))
        is_free = any(name.endswith(_VARYING) for name in path) and _LINE not in path
        place = (
            "/".join(path) if is_free and "InvoiceLine" not in path and may_vary(said, text) else ""
        )
        masked_text = f"⟨data⟩{'/'.join(path)}: {said}"
        yield unit("text", masked_text, f"{shown}: {text}", label=shown, place=place)


def _said(path: tuple[str, ...], text: str, roles: Roles) -> str:
    """What of a value has to be the same each time."""
    name, number = path[-1], amount(text)
    if name.endswith(_NUMBERS) and number is not None:
        return "⟨zero⟩" if number == 0 else "⟨-number⟩" if number < 0 else "⟨number⟩"
    if name.endswith(_DAYS) and iso_date(text) and _DAY.fullmatch(text):
        return "⟨date⟩"
    if "/".join(path).endswith(_PLACES) and text.isdecimal():
        return "⟨place⟩"
    if name == "@unitCode" and _UNIT_CODE.fullmatch(text):
        return "⟨unit⟩"
    if any(whose in name for name in path for whose in _WHOSE):
        return text
    is_reference = any(part.endswith(_VARYING) for part in path)
    return masked(text, roles, sentence=True, within="ref" if is_reference else "")


def _roles(coded: Coded, fields: Invoice) -> Roles:
    sums = [("due", abs(Decimal(fields.total_due or 0)))]
    sums += [(name, abs(coded.sum_of(term))) for name, term in _SUMS if coded.sum_of(term)]
    return Roles(
        sums=sums,
        number=fields.invoice_number,
        every=frozenset(value for _, value in sums),
        marks=marks_of(fields.currency),
    )
