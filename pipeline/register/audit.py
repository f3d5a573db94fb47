"""The audit of the register: suppliers, indexes and claims, against what the log commits to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.damage import RESTORE, Damage
from engine.models import Run, Workspace
from engine.store import records
from engine.vault.key_store import keystore
from nanovm_core.core.envelope import LOG_RUN, Stored, canonical_hash
from nanovm_core.core.vault import commit
from nanovm_core.errors import VerificationError
from pipeline.models import Bill, Register, Supplier, SupplierIndex
from pipeline.register import bills, erasure, index, versions
from pipeline.register.details import Details

CHUNK = 500  # rows in memory at a time, and keys that are asked for at once
EDITED, MISSING = "PII-002", "PII-003"
TOOL, STEP = "vault.split", "vault"  # what claims; until its result is sealed, a claim is alone


def supplier_damage(workspace: Workspace) -> Iterator[Damage]:
    """Rows that are not the versions that were sealed last, do not open, or are found wrongly."""
    sealed = {each.id: each for each in versions.sealed_versions(workspace)}  # the newest of each
    audit = _Audit(workspace, sealed, _index_key(workspace), _index_rows(workspace))
    seen: set[str] = set()
    rows = Supplier.objects.filter(workspace=workspace).order_by("id").iterator(CHUNK)
    while some := [*islice(rows, CHUNK)]:
        seen |= {str(each.id) for each in some}
        keys = _keys([each.ref for each in some if each.state != versions.ERASED])
        for row in some:
            yield from audit.of_row(row, keys.get(row.ref))
    yield from audit.without_row(seen)
    yield from audit.stray_indexes(seen)


def undone() -> Iterator[Damage]:
    """Suppliers that the journal says were erased, and that are there again."""
    for row in erasure.there_again():
        text = f"Erased, and there again: supplier {row.id}. {RESTORE}"
        yield Damage(row.workspace.origin, LOG_RUN, row.sealed_n, "PII-013", text)


@dataclass(frozen=True, slots=True)
class _Audit:
    """One workspace's register, and what its log says of it."""

    workspace: Workspace
    sealed: Mapping[str, versions.Sealed]
    index_key: bytes | None
    indexed: Mapping[str, set[tuple[str, str]]]  # kind and value, by supplier

    def of_row(self, row: Supplier, key: bytes | None) -> Iterator[Damage]:
        """What is bad about a row."""
        said = self.sealed.get(str(row.id))
        if said is None:
            yield self._bad(row.sealed_n, EDITED, f"Supplier {row.id} was never sealed.")
        elif row.state == versions.ERASED:
            if said.state != versions.ERASED:
                text = f"supplier {row.id} reads as erased, and no erasure is sealed for it."
                yield self._missing(said.n, text)
        elif (row.ref, row.commitment, row.state) != said[2:] or row.sealed_n != said.n:
            text = f"The row of supplier {row.id} is not the version that was sealed last."
            yield self._bad(said.n, EDITED, text)
        elif key is None or row.ciphertext is None:
            text = f"supplier {row.id} is gone and no erasure is sealed for it."
            yield self._missing(said.n, text)
        else:
            yield from self._opened(row, key, said)

    def _opened(self, row: Supplier, key: bytes, said: versions.Sealed) -> Iterator[Damage]:
        text = f"The commitment of supplier {row.id} is not its details'."
        try:
            r, value = versions.opening(self.workspace, row, key)
            details = (
                Details.from_bytes(value) if commit(r, row.ref, value) == said.commitment else None
            )
        except (VerificationError, ValueError, TypeError):
            details = None
        if details is None:
            yield self._bad(said.n, EDITED, text)
            return
        if self.index_key is None:
            text = f"supplier {row.id} cannot be found: the key of the index is gone."
            yield self._missing(said.n, text)
            return
        due = {
            (kind, index.blind(self.index_key, kind, each))
            for kind, each in details.indexed().items()
        }
        odd = self.indexed.get(str(row.id), set()) ^ due
        if {each for each in odd if each[0] != "iban"} or odd - due:  # or of an earlier release
            text = f"The index rows of supplier {row.id} are not those of its details."
            yield self._bad(said.n, EDITED, text)

    def without_row(self, seen: set[str]) -> Iterator[Damage]:
        """Suppliers that were sealed and have no row: neither erased nor taken over by a log."""
        gone = {name: said for name, said in self.sealed.items() if name not in seen}
        over = set[str]()
        if self.workspace.successor_id is not None:
            there = Supplier.objects.filter(workspace=self.workspace.successor_id)
            over = set(map(str, there.values_list("id", flat=True)))
        for name, said in gone.items():
            if said.state != versions.ERASED and name not in over:
                text = f"supplier {name} has no row and no erasure is sealed for it."
                yield self._missing(said.n, text)

    def stray_indexes(self, seen: set[str]) -> Iterator[Damage]:
        """Index rows that lead to a supplier of another workspace, to an erased one, or nowhere."""
        alive = {name for name, said in self.sealed.items() if said.state != versions.ERASED}
        for name in sorted({*self.indexed} - (seen & alive)):
            yield self._bad(0, EDITED, f"An index row leads to supplier {name}, which is not here.")

    def _missing(self, n: int, text: str) -> Damage:
        return self._bad(n, MISSING, f"MISSING-UNEXPLAINED: {text}")

    def _bad(self, n: int, code: str, text: str) -> Damage:
        return Damage(self.workspace.origin, LOG_RUN, n, code, text)


def _index_key(workspace: Workspace) -> bytes | None:
    register = Register.objects.filter(workspace=workspace).first()
    return _keys([register.index_ref]).get(register.index_ref) if register else None


def _index_rows(workspace: Workspace) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    rows = SupplierIndex.objects.filter(workspace=workspace)
    for supplier, kind, value in rows.values_list("supplier_id", "kind", "value").iterator(CHUNK):
        found.setdefault(str(supplier), set()).add((kind, value))
    return found


def _keys(refs: list[str]) -> dict[str, bytes]:
    """The keys of these refs; one that is damaged counts as gone, and hides no other."""
    try:
        return keystore().keys(refs) if refs else {}
    except (VerificationError, OSError):
        if len(refs) == 1:
            return {}
    return {ref: key for each in refs for ref, key in _keys([each]).items()}


def bill_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """A claim that was changed, removed, added, or moved to another log."""
    sealed, bill = _sealed_claim(envelopes), Bill.objects.filter(run=run).first()
    here = workspace.successor_id or workspace.id
    code, text = EDITED, ""
    if bill is None:
        code = MISSING
        text = "MISSING-UNEXPLAINED: the run's claim on its invoice is gone." if sealed else ""
    elif not sealed:
        is_known = run.step != STEP and not run.quarantined  # else its result may be lost
        text = "The run's claim on an invoice was never sealed." if is_known else ""
    elif not bills.is_whole(bill, sealed, _keys) or bill.workspace_id != here:
        text = "The run's claim on its invoice is not the one that was sealed."
    if text:
        yield Damage(log=workspace.origin, run=str(run.id), at=0, code=code, text=text)


def _sealed_claim(envelopes: Sequence[Stored]) -> str:
    """The hash of the claim that the run's newest whole result says; empty for none."""
    for each in reversed(envelopes):
        if TOOL.encode() not in each.data or canonical_hash(each.data) != each.hash:
            continue
        body = records.body_of(each.data)
        if body.get("kind") == "result" and body.get("tool") == TOOL:
            return str(records.part_of(body, "out").get("bill", ""))
    return ""
