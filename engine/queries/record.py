"""All that is stored of one run, read once: its events, and the adapters' records of its calls."""

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q

from engine.models import Absorbed, AdapterCall, Run
from engine.queries.log import EventRow, LogEntry, entry_from, envelopes, with_amounts
from engine.queries.runs import RunHead

STORY = (
    *("genesis", "intent", "result", "failed", "suspended", "resumed", "terminal", "message"),
    "integrity",
)
HALTS = ("suspended", "resumed")
NEWEST_MAX = 500  # of longer runs the older events are read where they tell what the steps did
DELIVERY = "DeliveryReceived"


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
    stored = row or Run.objects.get(pk=run.id)
    found = envelopes(run).filter(n__lt=run.length).order_by("n")
    if run.length > NEWEST_MAX:
        newest = Q(n__gte=run.length - NEWEST_MAX)
        found = found.filter(newest | Q(kind__in=(*STORY, "refused")))
    columns = found.values_list("bytes", "run", "n", "seq", "kind", "hash")
    entries = [entry_from(*others, bytes(data)) for data, *others in columns]
    rows = with_amounts(run, [entry.row for entry in entries])
    calls = AdapterCall.objects.filter(run_id=run.id).order_by("number")
    told = calls.values_list("tool", "key", "at_ms", "outcome")
    late = Absorbed.objects.filter(run_id=run.id, kind=DELIVERY).values_list("count", flat=True)
    copies = sum(late) + stored.deliveries + sum(row.state_event == DELIVERY for row in rows)
    return RunRecord(
        run=run,
        stored=stored,
        entries=tuple(
            each if each.row is row else each._replace(row=row)
            for each, row in zip(entries, rows, strict=True)
        ),
        calls=tuple(CallView(number, *call) for number, call in enumerate(told, 1)),
        copies=copies,
    )
