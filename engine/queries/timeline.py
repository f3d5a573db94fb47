"""A workspace's log by filter, newest first: a page costs the same however long the log is."""

import sys
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from engine.models import Envelope
from engine.queries.log import EventRow, entry_from
from engine.queries.runs import body_of, time_of
from engine.store import logs

KINDS = (
    *("genesis", "intent", "result", "refused", "ignored", "failed", "suspended", "resumed"),
    *("terminal", "integrity", "erasure_requested", "erasure_done", "erasure_refused"),
    *("capability", "policy", "budget", "key", "restore", "supplier"),
    *("message", "agent", "settlement", "alert", "observation", "upgraded"),
)
PAGE = 50
LOOKED_AT_MAX = 4_000  # envelopes that one page looks through for those that match
CHUNK_ROWS = 500
DRIFT_MS = 60_000  # envelopes may be sealed so much out of the order of their times
CURSOR_DIGITS_MAX = 18  # what a database counts in


class Filter(NamedTuple):
    """What a list is narrowed to; what is empty narrows nothing."""

    run: str = ""  # a run's UUID, "log" or "agent:<name>"
    kind: str = ""
    rule: str = ""
    step: str = ""
    actor: str = ""
    since_ms: int | None = None
    until_ms: int | None = None  # up to and with this millisecond


class TimelinePage(NamedTuple):
    """Rows that match, newest first. ``cursor`` leads to older ones; empty at the end.

    ``looked_back_to`` is set where the page ended because it had looked through enough, and
    not because it was full or the log was over.
    """

    rows: tuple[EventRow, ...]
    cursor: str
    looked_back_to: int | None = None


def page(workspace: UUID, asked: Filter, cursor: str = "", size: int = PAGE) -> TimelinePage:
    """The newest ``size`` envelopes below the cursor that match."""
    rows = _below(workspace, _older(workspace, asked), asked, cursor)
    found: list[EventRow] = []
    looked = last = 0
    most = size if asked == Filter(run=asked.run) else LOOKED_AT_MAX  # all match, or few may
    columns = rows.values_list("run", "n", "seq", "kind", "hash", "bytes")
    for run, n, seq, kind, stored_hash, data in columns[: most + 1].iterator(CHUNK_ROWS):
        if len(found) == size or looked == LOOKED_AT_MAX:
            back = last if looked == LOOKED_AT_MAX and len(found) < size else None
            return TimelinePage(rows=tuple(found), cursor=str(last), looked_back_to=back)
        looked, last = looked + 1, seq
        if matches(kind, data, asked):
            found.append(entry_from(run, n, seq, kind, stored_hash, bytes(data)).row)
    return TimelinePage(rows=tuple(found), cursor="")


def matching(workspace: UUID, asked: Filter) -> Iterator[Envelope]:
    """Every envelope that matches, oldest first: streamed."""
    rows = logs.in_parts(_older(workspace, asked), "n" if asked.run else "seq", CHUNK_ROWS)
    return (each for each in rows if matches(each.kind, each.bytes, asked))


def matches(kind: str, data: bytes | memoryview, asked: Filter) -> bool:
    """Whether an envelope's own bytes say what is asked for; damaged ones say nothing."""
    if asked.kind and kind != asked.kind:
        return False
    wanted = {"rule": asked.rule, "step": asked.step, "actor": asked.actor}
    wanted = {name: value for name, value in wanted.items() if value}
    is_timed = asked.since_ms is not None or asked.until_ms is not None
    body = body_of(data) if wanted or is_timed else {}
    if any(body.get(name) != value for name, value in wanted.items()):
        return False
    at_ms, since_ms, until_ms = time_of(body), asked.since_ms, asked.until_ms
    if not is_timed or at_ms is None:
        return not is_timed
    return (since_ms is None or since_ms <= at_ms) and (until_ms is None or at_ms <= until_ms)


def moment_ms(text: str) -> int | None:
    """The millisecond of a date, or of a date and time, in UTC; None where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return int(moment.timestamp() * 1000)


def _older(workspace: UUID, asked: Filter) -> QuerySet[Envelope]:
    """The envelopes among which the wanted ones are, newest first, found without a scan."""
    rows = Envelope.objects.filter(workspace_id=workspace)
    rows = rows.filter(run=asked.run).order_by("-n") if asked.run else rows.order_by("-seq")
    if asked.since_ms is not None:
        rows = rows.filter(seq__gte=_first_since(workspace, asked.since_ms - DRIFT_MS))
    if asked.until_ms is not None:
        rows = rows.filter(seq__lt=_first_since(workspace, asked.until_ms + DRIFT_MS))
    return rows


def _below(
    workspace: UUID, rows: QuerySet[Envelope], asked: Filter, cursor: str
) -> QuerySet[Envelope]:
    """Those below a cursor; within a run by its n, which the database finds at once too."""
    if not cursor.isdecimal() or len(cursor) > CURSOR_DIGITS_MAX:
        return rows
    if asked.run:
        there = Envelope.objects.filter(workspace_id=workspace, run=asked.run, seq=int(cursor))
        n = there.values_list("n", flat=True).first()
        return rows.filter(seq__lt=int(cursor)) if n is None else rows.filter(n__lt=n)
    return rows.filter(seq__lt=int(cursor))


def _first_since(workspace: UUID, at_ms: int) -> int:
    """The first seq that was sealed after this moment: the log is in the order of time."""
    rows = Envelope.objects.filter(workspace_id=workspace)
    newest = rows.order_by("-seq").values_list("seq", flat=True).first()
    places = range(0 if newest is None else min(newest + 1, sys.maxsize))
    return bisect_right(places, at_ms, key=partial(_sealed_ms, rows.order_by("seq")))


def _sealed_ms(rows: QuerySet[Envelope], seq: int) -> int:
    """When the first whole envelope from a place on was sealed; where none is near, never."""
    near = rows.filter(seq__gte=seq).values_list("bytes", flat=True)
    for data in chain(near[:1], near[1:CHUNK_ROWS].iterator(1)):
        if (at_ms := time_of(body_of(data))) is not None:
            return at_ms
    return sys.maxsize
