"""What is read from a document: the typed fields, and where each was found."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, get_args

from reader.known_text.unit import UNITS_MAX, Edges, Unit

_Settled = Literal["paid", "direct_debit", "self_billed", "negative", "correction", "nothing_due"]
_Doubted = Literal["hybrid_mismatch", "ambiguous", "hidden_text", "scanned", "unverified"]
PayStatus = Literal["open", "not_payable_info_only", "incomplete", _Settled, _Doubted]
Source = Literal["xml", "text"]
Pointable = Literal["total_due", "currency", "invoice_number", "seller", "due_date"]
Given = Mapping[str, str]  # what a person says that a field is, by its name
NOTES_CHARS_MAX: Final = 8_000  # what a model may be shown of one document


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where a value was found, without the value: an XML path, or a page and a label.

    ``person``: somebody pointed at it, or typed it.
    """

    source: Literal["xml", "text", "person"]
    path: str | None = None
    page: int | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """The fields of one invoice; None is what the document does not say for certain.

    ``total_due`` is the amount to pay now, not the grand total. Only ``open``
    may be paid; every other ``pay_status`` holds it, and ``hold`` is the reason: a code
    that ``holds`` explains. With an amount it has a currency. ``reference`` is what the supplier
    wants the payment to bear.
    """

    invoice_number: str | None = None
    seller: str | None = None
    seller_address: str | None = None
    seller_email: str | None = None
    buyer: str | None = None
    buyer_address: str | None = None
    payee: str | None = None
    iban: str | None = None
    iban_valid: bool | None = None
    currency: str | None = None
    total_due: str | None = None
    amount_minor: int | None = None
    issue_date: str | None = None
    due_date: str | None = None
    type_code: str | None = None
    reference: str | None = None
    pay_status: PayStatus
    hold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crop:
    """A place on a page: what its text says there, and its picture (PNG in base64)."""

    name: str
    text: str
    page: int
    png: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a field may be, which a person can point at: ``text`` is what is printed at ``box``.

    ``mark`` is a hash of what is printed around the value, so that the same place is found on
    the next invoice of the template. ``box``: left, top, right, bottom in points.
    """

    field: Pointable
    value: str
    text: str
    mark: str
    page: int
    box: Edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A page as a picture: PNG in base64."""

    png: str

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """An invoice, the evidence for it, and the free text beside it.

    ``notes`` is untrusted prose for a model to see. ``units`` are what a person has to accept
    before a program pays, ``candidates`` what fields that were not found may be. ``sizes`` are
    the pages' widths and heights in points.
    """

    fields: Invoice
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    notes: str = ""
    source: Source
    pages: int
    crops: tuple[Crop, ...] = ()
    units: tuple[Unit, ...] = ()
    candidates: tuple[Reading, ...] = ()
    sizes: tuple[tuple[float, float], ...] = ()

    def to_json(self) -> str:
        """One JSON object of strings, integers, booleans and nulls; see ``from_json``."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> "Extraction":
        """The exact inverse of ``to_json``.

        Raises:
            ValueError: when the text is not such an object.
        """
        value = json.loads(text)
        try:
            value.pop("warnings", None)  # of a document that an earlier release staged
            told = value.pop("evidence").items()
            result = cls(
                fields=Invoice(**value.pop("fields")),
                evidence={name: Evidence(**item) for name, item in told},
                crops=tuple(Crop(**item) for item in value.pop("crops")),
                units=tuple(Unit(**_placed(item)) for item in value.pop("units")),
                candidates=tuple(Reading(**_placed(item)) for item in value.pop("candidates", ())),
                sizes=tuple((float(w), float(h)) for w, h in value.pop("sizes", ())),
                **value,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("not an extraction") from error
        _check(result)
        return result


def noted(parts: Sequence[str]) -> str:
    """The prose of a document, as long as a model may be shown."""
    return "\n".join(part.strip() for part in parts if part.strip())[:NOTES_CHARS_MAX]


def _placed(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "box": None if item["box"] is None else tuple(item["box"])}


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "amount_minor": (int, type(None)),
    "iban_valid": (bool, type(None)),
    "pay_status": (str,),
}

_LISTS: Final[dict[str, dict[str, type]]] = {
    "units": {"kind": str, "mark": str, "text": str, "size": float, "page": int, "label": str},
    "crops": {"name": str, "text": str, "page": int, "png": str},
    "candidates": {"field": str, "value": str, "text": str, "mark": str, "page": int},
}


def _check(extraction: Extraction) -> None:
    value: dict[str, Any] = asdict(extraction)
    fields = value["fields"]
    wrong = [
        name
        for name, item in fields.items()
        if not isinstance(item, _TYPES.get(name, (str, type(None))))
    ]
    if wrong or fields["pay_status"] not in get_args(PayStatus):
        raise ValueError(f"not an extraction: {wrong or 'pay_status'}")
    if fields["hold"] is not None and fields["pay_status"] == "open":
        raise ValueError("not an extraction: an open invoice has no reason to hold it")
    if value["source"] not in get_args(Source) or not isinstance(value["pages"], int):
        raise ValueError("not an extraction: source or pages")
    if not isinstance(value["notes"], str) or len(value["notes"]) > NOTES_CHARS_MAX:
        raise ValueError("not an extraction: notes")
    for name, types in _LISTS.items():
        wrong = [n for each in value[name] for n, t in types.items() if type(each[n]) is not t]
        if wrong or len(value[name]) > UNITS_MAX:
            raise ValueError(f"not an extraction: {name}")
    if fields["pay_status"] == "open" and not (fields["amount_minor"] and fields["currency"]):
        raise ValueError("not an extraction: an open invoice has an amount and a currency")
