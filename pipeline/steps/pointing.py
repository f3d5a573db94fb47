"""What a person says that fields of a held invoice are, and the places remembered for it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final

from engine.models import Workspace
from engine.vault import secret_store
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import VerificationError
from pipeline.register import suppliers
from pipeline.register.details import Details, DetailsError, is_plain_line
from pipeline.register.known_text import KnownText
from reader import Extraction
from reader.currencies import DECIMALS
from reader.invoice import Evidence, Invoice, Reading

SLOT: Final = "pointed"
_AMOUNT: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,4})?")
NAMES: Final = {
    "total_due": "the amount to pay",
    "currency": "the currency",
    "seller": "the supplier",
    "invoice_number": "the invoice number",
    "due_date": "the due date",
}
NEEDED: Final = ("total_due", "currency", "seller")
DOUBTFUL: Final = ("net_only", "two_amounts_due", "unclear_amount", "two_readings")  # amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a person said: values by field, and the marks of the places that they pointed at."""

    values: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """One JSON object."""
        return json.dumps({"values": dict(self.values), "marks": dict(self.marks)}).encode()


def may_be_asked(fields: Invoice) -> bool:
    """Whether a person may have to say what a field is."""
    return fields.pay_status in ("incomplete", "scanned") or not fields.invoice_number


def asked(extraction: Extraction) -> dict[str, str]:
    """The fields that a person is asked for, with what was read of each without a doubt."""
    fields = extraction.fields
    if extraction.source == "xml" or fields.pay_status == "open":  # nobody changes the rest
        return {name: "" for name in ("seller", "invoice_number") if not getattr(fields, name)}
    read = {name: getattr(fields, name) or "" for name in NAMES}
    return read | ({"total_due": ""} if fields.hold in DOUBTFUL else {})


def said_of(extraction: Extraction, form: Mapping[str, str]) -> Said:
    """What a form says: ``pick_<field>`` is the number of a reading, else ``value_<field>`` counts.

    What it leaves out is as it was read.

    Raises:
        DetailsError: HLD-001, a value is missing or is none.
    """
    values, marks = dict[str, str](), dict[str, str]()
    if extraction.source == "xml" and extraction.fields.total_due:
        values["total_due"] = extraction.fields.total_due  # compared with the picture
    for name, read in asked(extraction).items():
        value = form.get(f"value_{name}", read).strip()
        places = [each for each in extraction.candidates if each.field == name]
        picked = form.get(f"pick_{name}", "")
        if picked.isdecimal():
            numbered = enumerate(extraction.candidates)
            places = [each for number, each in numbered if number == int(picked)]
            value = next((each.value for each in places if each.field == name), "")
        here = {each.mark for each in places if each.value == value}
        values[name] = _checked(name, value)
        if len(here) == 1:
            marks[name] = here.pop()
    if "total_due" in marks and "currency" in values:
        marks["currency"] = marks["total_due"]  # it is the currency of what stands there
    return Said(values=values, marks=marks)


def _checked(name: str, value: str) -> str:
    text = ""
    if not value:
        text = "is missing: point at it, or type it" if name in NEEDED else ""
    elif not is_plain_line(value):
        text = "is longer than a line, or has a control character"
    elif name == "total_due" and not (_AMOUNT.fullmatch(value) and Decimal(value)):
        text = "is no amount: write digits, with a point before the decimals"
    elif name == "currency" and value not in DECIMALS:
        text = "is no currency: write its three letters, such as EUR"
    elif name == "due_date" and not _is_day(value):
        text = "is no date: write year-month-day"
    if text:
        said = NAMES[name]
        raise DetailsError("HLD-001", f"{said[0].upper()}{said[1:]} {text}.")
    return value


def _is_day(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def heard(slots: Mapping[str, Scalar]) -> Said:
    """What a person said of a run's invoice; nothing once it is erased."""
    ref = str(slots.get(SLOT, ""))
    try:
        value = secret_store.read_bytes([ref])[ref] if ref else None
    except VerificationError:
        value = None
    found: dict[str, Any] = json.loads(value) if value else {}
    return Said(**found)


def given(
    workspace: Workspace, extraction: Extraction, slots: Mapping[str, Scalar]
) -> dict[str, str]:
    """What decides in place of the page, by field; nothing where it was read so before.

    What a person said goes before what is remembered.

    Raises:
        VerificationError: PII-002, where the register is not as the log says.
    """
    fields, evidence = extraction.fields, extraction.evidence
    read = {name: getattr(fields, name) or "" for name in NAMES if _is_given(evidence.get(name))}
    values = {**read, **_remembered(workspace, extraction), **heard(slots).values}
    return values if values.items() - read.items() else {}


def _is_given(evidence: Evidence | None) -> bool:
    return evidence is not None and evidence.source == "person"


def _remembered(workspace: Workspace, extraction: Extraction) -> dict[str, str]:
    """The fields that stand at places which a person pointed at on the supplier's invoices."""
    for name, details in _suppliers(workspace, extraction) if extraction.candidates else ():
        found = details.known.given(extraction.candidates)
        if name in (_seller(extraction), found.get("seller")):
            return found
    return {}


def _seller(extraction: Extraction) -> str:
    return extraction.fields.payee or extraction.fields.seller or ""


def _suppliers(workspace: Workspace, extraction: Extraction) -> Iterator[tuple[str, Details]]:
    """The registered suppliers that an invoice names: as its seller, or anywhere."""
    names = [each.value for each in extraction.candidates if each.field == "seller"]
    for name in dict.fromkeys([_seller(extraction), *names]):
        entry = suppliers.find(workspace, Details(name=name).identities())
        if entry is not None and entry.details is not None:
            yield name, entry.details


def remembering(known: KnownText, said: Said) -> KnownText:
    """With the places that a person pointed at, as those of their fields."""
    fixed = {"currency": said.values.get("currency", "")}
    return known.with_places((name, mark, fixed.get(name, "")) for name, mark in said.marks.items())


def completed(fields: Invoice, said: Said) -> Invoice:
    """The fields with the supplier whom a person named."""
    return replace(fields, seller=said.values.get("seller") or fields.seller)


def listed(readings: tuple[Reading, ...]) -> dict[str, list[str]]:
    """The readings' values by field, each once."""
    return {
        name: [*dict.fromkeys(each.value for each in readings if each.field == name)]
        for name in dict.fromkeys(each.field for each in readings)
    }
