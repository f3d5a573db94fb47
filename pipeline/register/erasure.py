"""Erasure of a supplier: sealed on its log's own chain, resumable, with a certificate."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet

from engine.errors import ErasureRefusedError
from engine.models import Envelope, Workspace
from engine.privacy import certificate, crypto_shred, erasure_log, journal
from engine.privacy.certificate import Certificate, sealed
from engine.privacy.erasure import REASONS, REPLAYED
from engine.runtime import chains
from engine.store import records
from engine.vault.key_store import keystore
from nanovm_core.core.envelope import LOG_RUN
from pipeline.models import Supplier
from pipeline.register import index, suppliers, versions

KIND = "supplier"  # in the journal, and on the certificate
REQUESTED, DONE = "erasure_requested", "erasure_done"
KEPT = (
    "envelopes",
    "the register row without its details: code, state, times, who registered it",
    "the values of this supplier in runs: erase those runs too",
    "payment records and the connected account at Stripe",
)


def erase_supplier(supplier: Supplier, reason: str, actor: str) -> Certificate:
    """Erase a supplier's details. Again: what was left, else the same certificate.

    Runs that hold an invoice of the supplier keep their values; they are erased as runs.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none.
    """
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")
    return _erase(supplier, reason, actor)


def is_erased(supplier: Supplier, reason: str, actor: str) -> bool:
    """Erase a supplier's details; whether nothing is left of them."""
    return erase_supplier(supplier, reason, actor).state == "done"


def of_visitors(workspace: UUID | OuterRef) -> QuerySet[Supplier]:
    """The suppliers that a visitor registered: the samples' suppliers are nobody's data."""
    found = Supplier.objects.filter(workspace=workspace, is_sample=False)
    return found.exclude(state=versions.ERASED)


def erase_again(supplier_id: str) -> Certificate | None:
    """Erase a supplier of the journal once more, where anything of it is there again.

    None where nothing was, or only keys without a row.
    """
    row = Supplier.objects.filter(id=supplier_id).first()
    is_there = row is not None and (row.state != versions.ERASED or row.ciphertext is not None)
    if row is not None and (is_there or is_unfinished(row)):
        return _erase(row, REPLAYED, "restore")
    keystore().destroy_subject(versions.subject(supplier_id))
    return None


def there_again() -> Iterator[Supplier]:
    """The rows of erased suppliers that a backup brought back."""
    known = sorted(journal.subjects(KIND))
    for start in range(0, len(known), journal.ROWS):
        rows = Supplier.objects.filter(id__in=known[start : start + journal.ROWS])
        there = rows.exclude(state=versions.ERASED, ciphertext=None)
        yield from there.select_related("workspace").order_by("id")


def all_again() -> tuple[str, ...]:
    """Erase every supplier of the journal once more; the places that still hold one, in words."""
    left: list[str] = []
    for each in sorted(journal.subjects(KIND)):
        made = erase_again(each)
        if made is not None and made.state != "done":
            left += [
                f"supplier {made.code}: {place}: {said}" for place, said in made.places.items()
            ]
    for closed in Workspace.objects.exclude(successor=None):
        index.sweep(closed)
    return (*left,)


def is_unfinished(supplier: Supplier) -> bool:
    """Whether an erasure was begun and some place still held something."""
    return len(_found(supplier, REQUESTED)) > len(_found(supplier, DONE))


def newest(supplier: Supplier) -> Certificate | None:
    """The supplier's newest certificate; None without one."""
    asked, done = _found(supplier, REQUESTED), _found(supplier, DONE)
    return sealed(KIND, supplier, asked[len(done) - 1], done[-1]) if done else None


def _erase(supplier: Supplier, reason: str, actor: str) -> Certificate:
    made = None if is_unfinished(supplier) else newest(supplier)
    row = Supplier.objects.get(id=supplier.id)
    if made is not None and row.state == versions.ERASED and row.ciphertext is None:
        return made
    if not is_unfinished(row):
        with transaction.atomic():
            _seal(row, REQUESTED, _asked(row, reason), {}, actor)
            suppliers.forget(row, actor=actor)
    return _finish(Supplier.objects.get(id=row.id), actor)


def _finish(row: Supplier, actor: str) -> Certificate:
    """Destroy what a sealed request names, and seal that it is destroyed; the journal is first."""
    request = _found(row, REQUESTED)[-1]
    body = records.body_of(request.bytes)
    asked, refs = records.part_of(body, "in"), certificate.refs_in(body)
    suppliers.forget(row, actor=actor)
    journal.record([*refs, journal.line_of(KIND, str(row.id))])
    row = Supplier.objects.select_related("workspace").get(id=row.id)
    keys = suppliers.destroy(row)
    Supplier.objects.filter(id=row.id).update(ciphertext=None)
    places: dict[str, object] = {"keys": keys, "ciphertexts": len(refs)}
    if not crypto_shred.wal_truncated():
        return Certificate(
            of=KIND,
            subject=str(row.id),
            code=row.code,
            reason=str(asked["reason"]),
            refs=refs,
            places={**places, crypto_shred.WAL: crypto_shred.BUSY},
            state="incomplete",
            head_before=str(body.get("prev", "")),
            chain=LOG_RUN,
            at_ms=int(str(body["at_ms"])),
        )
    _seal(row, DONE, asked, {"out": {"destroyed": places, "kept": list(KEPT)}}, actor)
    return sealed(KIND, row, request, _found(row, DONE)[-1])


def _asked(row: Supplier, reason: str) -> dict[str, object]:
    return {"refs": [row.ref], "reason": reason, "supplier": str(row.id)}


def _seal(
    row: Supplier, kind: str, asked: Mapping[str, object], out: Mapping[str, object], actor: str
) -> None:
    """Seal on the log's own chain; where a restore closed it, in the log that goes on."""
    chains.seal(_open_log(row), kind, {"in": dict(asked), **out}, actor=actor)


def _open_log(row: Supplier) -> UUID:
    closed = Workspace.objects.values_list("successor_id", flat=True).get(id=row.workspace_id)
    return closed or row.workspace_id


def _found(supplier: Supplier, kind: str) -> list[Envelope]:
    """The envelopes of a kind that seal this supplier's erasures, oldest first."""
    log = _open_log(Supplier.objects.get(id=supplier.id))
    return [*erasure_log.on_the_logs_chain(log, [kind], supplier=str(supplier.id))]
