"""What a run holds of people: the facts as their owner sees them, and where each one lies."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

from engine.models import Secret
from engine.queries.runs import RunHead
from engine.queries.secrets import opened, opened_all
from nanovm_core.core.vault import TOMBSTONE

LABELS = {
    "invoice_number": "Invoice number",
    "seller": "Seller",
    "seller_address": "Seller's address",
    "seller_email": "Seller's e-mail",
    "payee": "Payee",
    "iban": "IBAN",
    "buyer": "Buyer",
    "buyer_address": "Buyer's address",
    "memo": "Memo",
    "notes": "Notes in the document",
    "advice_to": "Advice goes to",
    "advice_subject": "Advice subject",
    "advice_body": "Advice text",
    "file_name": "File name",
    "document": "Uploaded document",
    "crops": "Pictures of places in the document",
    "proposal": "Model's proposal",
    "destination": "Payee's account at Stripe",
    "payment": "Stripe object",
    "staging": "Staging (between two steps)",
}
CLEAR = {
    "total_due": "Total due",
    "currency": "Currency",
    "issue_date": "Issued",
    "due_date": "Due",
    "pay_status": "Payment status",
    "source": "Read from",
    "pages": "Pages",
    "size_bytes": "Size in bytes",
    "payment_method": "Test card",
}
AMOUNT_DUE = "amount due"  # the name of the picture that every invoice with a page has
SHOWN = tuple(LABELS)[:10]  # what the run page shows; the rest is on the privacy page
ON_THE_PAGE = (*SHOWN, "destination", "payment", "file_name", "crops")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactView:
    """One fact of the invoice. ``ref`` is empty where it is no secret."""

    slot: str
    label: str
    value: str
    ref: str
    erased: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CropView:
    """A place in the document: what its text says there, beside its picture."""

    place: int
    name: str
    text: str
    page: int
    png: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredView:
    """One secret and the places it lies in."""

    slot: str
    label: str
    ref: str
    commitment: str
    place: str
    size_bytes: int
    preview: str
    erased_ms: int | None


def values_of(run: RunHead) -> Mapping[str, str]:
    """The secrets that the run's page shows, by slot, opened at once for their owner."""
    refs = {slot: str(run.slots[slot]) for slot in ON_THE_PAGE if run.slots.get(slot)}
    values = opened_all(tuple(refs.values()))
    return {slot: values[ref] for slot, ref in refs.items()}


def facts_of(run: RunHead, values: Mapping[str, str]) -> tuple[FactView, ...]:
    """The invoice as its owner may read it; ``values`` are its opened secrets."""
    slots = run.slots
    secret = [
        FactView(
            slot=slot,
            label=LABELS[slot],
            value=values[slot],
            ref=str(slots[slot]),
            erased=values[slot] == TOMBSTONE,
        )
        for slot in SHOWN
        if slot in values
    ]
    clear = [
        FactView(slot=slot, label=label, value=str(slots[slot]), ref="", erased=False)
        for slot, label in CLEAR.items()
        if slot in slots
    ]
    return (*clear[:4], *secret, *clear[4:])


def crops_of(value: str) -> tuple[CropView, ...]:
    """The pictures in a value that the vault opened; none where it was erased or damaged."""
    try:
        listed = json.loads(value or "[]")
        return tuple(
            CropView(
                place=place,
                name=str(each["name"]),
                text=str(each["text"]),
                page=int(each["page"]),
                png=base64.b64decode(each["png"], validate=True),
            )
            for place, each in enumerate(listed)
        )
    except (ValueError, KeyError, TypeError):  # a tombstone, or bytes that were changed
        return ()


def crop_of(run: RunHead, place: int) -> bytes | None:
    """One of a run's pictures, as PNG; None where there is none."""
    ref = str(run.slots.get("crops", ""))
    crops = crops_of(opened(ref)) if ref else ()
    return next((crop.png for crop in crops if crop.place == place), None)


def file_name_of(run: RunHead) -> str:
    """The uploaded file's name, or the tombstone."""
    ref = run.slots.get("file_name")
    return opened(str(ref)) if ref else ""


def inventory(run: RunHead) -> tuple[StoredView, ...]:
    """Every secret of the run, the destroyed ones too, in the order they were made."""
    rows = Secret.objects.filter(run_id=run.id).order_by("created_ms", "ref")
    return tuple(_stored(row) for row in rows)


def _stored(row: Secret) -> StoredView:
    size = len(row.ciphertext) if row.ciphertext is not None else 0
    return StoredView(
        slot=row.slot,
        label=LABELS.get(row.slot, row.slot),
        ref=row.ref,
        commitment=row.commitment,
        place="encrypted file and key store" if row.file else "database and key store",
        size_bytes=size,
        preview=_preview(row),
        erased_ms=row.erased_ms,
    )


def _preview(row: Secret) -> str:
    if row.erased_ms is not None:
        return TOMBSTONE
    if row.file or row.slot == "document":
        return "the document itself"
    if row.staging:
        return "destroyed by the next step"
    text = " ".join(opened(row.ref).split())
    return text if len(text) <= 120 else text[:119] + "…"
