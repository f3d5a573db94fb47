"""What people call a run: its supplier, invoice number and amount, opened for their owner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.application import amount_of
from engine.queries.runs import RunHead
from engine.queries.secrets import opened_all
from nanovm_core.core.vault import TOMBSTONE

SLOTS = ("payee", "seller", "invoice_number", "file_name")  # of them payee before seller


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A run in a list. What was not read yet is empty; what was erased is the tombstone.

    ``amount`` as people write it, with its currency; ``supplier_id`` is its entry in the register.
    """

    supplier: str
    supplier_id: str
    number: str
    amount: str
    file_name: str

    @property
    def is_erased(self) -> bool:
        return TOMBSTONE in (self.supplier, self.number)


def of_runs(runs: Sequence[RunHead]) -> Mapping[str, Named]:
    """By id, how each of these runs is called: one look at the vault for a page of them."""
    refs = {run.id: _refs(run) for run in runs}
    opened = opened_all([ref for each in refs.values() for ref in each.values()])
    return {run.id: _named(run, {s: opened[r] for s, r in refs[run.id].items()}) for run in runs}


def _refs(run: RunHead) -> Mapping[str, str]:
    return {slot: str(run.slots[slot]) for slot in SLOTS if run.slots.get(slot)}


def _named(run: RunHead, values: Mapping[str, str]) -> Named:
    return Named(
        supplier=values.get("payee") or values.get("seller", ""),
        supplier_id=str(run.slots.get("supplier") or ""),
        number=values.get("invoice_number", ""),
        amount=amount_of(run.slots),
        file_name=values.get("file_name", ""),
    )
