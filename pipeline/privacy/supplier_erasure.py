"""Erasure of a supplier: sealed on its log's own chain, resumable, with a certificate."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from nanovm_core.core.envelope import LOG_RUN
from pipeline.errors import ErasureRefusedError
from pipeline.models import Envelope, Supplier, Workspace
from pipeline.privacy import certificate, crypto_shred, journal
from pipeline.privacy.erasure import REASONS, REPLAYED
from pipeline.register import suppliers, versions
from pipeline.store import records, workspaces
from pipeline.vault.key_store import keystore

REQUESTED, DONE = "erasure_requested", "erasure_done"
KEPT = (
    "envelopes",
    "the register row without its details: code, state, times, who registered it",
    "the values of this supplier in runs: erase those runs too",
    "payment records and the connected account at Stripe",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplierCertificate:
    """What was erased of a supplier, and which envelope seals it. It holds no personal value.

    Its fields are those of a run's certificate; ``supplier`` is named in place of a run.
    ``state`` is done, or incomplete where some place still holds something.
    """

    id: str = ""
    supplier: str
    code: str
    reason: str
    refs: tuple[str, ...]
    places: Mapping[str, object]
    kept: tuple[str, ...] = ()
    state: str = "done"
    head_before: str
    head_after: str = ""
    seq: int = -1
    n: int = -1
    hash: str = ""
    log: str = ""
    chain: str = LOG_RUN
    at_ms: int

    def to_json(self) -> dict[str, object]:
        """The certificate as JSON values."""
        lists = {"refs": list(self.refs), "kept": list(self.kept), "places": dict(self.places)}
        return {"v": "nanovm-erasure/1", **asdict(self), **lists}


def erase_supplier(supplier: Supplier, reason: str, actor: str) -> SupplierCertificate:
    """Erase a supplier's details. Again: what was left, else the same certificate.

    Runs that hold an invoice of the supplier keep their values; they are erased as runs.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none.
    """
    if reason not in REASONS:
        raise ErasureRefusedError("PII-010", f"A reason is one of {', '.join(REASONS)}.")
    return _erase(supplier, reason, actor)


def erase_again(supplier_id: str) -> SupplierCertificate | None:
    """Erase a supplier of the journal once more, where anything of it is there again.

    None where nothing was, or only keys without a row.
    """
    row = Supplier.objects.filter(id=supplier_id).first()
    is_there = row is not None and (row.state != versions.ERASED or row.ciphertext is not None)
    if row is not None and (is_there or is_unfinished(row)):
        return _erase(row, REPLAYED, "restore")
    keystore().destroy_subject(versions.subject(supplier_id))
    return None


def is_unfinished(supplier: Supplier) -> bool:
    """Whether an erasure was begun and some place still held something."""
    return len(_found(supplier, REQUESTED)) > len(_found(supplier, DONE))


def newest(supplier: Supplier) -> SupplierCertificate | None:
    """The supplier's newest certificate; None without one."""
    asked, done = _found(supplier, REQUESTED), _found(supplier, DONE)
    return _certificate(supplier, asked[len(done) - 1], done[-1]) if done else None


def _certificate(supplier: Supplier, request: Envelope, last: Envelope) -> SupplierCertificate:
    body = records.body_of(last.bytes)
    given, out = records.part_of(body, "in"), records.part_of(body, "out")
    if not given or not out:
        raise ErasureRefusedError("PII-011", "The erasure's envelope cannot be read; run fsck.")
    return SupplierCertificate(
        id=last.hash[:32],
        supplier=str(supplier.id),
        code=supplier.code,
        reason=str(given["reason"]),
        refs=certificate.refs_in(body),
        places=out["destroyed"],
        kept=tuple(out["kept"]),
        head_before=str(records.body_of(request.bytes).get("prev", "")),
        head_after=last.hash,
        seq=last.seq,
        n=last.n,
        hash=last.hash,
        log=str(body["log"]),
        at_ms=int(str(body["at_ms"])),
    )


def _erase(supplier: Supplier, reason: str, actor: str) -> SupplierCertificate:
    made = None if is_unfinished(supplier) else newest(supplier)
    row = Supplier.objects.get(id=supplier.id)
    if made is not None and row.state == versions.ERASED and row.ciphertext is None:
        return made
    if not is_unfinished(row):
        with transaction.atomic():
            _seal(row, REQUESTED, _asked(row, reason), {}, actor)
            suppliers.forget(row, actor=actor)
    return _finish(Supplier.objects.get(id=row.id), actor)


def _finish(row: Supplier, actor: str) -> SupplierCertificate:
    """Destroy what a sealed request names, and seal that it is destroyed; the journal is first."""
    request = _found(row, REQUESTED)[-1]
    body = records.body_of(request.bytes)
    asked, refs = records.part_of(body, "in"), certificate.refs_in(body)
    suppliers.forget(row, actor=actor)
    journal.record([*refs, journal.supplier(str(row.id))])
    row = Supplier.objects.select_related("workspace").get(id=row.id)
    keys = suppliers.destroy(row)
    Supplier.objects.filter(id=row.id).update(ciphertext=None)
    places: dict[str, object] = {"keys": keys, "ciphertexts": len(refs)}
    if not crypto_shred.wal_truncated():
        return SupplierCertificate(
            supplier=str(row.id),
            code=row.code,
            reason=str(asked["reason"]),
            refs=refs,
            places={**places, crypto_shred.WAL: crypto_shred.BUSY},
            state="incomplete",
            head_before=str(body.get("prev", "")),
            at_ms=int(str(body["at_ms"])),
        )
    _seal(row, DONE, asked, {"out": {"destroyed": places, "kept": list(KEPT)}}, actor)
    return _certificate(row, request, _found(row, DONE)[-1])


def _asked(row: Supplier, reason: str) -> dict[str, object]:
    return {"refs": [row.ref], "reason": reason, "supplier": str(row.id)}


def _seal(
    row: Supplier, kind: str, asked: Mapping[str, object], out: Mapping[str, object], actor: str
) -> None:
    """Seal on the log's own chain; where a restore closed it, in the log that goes on."""
    with transaction.atomic():
        workspace = records.lock_log(_open_log(row))
        workspaces.seal(workspace, kind, {"in": dict(asked), **out}, actor=actor)


def _open_log(row: Supplier) -> UUID:
    closed = Workspace.objects.values_list("successor_id", flat=True).get(id=row.workspace_id)
    return closed or row.workspace_id


def _found(supplier: Supplier, kind: str) -> list[Envelope]:
    """The envelopes of a kind that seal this supplier's erasures, oldest first."""
    return list(_sealed(_open_log(Supplier.objects.get(id=supplier.id)), str(supplier.id), kind))


def _sealed(log: UUID, supplier_id: str, kind: str) -> Iterator[Envelope]:
    logs = Q(workspace=log) | Q(workspace__successor=log)  # that one, and those before it
    rows = Envelope.objects.filter(logs, run=LOG_RUN, kind=kind)
    for each in rows.order_by("workspace", "seq"):  # a log's id begins with its time of birth
        if records.part_of(records.body_of(each.bytes), "in").get("supplier") == supplier_id:
            yield each
