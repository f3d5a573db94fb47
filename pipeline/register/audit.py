"""The audit of the register: suppliers, indexes and claims, against what the log commits to."""

from collections.abc import Iterator, Sequence
from itertools import islice

from engine.damage import RESTORE, Damage
from engine.models import Run, Workspace
from engine.store import records, run_rows, sql
from engine.vault.key_store import keystore
from nanovm_core.core.envelope import LOG_RUN, Stored, canonical_hash
from nanovm_core.core.messages import Snapshot
from nanovm_core.errors import VerificationError
from pipeline.models import Listed, Supplier
from pipeline.register import bills, erasure, found, index, versions

CHUNK = 500  # rows in memory at a time, and keys that are asked for at once
EDITED, MISSING, GONE = "PII-002", "PII-003", "MISSING-UNEXPLAINED:"
Fault = tuple[int, str, str]  # the envelope's number, a code, a text
TOOL, STEP = "vault.split", "vault"  # what claims; until its result is sealed, a claim is alone
_SUPPLIERS = "SELECT id FROM pipeline_supplier WHERE workspace_id = %s ORDER BY id"
_INDEX = "SELECT supplier_id, kind, value FROM pipeline_supplierindex WHERE workspace_id = %s"
_WORDS = "SELECT workspace_id, word FROM pipeline_found WHERE run_id = %s"
_RUNS_IN = "SELECT run_id FROM "


def log_damage(workspace: Workspace) -> Iterator[Damage]:
    """What is bad in the rows of a log: its suppliers, and rows of lists that are no run's."""
    for n, code, text in _Audit(workspace).faults():
        yield Damage(workspace.origin, LOG_RUN, n, code, text)
    for table in ("pipeline_listed", "pipeline_found"):
        strays = f"{_RUNS_IN}{table}{run_rows.NOT_OF_LOG}"
        for (run,) in sql.execute(strays, (sql.key(workspace.id),) * 2):
            text = f"A row of lists names run {sql.name(run)}, which is not of this log."
            yield Damage(workspace.origin, LOG_RUN, 0, EDITED, text)


def run_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """What is bad in the rows of a run: its claim, and what lists find it by."""
    yield from bill_damage(workspace, run, envelopes)
    now = None if run.quarantined else found.value_of(run)
    if now is not None and not found.is_call(run):
        for text in filter(None, (_listing_fault(run, now), _words_fault(workspace, run, now))):
            yield Damage(log=workspace.origin, run=str(run.id), at=0, code=EDITED, text=text)


def undone() -> Iterator[Damage]:
    """Suppliers that the journal says were erased, and that are there again."""
    for row in erasure.there_again():
        text = f"Erased, and there again: supplier {row.id}. {RESTORE}"
        yield Damage(row.workspace.origin, LOG_RUN, row.sealed_n, "PII-013", text)


