"""A run's personal data: the facts as their owner sees them, and where each is stored."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.queries.runs import RunHead
from engine.queries.secrets import FactView, open_secret, opened_all
from engine.vault.secret_store import opened_slot
from nanovm_core.core.vault import TOMBSTONE
from pipeline.labels import CLEAR, LABELS, NO_REFERENCE
from reader import ExtractionError, drawn_in_child
from reader.invoice import Crop

AMOUNT_DUE = "amount due"  # the name of the picture that every invoice with a page has
SHOWN = tuple(LABELS)[:11]  # what the run page shows; the rest is on the privacy page
ON_THE_PAGE = (*SHOWN, "destination", "payment", "file_name", "crops")


@dataclass(frozen=True, slots=True, kw_only=True)
class CropView(Crop):
    """A place in the document, by its number: what its text says there, beside its picture."""

    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Personal:
    """The opened secrets by slot; of them the invoice's facts, and its places on the page."""

    values: Mapping[str, str]
    facts: tuple[FactView, ...]
    crops: tuple[CropView, ...]

    @property
    def file_name(self) -> str:
        """The uploaded file's name, or the tombstone; empty before there is one."""
        return self.values.get("file_name", "")


def of_run(run: RunHead) -> Personal:
    """What the run's page shows of its secrets, opened at once for their owner."""
    refs = {slot: str(run.slots[slot]) for slot in ON_THE_PAGE if run.slots.get(slot)}
    opened = opened_all(tuple(refs.values()))
    values = {slot: opened[ref] for slot, ref in refs.items()}
    crops = crops_of(values.get("crops", ""))
    return Personal(values=values, facts=_facts(run.slots, values), crops=crops)


def _facts(slots: Mapping[str, Any], values: Mapping[str, str]) -> tuple[FactView, ...]:
    clear = [slot for slot in CLEAR if slot in slots]
    secret = [slot for slot in SHOWN if values.get(slot, NO_REFERENCE) != NO_REFERENCE]
    return tuple(
        FactView(
            slot=slot,
            label={**LABELS, **CLEAR}[slot],
            value=values.get(slot, str(slots[slot])),
            ref=str(slots[slot]) if slot in values else "",
            erased=values.get(slot) == TOMBSTONE,
        )
        for slot in (*clear[:4], *secret, *clear[4:])
    )


def crops_of(value: str) -> tuple[CropView, ...]:
    """The pictures in a value that the vault opened; none where it was erased or damaged."""
    try:
        listed = enumerate(json.loads(value or "[]"))
        return tuple(CropView(place=place, **each) for place, each in listed)
    except (ValueError, TypeError):  # a tombstone, or bytes that were changed
        return ()


def crop_of(run: RunHead, place: int) -> bytes | None:
    """One of a run's pictures, as PNG; None where there is none."""
    crops = crops_of(open_secret(str(run.slots.get("crops", ""))))
    return base64.b64decode(crops[place].png) if place < len(crops) else None


def page_of(run: RunHead, number: int) -> bytes | None:
    """A page as PNG, from 1; None where it cannot be drawn. ReaderLostError, as the reader."""
    document = opened_slot(run.slots, "document")
    try:
        return base64.b64decode(drawn_in_child(document, number).png) if document else None
    except ExtractionError:
        return None
