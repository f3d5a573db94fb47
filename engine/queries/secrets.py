"""A run's facts and secrets, opened for their owner, and where each one is stored."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.application import label_of
from engine.models import Envelope, Secret
from engine.queries.runs import RunHead, body_of
from engine.store.records import commitments
from engine.vault import secret_store
from nanovm_core.core.vault import TOMBSTONE
from nanovm_core.errors import VerificationError

DAMAGED = "unreadable: the stored bytes were changed"
COMMENT = "comment"  # what a person said beside a decision; no slot of a program


class FactView(NamedTuple):
    """One fact of a run. ``ref`` is empty where it is no secret."""

    slot: str
    label: str
    value: str
    ref: str
    erased: bool


class StoredView(NamedTuple):
    """One secret and where it is stored."""

    slot: str
    label: str
    ref: str
    commitment: str
    place: str
    size_bytes: int
    preview: str
    erased_ms: int | None


def open_secret(ref: str) -> str:
    """One secret for its owner's page."""
    return opened_all((ref,))[ref]


def opened_all(refs: Sequence[str]) -> dict[str, str]:
    """Secrets for their owner's page: the value, the tombstone, or that it was damaged."""
    try:
        return secret_store.read_all(refs)
    except VerificationError:
        if len(refs) == 1:
            return {refs[0]: DAMAGED}
    return {ref: open_secret(ref) for ref in refs}


def open_inputs(run: RunHead, slots: Sequence[str]) -> dict[str, bytes | None]:
    """What a run was given under these names, from its vault; None for what was erased.

    Raises:
        VerificationError: PII-002, where something of it does not open.
    """
    rows = Secret.objects.filter(run_id=run.id, slot__in=slots).values_list("slot", "ref")
    refs = dict(rows.order_by("-created_ms", "-ref"))  # the first of a name stands
    values = secret_store.read_bytes([*refs.values()])
    return {slot: values[ref] for slot, ref in refs.items()}


def comments_of(run: RunHead) -> dict[int, str]:
    """What people said beside their decisions, by the number of the event that commits to it."""
    refs = [*Secret.objects.filter(run_id=run.id, slot=COMMENT).values_list("ref", flat=True)]
    if not refs:
        return {}
    said, found = opened_all(refs), dict[int, str]()
    kinds = ("resumed", "suspended", "terminal")
    rows = Envelope.objects.filter(workspace_id=run.workspace, run=run.id, kind__in=kinds)
    for n, data in rows.values_list("n", "bytes"):
        for ref in commitments(body_of(data)).keys() & said.keys():
            found[n + 1] = said[ref]
    return found


def inventory(run: RunHead) -> tuple[StoredView, ...]:
    """Every secret of the run, the destroyed ones too, in the order they were made."""
    rows = Secret.objects.filter(run_id=run.id).order_by("created_ms", "ref")
    return tuple(_stored(row) for row in rows)


def _stored(row: Secret) -> StoredView:
    size = len(row.ciphertext) if row.ciphertext is not None else 0
    return StoredView(
        slot=row.slot,
        label=label_of(row.slot),
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
    text = " ".join(open_secret(row.ref).split())
    return text if len(text) <= 120 else text[:119] + "…"
