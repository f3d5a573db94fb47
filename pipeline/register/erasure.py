"""Erasure of a supplier's details, sealed on its log's own chain, with a certificate."""

from collections.abc import Iterator
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet

from engine.models import Workspace
from engine.privacy import crypto_shred, erasable, journal
from engine.privacy.certificate import Certificate
from engine.privacy.erasable import REPLAYED, REQUESTED, Erasable, Refs
from engine.vault.key_store import keystore
from pipeline.models import Supplier
from pipeline.register import index, suppliers, versions

KIND = "supplier"  # in the journal, and on the certificate
KEPT = (
    "envelopes",
    "the register row without its details: code, state, times, who registered it",
    "the values of this supplier in runs: erase those runs too",
    "payment records and the connected account at Stripe",
)


class SupplierDetails(Erasable):
    """The details of a supplier, every version of them."""

    of = KIND
    kept = KEPT
    row: Supplier

    def hide(self, refs: Refs, reason: str, actor: str) -> None:
        with transaction.atomic():
            self.seal(REQUESTED, refs, reason, actor)
            suppliers.forget(self.row, actor=actor)

    def lines(self, refs: Refs) -> list[str]:
        """The version, and the supplier: a backup may bring another version back."""
        return [*refs, journal.line_of(KIND, str(self.row.id))]

    def destroy(self, refs: Refs, actor: str) -> tuple[dict[str, int], dict[str, str]]:
        row = suppliers.forget(self.row, actor=actor)
        keys = suppliers.destroy(row)
        Supplier.objects.filter(id=row.id).update(ciphertext=None)
        left = {} if crypto_shred.wal_truncated() else {crypto_shred.WAL: crypto_shred.BUSY}
        return {"keys": keys, "ciphertexts": len(refs)}, left


def erase_supplier(supplier: Supplier, reason: str, actor: str) -> Certificate:
    """Erase a supplier's details. Again: what was left, else the same certificate.

    Runs that hold an invoice of the supplier keep their values; they are erased as runs.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none.
    """
    erasable.require_ground(reason)
    return _erase(supplier, reason, actor)


def of_visitors(workspace: UUID | OuterRef) -> QuerySet[Supplier]:
    """The suppliers that a visitor registered: the samples' suppliers are nobody's data."""
    found = Supplier.objects.filter(workspace=workspace, is_sample=False)
    return found.exclude(state=versions.ERASED)


def erase_again(supplier_id: str) -> Certificate | None:
    """Erase a supplier of the journal once more; None where none of it but keys was there."""
    row = Supplier.objects.filter(id=supplier_id).first()
    if row and (row.state != versions.ERASED or row.ciphertext is not None or is_unfinished(row)):
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
            places = made.places.items()
            left += [f"supplier {made.code}: {place}: {said}" for place, said in places]
    for closed in Workspace.objects.exclude(successor=None):
        index.sweep(closed)
    return (*left,)


def is_unfinished(supplier: Supplier) -> bool:
    """Whether an erasure was begun and some place still held something."""
    return erasable.pending(SupplierDetails(supplier)) is not None


def newest(supplier: Supplier) -> Certificate | None:
    return erasable.newest(SupplierDetails(supplier))


def _erase(supplier: Supplier, reason: str, actor: str) -> Certificate:
    row = Supplier.objects.get(id=supplier.id)
    details = SupplierDetails(row)
    finished = erasable.finish_pending(details, actor)
    if finished is not None:
        return finished
    made = erasable.newest(details)
    if made is not None and row.state == versions.ERASED and row.ciphertext is None:
        return made
    return erasable.erase(details, (row.ref,), reason, actor)
