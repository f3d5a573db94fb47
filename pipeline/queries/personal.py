"""A run's personal data: the facts as their owner sees them, and where each is stored."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.queries.runs import RunHead
from engine.queries.secrets import FactView, open_secret, opened_all
from nanovm_core.core.vault import TOMBSTONE
from pipeline.labels import CLEAR, LABELS, NO_REFERENCE
from pipeline.steps import pointing
from reader import ExtractionError, drawn_in_child

AMOUNT_DUE = "amount due"  # the name of the picture that every invoice with a page has
SHOWN = tuple(LABELS)[:11]  # what the run page shows; the rest is on the privacy page
ON_THE_PAGE = (*SHOWN, "destination", "payment", "file_name", "crops")


@dataclass(frozen=True, slots=True, kw_only=True)
class CropView:
    """A place in the document: what its text says there, beside its picture."""

    place: int
    name: str
    text: str
    page: int
    png: bytes = field(repr=False)


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
    secret = [
        FactView(
            slot=slot,
            label=LABELS[slot],
            value=values[slot],
            ref=str(slots[slot]),
            erased=values[slot] == TOMBSTONE,
        )
        for slot in SHOWN
        if slot in values and values[slot] != NO_REFERENCE
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
    crops = crops_of(open_secret(ref)) if ref else ()
    return next((crop.png for crop in crops if crop.place == place), None)


def file_name_of(run: RunHead) -> str:
    ref = run.slots.get("file_name")
    return open_secret(str(ref)) if ref else ""


def page_of(run: RunHead, number: int) -> bytes | None:
    """A page as PNG, from 1; None where it cannot be drawn. ReaderLostError, as the reader."""
    document = pointing.open_secret(run.slots, "document")
    try:
        return base64.b64decode(drawn_in_child(document, number).png) if document else None
    except ExtractionError:
        return None
