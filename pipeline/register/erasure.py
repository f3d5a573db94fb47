"""Erasure of a supplier's details, alone or with its runs, sealed on its log's own chain."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet

from engine.errors import ErasureRefusedError
from engine.models import Run, Workspace
from engine.privacy import crypto_shred, erasable, journal
from engine.privacy import erasure as runs_erasure
from engine.privacy.certificate import REPLAYED, Certificate
from engine.privacy.erasable import REQUESTED, Erasable, Refs
from engine.store import records
from engine.vault.key_store import keystore
from nanovm_core.core.fsm.terminal import KEPT_BY_LAW
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier
from pipeline.register import index, its_runs, suppliers, versions

KIND, WITH_RUNS = "supplier", "supplier_with_runs"  # in the journal, and on the certificates
RUN = "run"
KEPT = (
    "envelopes",
    "the register row without its details: code, state, times, who registered it",
    "the values of this supplier in runs: erase those runs too",
    "payment records and the connected account at Stripe",
)
NOT_FOUND = "runs that were not read yet or name it in another way"
RUNS_AT_ONCE = 200  # some seconds of a request; the next call goes on
RUNS_MAX = 4_000  # on one certificate: its event stays below the size of an envelope
KEEPING = ("FSM-010", KEPT_BY_LAW)  # a run under way, and a document that a law keeps
NO_VALUE = "PII-003"
ERASED_NOW, NOTHING_LEFT, STILL_KEPT = "erased", "nothing to erase", "kept"


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


class SupplierAndRuns(Erasable):
    """A supplier and its runs: each part is erased, sealed and journaled by itself, it last."""

    of = WITH_RUNS
    kept = (KEPT[0], runs_erasure.KEPT[1], KEPT[1], KEPT[3], NOT_FOUND)
    row: Supplier

    def __init__(self, row: Supplier) -> None:
        super().__init__(row)
        self.runs: list[Mapping[str, object]] = []  # what became of each

    def hide(self, refs: Refs, reason: str, actor: str) -> None:
        """Seal the list: whatever crashes, the next call erases what is on it."""
        self.seal(REQUESTED, refs, reason, actor)

    def lines(self, refs: Refs) -> list[str]:
        """None of its own."""
        return []

    def destroy(self, refs: Refs, actor: str) -> tuple[dict[str, int], dict[str, str]]:
        reason = str(records.part_of(erasable.pending(self) or {}, "in")["reason"])
        places, failed = Counter[str](), dict[str, str]()
        run_line = journal.line_of(RUN, "")
        ids = [each.removeprefix(run_line) for each in refs if each.startswith(run_line)]
        runs = [Run.objects.get(id=each) for each in ids]
        room, left = RUNS_AT_ONCE, 0
        for run in runs:
            if run.erased_ms is None and not room:
                left += 1
                continue
            became = self._erase_run(run, reason, actor)
            room -= bool(became) and run.erased_ms is None
            _add(f"run {run.code}", became, places, failed)
        if left:
            failed["runs"] = f"{left} of {len(runs)} are left: erase again to continue"
        made = erase_supplier(self.row, reason, actor)
        _add(f"supplier {made.code}", made.places, Counter(), failed)
        return {**places, "register entries": 1}, failed

    def _erase_run(self, run: Run, reason: str, actor: str) -> Mapping[str, object]:
        """What became of each place; nothing for a run that stays as it is."""
        said: dict[str, object] = {RUN: run.name, "code": run.code}
        places: Mapping[str, object] = {}
        try:
            made = runs_erasure.erase_run(run.name, reason, actor)
            said |= {"outcome": ERASED_NOW, "certificate": made.id, "values": len(made.refs)}
            places = made.places
        except (ErasureRefusedError, VerificationError) as error:
            if error.code in KEEPING:
                said |= {"outcome": STILL_KEPT, "rule": error.code}
            elif error.code == NO_VALUE:
                said |= {"outcome": NOTHING_LEFT}
            else:
                places = {"audit log": f"{error.text} ({error.code})"}
        self.runs.append(said)
        return places

    def seal(self, kind: str, refs: Refs, reason: str, actor: str, **said: object) -> None:
        """The end says what became of each run."""
        if isinstance(out := said.get("out"), dict):
            out["runs"] = [*self.runs]
        super().seal(kind, refs, reason, actor, **said)


def erase_with_runs(supplier: Supplier, reason: str, actor: str) -> Certificate:
    """Erase a supplier and every run of it. Again: what was left, else the same certificate.

    A run under way, or with a document that a law keeps, stays: the certificate names the rule.
    Of very many runs a call erases some, and is incomplete; the next one goes on. Of more than
    ``RUNS_MAX`` nothing is erased.

    Raises:
        ErasureRefusedError: PII-010 for a reason that is none; PII-011, where the end of an
            earlier erasure cannot be read.
    """
    erasable.require_ground(reason)
    row = Supplier.objects.select_related("workspace").get(id=supplier.id)
    both = SupplierAndRuns(row)
    finished = erasable.finish_pending(both, actor)
    if finished is not None:
        return finished
    runs, made = its_runs.of_supplier(row), erasable.newest(both)
    if made is not None and not is_readable(row) and _named_alike(made, runs):
        return made
    before = [str(each[RUN]) for each in (made.runs if made else ())]  # some can be found no more
    names = dict.fromkeys([*before, *(each.name for each in runs)])
    if len(names) > RUNS_MAX:
        left = {"runs": f"{len(names)} are more than the {RUNS_MAX} that a certificate can list"}
        return erasable.incomplete(both, (), reason, left)
    refs = (*(journal.line_of(RUN, each) for each in names), row.ref)
    return erasable.erase(both, refs, reason, actor)


def with_runs_unfinished(supplier: Supplier) -> bool:
    """Whether such an erasure was begun and is not over."""
    return erasable.pending(SupplierAndRuns(supplier)) is not None


def newest_with_runs(supplier: Supplier) -> Certificate | None:
    """The newest certificate of a supplier and its runs; None without one."""
    return erasable.newest(SupplierAndRuns(supplier))


def is_readable(row: Supplier) -> bool:
    """Whether anything of its details is there, or their erasure is not over."""
    return row.state != versions.ERASED or row.ciphertext is not None or is_unfinished(row)


def _named_alike(made: Certificate, runs: Iterable[Run]) -> bool:
    """Whether a certificate says of each run that can be read why it was kept, and still is."""
    said = {str(each[RUN]): each.get("rule") for each in made.runs}
    living = [each for each in runs if each.erased_ms is None]
    return all(said.get(each.name, "") == runs_erasure.hindrance(each) != "" for each in living)


def _add(
    part: str, became: Mapping[str, object], places: Counter[str], failed: dict[str, str]
) -> None:
    """Count what was destroyed of a part, and name the places that still hold something of it."""
    for place, outcome in became.items():
        if isinstance(outcome, int):
            places[place] += outcome
        else:
            before = f"{failed[place]}; " if place in failed else ""
            failed[place] = f"{before}{part}: {outcome}"


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
    if row and is_readable(row):
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
    if made is not None and not is_readable(row):
        return made
    return erasable.erase(details, (row.ref,), reason, actor)
