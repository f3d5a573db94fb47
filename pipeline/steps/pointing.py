"""What a person says that fields of a held invoice are, and the places remembered for it."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from engine.models import Workspace
from engine.vault import secret_store
from nanovm_core.core.messages import Scalar
from pipeline.register import suppliers
from pipeline.register.details import Details, DetailsError, is_plain_line
from pipeline.steps.reasons import REASONS
from reader import Extraction
from reader.currencies import DECIMALS
from reader.invoice import Invoice, Reading
from reader.page_text.amounts import amounts_in
from reader.page_text.dates import first_date

SLOT: Final = "pointed"
AMOUNT_MAX: Final = 10**12  # as much as Stripe takes in one payment, in units
PICKED_CHARS: Final = 6
_AMOUNT: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,2})?")
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
class Statement:
    """What a person said: values by field, and the marks of the places that they pointed at."""

    values: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    def after(self, before: "Statement") -> "Statement":
        """With what was said before of other fields."""
        marks = {name: mark for name, mark in before.marks.items() if name not in self.values}
        return Statement(values={**before.values, **self.values}, marks={**marks, **self.marks})

    def to_bytes(self) -> bytes:
        return json.dumps({"values": dict(self.values), "marks": dict(self.marks)}).encode()


def may_be_asked(fields: Invoice) -> bool:
    """Whether a person may have to say what a field is."""
    return fields.pay_status in ("incomplete", "scanned") or not fields.invoice_number


def fields_asked(extraction: Extraction) -> dict[str, str]:
    """The fields that a person is asked for, with what was read of each without a doubt."""
    fields = extraction.fields
    if extraction.source == "xml" or fields.pay_status == "open":  # nobody changes the rest
        return {name: "" for name in ("seller", "invoice_number") if not getattr(fields, name)}
    read = {name: getattr(fields, name) or "" for name in NAMES}
    return read | ({"total_due": ""} if fields.hold in DOUBTFUL else {})


def said_of(extraction: Extraction, form: Mapping[str, str]) -> Statement:
    """What a form says: ``pick_<field>`` is the number of a reading, else ``value_<field>`` counts.

    What it leaves out is as it was read.

    Raises:
        DetailsError: HLD-…, a value is missing or is none.
    """
    values, marks = dict[str, str](), dict[str, str]()
    if extraction.source == "xml" and extraction.fields.total_due:
        values["total_due"] = extraction.fields.total_due  # compared with the picture
    for name, read in fields_asked(extraction).items():
        value = form.get(f"value_{name}", read).strip()
        places = [each for each in extraction.candidates if each.field == name]
        picked = form.get(f"pick_{name}", "")
        if picked.isdecimal() and len(picked) < PICKED_CHARS:
            numbered = enumerate(extraction.candidates)
            places = [each for number, each in numbered if number == int(picked)]
            value = next((each.value for each in places if each.field == name), "")
        values[name] = _checked(name, value)
        here = {each.mark for each in places if each.value == values[name]}
        if len(here) == 1:
            marks[name] = here.pop()
    if "total_due" in values and "currency" in values:
        coin = Decimal(1).scaleb(-DECIMALS[values["currency"]])
        if Decimal(values["total_due"]) % coin:
            raise _refused("HLD-001")
    if "total_due" in marks and "currency" in values:
        marks["currency"] = marks["total_due"]  # it is the currency of what stands there
    return Statement(values=values, marks=marks)


def _refused(code: str) -> DetailsError:
    return DetailsError(code, REASONS[code].sentence)


def _checked(name: str, value: str) -> str:
    """A value in the form that it is stored in; people write it as it is printed."""
    code, form = FORMS[name]
    if not value and name not in NEEDED:
        return ""
    found = form(value) if is_plain_line(value) else ""
    if not found:
        raise _refused(code)
    return found


def _amount(value: str) -> str:
    readings = {abs(each) for amount in amounts_in.__wrapped__(value) for each in amount.readings}
    if _AMOUNT.fullmatch(value):
        readings = {Decimal(value)}
    found = readings.pop() if len(readings) == 1 and "-" not in value else Decimal(0)
    return f"{found:f}" if 0 < found < AMOUNT_MAX else ""


FORMS: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "total_due": ("HLD-001", _amount),
    "currency": ("HLD-002", lambda value: value.upper() if value.upper() in DECIMALS else ""),
    "seller": ("HLD-003", str.strip),
    "invoice_number": ("HLD-004", str.strip),
    "due_date": ("HLD-005", lambda value: first_date(value, "dmy") or ""),
}


def is_filled(extraction: Extraction, form: Mapping[str, str]) -> bool:
    """Whether a form says anything of what is asked."""
    names = [f"{kind}_{name}" for name in fields_asked(extraction) for kind in ("value", "pick")]
    return any(form.get(name, "").strip() for name in names)


def heard(slots: Mapping[str, Scalar]) -> Statement:
    """What a person said of a run's invoice; nothing once it is erased."""
    value = secret_store.opened_slot(slots, SLOT)
    found: dict[str, Any] = json.loads(value) if value else {}
    return Statement(**found)


def overrides(
    workspace: Workspace, extraction: Extraction, slots: Mapping[str, Scalar]
) -> dict[str, str]:
    """What decides in place of the page, by field; nothing where it was read so before.

    What a person said goes before what is remembered.
    """
    fields, evidence = extraction.fields, extraction.evidence
    said = [name for name in NAMES if name in evidence and evidence[name].source == "person"]
    read = {name: getattr(fields, name) or "" for name in said}
    values = {**read, **_remembered(workspace, extraction), **heard(slots).values}
    return values if values.items() - read.items() else {}


def _remembered(workspace: Workspace, extraction: Extraction) -> dict[str, str]:
    """The fields at places that a person pointed at, of a supplier whom the invoice names."""
    fields, readings = extraction.fields, extraction.candidates
    seller = fields.payee or fields.seller or ""
    names = [seller, *(each.value for each in readings if each.field == "seller")]
    for name in dict.fromkeys(names) if readings else ():
        entry = suppliers.find(workspace, Details(name=name).identities())
        found = entry.details.known.given(readings) if entry else {}
        if entry and name in (seller, found.get("seller")):
            unsure = {"seller", *(each for each in found if getattr(fields, each) is None)}
            unsure |= {"total_due"} if fields.hold in DOUBTFUL else set()
            return {each: found[each] for each in found if each in unsure}
    return {}


def remembering(details: Details, said: Statement) -> Details:
    """With the places that a person pointed at, as those of their fields."""
    fixed = {"currency": said.values.get("currency", "")}
    places = ((name, mark, fixed.get(name, "")) for name, mark in said.marks.items())
    return replace(details, known=details.known.with_places(places))


def listed(readings: tuple[Reading, ...]) -> dict[str, list[str]]:
    """The readings' values by field, each once."""
    return {
        name: [*dict.fromkeys(each.value for each in readings if each.field == name)]
        for name in dict.fromkeys(each.field for each in readings)
    }
