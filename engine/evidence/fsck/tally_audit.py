"""Rows of window totals that no envelope stands for, and those that are missing."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from engine.damage import Damage
from engine.models import Tally, Workspace
from engine.store import tallies
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.ledger.value import NOT_SEALED

PLACES_MAX = 1_000  # of one kind in a log: where all of it is gone, the first of them say so
Row: TypeAlias = tuple[object, ...]  # the total's name, and what ``tallies.Tally`` has


class TallyAudit:
    """Compares the rows of a log with its envelopes, which are to be taken in from the first.

    Such a row changes no decision for the looser: what no envelope says is not believed.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._log = workspace
        rows = Tally.objects.filter(workspace=workspace)
        fields = rows.values_list("what", "scope", "at_ms", "seq", "total")
        self._left: set[Row] = {(_name(what, scope), *row) for what, scope, *row in fields}
        self._missing: set[Row] = set()

    def take(self, seq: int, said: Mapping[str, Any] | None) -> None:
        """Take the next envelope in, None for one that cannot be believed: its rows are let be."""
        if said is None:
            self._left = {row for row in self._left if row[2] != seq}
            return
        due = {(name, *row) for name, row in tallies.rows_of(said)}
        self._missing |= due - self._left
        self._left -= due

    def damage(self) -> Iterator[Damage]:
        """What is left of the rows, and what is missing among them."""
        for what, rows in (("no event says", self._left), ("is missing", self._missing)):
            for name, _, seq, total in sorted(rows, key=str)[:PLACES_MAX]:
                text = f"The count {total} of {name} at seq {seq} {what}."
                yield Damage(self._log.origin, LOG_RUN, 0, NOT_SEALED, text)


def _name(what: str, scope: str) -> str:
    return f"{what}@{scope}" if scope else what
