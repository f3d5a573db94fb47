"""Figures of logs, folded from their envelopes: holds, decisions, refusals, payments, ends.

A process keeps what it has read of a log, and reads on from there; where that envelope is gone (a
backup was put back), it reads the log anew. Bytes that do not fit their hash count for nothing.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from statistics import median
from threading import Lock
from typing import Any

from engine.application import paying
from engine.models import Workspace
from engine.queries.runs import body_of
from engine.store import sql
from engine.store.records import part_of
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import canonical_hash

DECISIONS_MAX = 1_000  # whose times are kept
ASKED_MAX = 1_024  # calls of one log that have no result
LOGS_MAX = 10_000  # that one process remembers
ROWS_MAX = 2_000  # read at once
_YEARS_MS = 200 * 365 * 86_400_000
_NOTHING = (-1, "")  # the place before the first envelope
_MARKS = (b'"kind":"refused"', b'"suspended.awaiting_approval"', b'"terminated.')  # what counts
_DECIDED = {"Approved": "approved", "Declined": "declined"}
_ENDS = (
    "SELECT w.id, w.successor_id, e.seq, e.hash FROM pipeline_workspace w JOIN pipeline_envelope e"
    " ON e.workspace_id = w.id AND e.seq = (SELECT MAX(l.seq) FROM pipeline_envelope l"
    " WHERE l.workspace_id = w.id AND l.seq < w.size)"
)
_ROWS = "SELECT seq, hash, bytes FROM pipeline_envelope WHERE workspace_id = %s AND seq >= %s"
_PART = f"{_ROWS} AND seq <= %s ORDER BY seq LIMIT {ROWS_MAX}"


@dataclass(slots=True, kw_only=True)
class Figures:
    """Of one log, or of all, since they began. Times are UTC milliseconds, days in UTC.

    ``counts``, by what, day and label: ``decided`` (approved, declined), ``took_ms`` from hold to
    decision, ``refused`` by rule, ``paid`` and their sum ``minor`` by currency, ``ended`` by state.
    ``held``: since when each run waits for a person. ``newest_ms``: of one log, the last times to
    decide.
    """

    counts: Counter[tuple[str, date, str]] = field(default_factory=Counter)
    held: dict[str, int] = field(default_factory=dict)
    newest_ms: deque[int] = field(default_factory=lambda: deque(maxlen=DECISIONS_MAX))

    @property
    def oldest_ms(self) -> int | None:
        """Since when the run waits that waits longest for a person; None where none does."""
        return min(self.held.values(), default=None)

    @property
    def median_decide_ms(self) -> int | None:
        """The median of ``newest_ms``; None before any decision."""
        return int(median(self.newest_ms)) if self.newest_ms else None

    def of(self, what: str) -> Counter[str]:
        """The counts of all days together, by label."""
        found = Counter[str]()
        for (each, _, label), count in self.counts.items():
            if each == what:
                found[label] += count
        return found


def of_log(log: Workspace) -> Figures:
    """The figures of one log, without those of a log that a restore closed before it."""
    return _read(sql.execute(f"{_ENDS} WHERE w.id = %s", (sql.key(log.id),)))


def of_all() -> Figures:
    """The figures of all logs together; no run of a log that a restore closed is held."""
    return _read(sql.execute(_ENDS))


class _Reader:
    """What this process knows of a log: all up to the envelope ``at``. ``lock`` is the caller's."""

    def __init__(self) -> None:
        self.lock, self.at, self.figures = Lock(), _NOTHING, Figures()
        self.asked: dict[str, Mapping[str, Any]] = {}  # by run: its newest call without a result

    def read(self, log: object, end: tuple[int, str]) -> None:
        """Read on, up to the log's last envelope ``end``."""
        if self.at not in (_NOTHING, end):
            stored = sql.execute(f"{_ROWS} AND seq = %s", (log, self.at[0], self.at[0]))
            if [self.at] != [row[:2] for row in stored]:
                self.at, self.figures, self.asked = _NOTHING, Figures(), {}
        tools = paying()
        marks = (*_MARKS, *(f'"tool":"{name}"'.encode() for name in tools))
        while self.at[0] < end[0]:
            rows = sql.execute(_PART, (log, self.at[0] + 1, end[0]))
            if not rows:  # a backup is being put back
                break
            for _, stored, data in rows:
                data = sql.blob(data)
                if any(mark in data for mark in marks) and canonical_hash(data) == stored:
                    self._take(body_of(data), tools)
            self.at = rows[-1][:2]

    def _take(self, body: Mapping[str, Any], tools: Mapping[str, Callable[..., Any]]) -> None:
        counts, kind, run = self.figures.counts, body.get("kind"), str(body.get("run"))
        at_ms = at if type(at := body.get("at_ms")) is int and 0 <= at < _YEARS_MS else 0
        day = date(1970, 1, 1) + timedelta(milliseconds=at_ms)
        self._move(run, at_ms, day, part_of(body, "state"))
        if kind == "refused":
            counts["refused", day, str(body.get("rule"))] += 1
        elif kind == "intent" and str(body.get("tool")) in tools:
            self.asked[run] = body
            if len(self.asked) > ASKED_MAX:
                del self.asked[next(iter(self.asked))]
        elif kind in ("result", "ignored") and body.get("outcome") != "waiting":
            asked, key = self.asked.get(run), body.get("idempotency_key")
            # What a run's own worker answers after its end is ignored: it bears no key.
            is_late = kind == "ignored" and "out" in body
            if asked and (is_late or key == asked.get("idempotency_key")):
                del self.asked[run]
                money = tools[str(asked["tool"])](part_of(asked, "in"), part_of(body, "out"))
                if money is not None:
                    counts["paid", day, money[0]] += 1
                    counts["minor", day, money[0]] += money[1]

    def _move(self, run: str, at_ms: int, day: date, state: Mapping[str, Any]) -> None:
        before, after, found = state.get("from"), str(state.get("to")), self.figures
        if after == life.APPROVAL:
            found.held.setdefault(run, at_ms)
        elif before == life.APPROVAL and run in found.held:
            took_ms = max(0, at_ms - found.held.pop(run))
            if decided := _DECIDED.get(str(state.get("event"))):
                found.counts["decided", day, decided] += 1
                found.counts["took_ms", day, ""] += took_ms
                found.newest_ms.append(took_ms)
        if after in life.TERMINAL and before != after:
            found.counts["ended", day, after] += 1


_KNOWN: dict[object, _Reader] = {}  # by log, as the database's column holds its id


def _read(ends: list[sql.Row]) -> Figures:
    total = Figures()
    for log, successor, *end in ends:
        reader = _KNOWN.get(log) or _Reader()
        if len(_KNOWN) < LOGS_MAX:
            reader = _KNOWN.setdefault(log, reader)
        with reader.lock:
            reader.read(log, (end[0], end[1]))
            if successor is not None:
                reader.figures.held.clear()
            total.counts.update(reader.figures.counts)
            total.held |= reader.figures.held
            total.newest_ms.extend(reader.figures.newest_ms)
    return total