class _Audit:
    """One workspace's register, and what its log says of it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.sealed = {each.id: each for each in versions.sealed_versions(workspace)}  # the newest
        refs = [str(ref) for (ref,) in sql.execute(index.OF_LOG, (sql.key(workspace.id),))]
        self.index_key = next(iter(_keys(refs).values()), None)
        self.indexed: dict[str, set[tuple[str, str]]] = {}  # kind and value, by supplier
        for supplier, kind, value in sql.in_parts(_INDEX, (sql.key(workspace.id),), CHUNK):
            self.indexed.setdefault(sql.name(supplier), set()).add((kind, value))

    def faults(self) -> Iterator[Fault]:
        """At most one of each row, then the suppliers without a row, and stray index rows."""
        seen: set[str] = set()
        rows = sql.rows_in_parts(Supplier, (sql.key(self.workspace.id),), most=CHUNK)
        while some := [*islice(rows, CHUNK)]:
            seen |= {str(each.id) for each in some}
            keys = _keys([each.ref for each in some if each.state != versions.ERASED])
            yield from filter(None, (self._of_row(row, keys.get(row.ref)) for row in some))
        yield from self._without_row(seen)
        alive = {name for name, said in self.sealed.items() if said.state != versions.ERASED}
        for name in sorted({*self.indexed} - (seen & alive)):  # of others, of erased ones, nobody's
            yield 0, EDITED, f"An index row leads to supplier {name}, which is not here."

    def _of_row(self, row: Supplier, key: bytes | None) -> Fault | None:
        said = self.sealed.get(str(row.id))
        if said is None:
            return row.sealed_n, EDITED, f"Supplier {row.id} was never sealed."
        if row.state == versions.ERASED:
            text = f"{GONE} supplier {row.id} reads as erased, and no erasure is sealed for it."
            return (said.n, MISSING, text) if said.state != versions.ERASED else None
        if (row.ref, row.commitment, row.state) != said[2:] or row.sealed_n != said.n:
            text = f"The row of supplier {row.id} is not the version that was sealed last."
            return said.n, EDITED, text
        if key is None or row.ciphertext is None:
            text = f"{GONE} supplier {row.id} is gone and no erasure is sealed for it."
            return said.n, MISSING, text
        try:
            details = versions.details_of(self.workspace, row, key, [said])
        except (VerificationError, ValueError, TypeError):
            return said.n, EDITED, f"The commitment of supplier {row.id} is not its details'."
        if self.index_key is None:
            text = f"{GONE} supplier {row.id} cannot be found: the key of the index is gone."
            return said.n, MISSING, text
        due = {(k, index.blind(self.index_key, k, each)) for k, each in details.indexed().items()}
        odd = self.indexed.get(str(row.id), set()) ^ due
        if {each for each in odd if each[0] != "iban"} or odd - due:  # or of an earlier release
            text = f"The index rows of supplier {row.id} are not those of its details."
            return said.n, EDITED, text
        return None

    def _without_row(self, seen: set[str]) -> Iterator[Fault]:
        """Suppliers that were sealed and have no row: neither erased nor taken over by a log."""
        here = sql.key(self.workspace.successor_id or self.workspace.id)
        known = seen | {sql.name(each) for (each,) in sql.execute(_SUPPLIERS, (here,))}
        for name, said in self.sealed.items():
            if name not in known and said.state != versions.ERASED:
                text = f"{GONE} supplier {name} has no row and no erasure is sealed for it."
                yield said.n, MISSING, text


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
    sealed, bill = _sealed_claim(envelopes), bills.claim_of(run)
    here, code, text = workspace.successor_id or workspace.id, EDITED, ""
    if bill is None:
        code = MISSING
        text = f"{GONE} the run's claim on its invoice is gone." if sealed else ""
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
        is_whole = TOOL.encode() in each.data and canonical_hash(each.data) == each.hash
        body = records.body_of(each.data) if is_whole else {}
        if body.get("kind") == "result" and body.get("tool") == TOOL:
            return str(records.part_of(body, "out").get("bill", ""))
    return ""


def _listing_fault(run: Run, now: Snapshot) -> str:
    """What is wrong with the row by which lists sort and sum a run; empty for nothing."""
    place = (sql.key(run.workspace_id), sql.key(run.id))
    rows = sql.rows(Listed, "WHERE workspace_id = %s AND run_id = %s", place)
    due = (run.code, *found.listing_of(now))
    said = [(row.code, *(getattr(row, name) for name in found.Listing._fields)) for row in rows]
    return "" if said == [due] else "The run's row in lists does not say what the run says."


def _words_fault(workspace: Workspace, run: Run, now: Snapshot) -> str:
    """What is wrong with the words that find a run; empty for nothing."""
    said = {(sql.uuid(log), word) for log, word in sql.execute(_WORDS, (sql.key(run.id),))}
    try:
        texts = found.texts_of(now)
        key = found.key_of(workspace) if texts else b""
    except OSError as error:
        return f"The words that find the run cannot be compared with its values: {error}"
    if key is None:
        return f"{GONE} the run cannot be found: the key of its words is gone."
    due = {(run.workspace_id, word) for word in found.words_of(key, texts)}
    return "" if said == due else "The words that find the run are not those of its values."
