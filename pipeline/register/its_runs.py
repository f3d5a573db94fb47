"""The runs that hold an invoice of a supplier: by claim, by what the register said, or by name."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from uuid import UUID

from django.db.models import Count, QuerySet

from engine.models import Run, Workspace
from engine.vault import secret_store
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.errors import NanovmError, VerificationError
from pipeline.models import Bill, Supplier
from pipeline.register import versions
from pipeline.register.details import Details, compact, one_line, plain_name

IN_SLOT = re.compile(rb'"supplier":"([0-9a-f-]{36})"')  # of a snapshot: canonical JSON
NAMES, ACCOUNT = ("payee", "seller"), "iban"


def counts(workspace: Workspace, ids: Collection[UUID]) -> Mapping[str, int]:
    """How many runs each of these suppliers has, by its id; those that only name it left out."""
    claimed = Bill.objects.filter(supplier__in=ids).values_list("supplier").annotate(n=Count("run"))
    found = Counter({str(each): n for each, n in claimed})
    for _, snapshot in _unclaimed(workspace).values_list("id", "snapshot").iterator():
        found.update(each.decode() for each in IN_SLOT.findall(bytes(snapshot))[:1])
    return {name: found[name] for name in map(str, ids)}


def of_supplier(row: Supplier) -> list[Run]:
    """Every run of a supplier, the oldest first, erased ones too.

    A run that no supplier was matched to is found as long as both can be read: where its payee,
    seller or account is the supplier's, in any spelling that the register takes for the same.
    """
    name, details = str(row.id).encode(), _details(row)
    found = {*Bill.objects.filter(supplier=row).values_list("run_id", flat=True)}
    for run in _unclaimed(row.workspace).only("id", "snapshot", "erased_ms").iterator():
        slot = IN_SLOT.search(bytes(run.snapshot))
        if slot[1] == name if slot else details is not None and _names(run, details):
            found.add(run.id)
    rows = Run.objects.in_bulk([*found])
    return sorted(rows.values(), key=lambda run: (run.created_ms, run.id))


def _unclaimed(workspace: Workspace) -> QuerySet[Run]:
    """The runs of a log, and of those that it goes on for, that claimed no invoice."""
    logs = [workspace.id, *workspace.predecessors.values_list("id", flat=True)]
    return Run.objects.filter(workspace__in=logs, bill=None)


def _details(row: Supplier) -> Details | None:
    """What the runs are compared with; None where it was erased or does not open."""
    with suppress(VerificationError):
        if row.state != versions.ERASED:
            return versions.open_entries(row.workspace, [row])[0].details
    return None


def _names(run: Run, details: Details) -> bool:
    if run.erased_ms is not None:
        return False
    values = dict(_opened(run))
    account = compact(values.pop(ACCOUNT, ""))
    names = {plain_name(one_line(each)) for each in values.values()}
    return plain_name(details.name) in names or bool(account and account == details.iban)


def _opened(run: Run) -> Iterator[tuple[str, str]]:
    """Payee, seller and account of a run; what is damaged names nobody."""
    with suppress(NanovmError):
        slots = decode_snapshot(bytes(run.snapshot)).slots
        refs = {slot: str(slots[slot]) for slot in (*NAMES, ACCOUNT) if slots.get(slot)}
        opened = secret_store.read_all([*refs.values()]) if refs else {}
        yield from ((slot, opened[ref]) for slot, ref in refs.items())
