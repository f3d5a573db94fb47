"""All that is stored of one run, read once: its events, and the adapters' records of its calls."""

from collections.abc import Iterable
from typing import NamedTuple

from engine.models import Run
from engine.queries.log import EventRow, LogEntry, entry_from, with_amounts
from engine.queries.runs import RunHead
from engine.store import sql

STORY = (
    *("genesis", "intent", "result", "failed", "suspended", "resumed", "terminal", "message"),
    "integrity",
)
HALTS = ("suspended", "resumed")
NEWEST_MAX = 500  # of longer runs the older events are read where they tell what the steps did
DELIVERY = "DeliveryReceived"
_ENVELOPES = (
    "SELECT run, n, seq, kind, hash, bytes FROM pipeline_envelope"
    " WHERE workspace_id = %s AND run = %s AND n < %s AND (n >= %s OR kind IN {}) ORDER BY n"
)
_CALLS = "SELECT tool, key, at_ms, outcome FROM pipeline_adaptercall WHERE run_id = %s"
_LATE = "SELECT count FROM pipeline_absorbed WHERE run_id = %s AND kind = %s"


class CallView(NamedTuple):
    """One line of the adapters' own book, written before the call was made."""

    number: int
    tool: str
    key: str
    at_ms: int
    outcome: str


class RunRecord(NamedTuple):
    """A run, its row, and what is stored of it, oldest first, up to its head.

    ``copies`` counts the queue messages that changed nothing: repeated, late or out of turn. Most
    of them have no event.
    """

    run: RunHead
    stored: Run
    entries: tuple[LogEntry, ...]
    calls: tuple[CallView, ...]
    copies: int

    @property
    def rows(self) -> tuple[EventRow, ...]:
        return tuple(entry.row for entry in self.entries)

    def last(self, kinds: Iterable[str]) -> EventRow | None:
        """The newest event that the database names so."""
        wanted = tuple(kinds)
        found = (entry.row for entry in reversed(self.entries) if entry.kind in wanted)
        return next(found, None)

    def last_move(self) -> EventRow | None:
        """The newest event that changed the run's state, or suspended or resumed it anew."""
        found = (each.row for each in reversed(self.entries) if each.kind in STORY[:-1])
        return next((row for row in found if row.moved or row.kind in HALTS), None)


def record_of(run: RunHead, row: Run | None = None) -> RunRecord:
    """Read what is stored of a run. Of more than ``NEWEST_MAX`` events the older ones that neither
    are a step's own nor were refused are left out. ``row`` is the run's own, where it was read.
    """
    stored, key, log = row or Run.objects.get(pk=run.id), sql.key_of(run.id), run.workspace
    newest, told = run.length - NEWEST_MAX, (*STORY, "refused")
    values = (sql.key_of(log), run.id, run.length, newest if newest > 0 else -(2**62), *told)
    found = sql.execute(_ENVELOPES.format(sql.marks(told)), values)
    entries = [entry_from(*others, sql.blob(data)) for *others, data in found]
    rows = with_amounts(run, [entry.row for entry in entries])
    calls = sql.execute(f"{_CALLS} ORDER BY number", (key,))
    late = sum(count for (count,) in sql.execute(_LATE, (key, DELIVERY)))
    copies = late + stored.deliveries + sum(row.state_event == DELIVERY for row in rows)
    return RunRecord(
        run=run,
        stored=stored,
        entries=tuple(
            each if each.row is row else each._replace(row=row)
            for each, row in zip(entries, rows, strict=True)
        ),
        calls=tuple(CallView(number, *call) for number, call in enumerate(calls, 1)),
        copies=copies,
    )
