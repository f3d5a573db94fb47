"""Follows every log: hands each envelope's span to a collector, and remembers what it took."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db import OperationalError, connection
from opentelemetry.sdk.trace import ReadableSpan

from engine.ops import said
from engine.queries.telemetry.spans import Log, Spans
from engine.store import sql
from engine.store.logs import LogLine
from engine.store.state_file import StateFile

NAME = "follow"
POLL_MS = 1_000
SPANS_MAX = 512  # of a request; a batch that is not taken is halved, down to one span
AGAIN_MS, AGAIN_MS_MAX = 1_000, 60_000  # from one attempt to the next, doubled each time
# Numbers stay numbers where somebody put a text in their place.
_LOGS = (
    "SELECT id, origin, CAST(size AS BIGINT), CAST(created_ms AS BIGINT), successor_id IS NULL"
    " FROM pipeline_workspace"
)
_PART = (
    "SELECT CAST(seq AS BIGINT), run, n, bytes, hash, kind FROM pipeline_envelope"
    " WHERE workspace_id = %s AND seq >= %s AND seq < %s ORDER BY seq LIMIT %s"
)
LOOK = "Look at it with manage.py fsck."
WENT_BACK = (
    "The log {} is not the one that was exported, so it is not followed."
    " If a backup was put back, run manage.py restore."
)
Send = Callable[[Sequence[ReadableSpan]], str]

logger = logging.getLogger(__name__)


class Follower:
    """Exports what the logs got since, a batch a round. Nothing is left out.

    ``file`` has the cursor of each log: the ``seq`` to export next, and the hash of the envelope
    before it. It is replaced once the collector took a batch whole: after a crash the same spans
    are sent again, with the same ids. ``send``: as ``Collector.send``.
    """

    def __init__(self, file: StateFile, spans: Spans, send: Send) -> None:
        self._file, self._spans, self._send = file, spans, send
        self._cursors = _cursors(file.read() or b"{}")
        self._most, self._wait_ms, self._again_ms = SPANS_MAX, 0, 0
        self._after = ""  # the log that the last batch began with
        self._fault = ""
        self._stopped: list[str] = []  # why logs are not followed

    @property
    def why(self) -> str:
        """What keeps spans back, and what to do; empty where nothing does."""
        return " ".join(filter(None, (self._fault, *sorted(self._stopped))))

    def round(self, at_ms: int) -> int:
        """Export one batch of what is new, and say how many envelopes were taken.

        A database that is away is tried again in the next round.
        """
        taken, self._stopped, facts = 0, [], {}
        try:
            logs = (Log(each, str(name), *row) for each, name, *row in sql.execute(_LOGS))
            news = [each for each in logs if each.size != self._cursor(each)[0]]
            news.sort(key=lambda each: (each.origin <= self._after, each.origin))
            batch = [*self._read(news)]
            if not batch:
                self._fault = ""
            elif at_ms >= self._again_ms:
                taken = self._export(batch, at_ms)
            facts["behind"] = sum(max(0, each.size - self._cursor(each)[0]) for each in news)
            facts["exported"] = sum(at for at, _ in self._cursors.values())
        except OperationalError as error:
            logger.warning("Nothing is exported, for the database cannot be read: %s", error)
            connection.close()
            self._stopped = [f"The database cannot be read. {LOOK}"]
        said.say(NAME, self.why, **facts)
        return taken

    def _read(self, logs: Sequence[Log]) -> Iterator[tuple[Log, list[LogLine]]]:
        """What is new of these logs, as many envelopes as a batch may have."""
        left = self._most
        for log in logs:
            if not left:
                break
            at, leaf = self._cursor(log)
            first = max(at - 1, 0)  # the envelope that was exported last is looked at too
            try:
                rows = sql.execute(_PART, (log.id, first, log.size, left + (at > 0)))
            except OperationalError:
                self._stopped.append(f"The log {log.origin} cannot be read. {LOOK}")
                continue
            lines = [_line(*row) for row in rows]
            if at and (not lines or lines.pop(0).hash != leaf):
                # Where a restore closed it, what goes on is another log.
                self._stopped += [WENT_BACK.format(log.origin)] if log.is_open else []
            elif lines:
                left -= len(lines)
                yield log, lines

    def _cursor(self, log: Log) -> tuple[int, str]:
        return self._cursors.get(log.origin, (0, ""))

    def _export(self, batch: Sequence[tuple[Log, list[LogLine]]], at_ms: int) -> int:
        spans = [self._spans.of(log, line) for log, lines in batch for line in lines]
        self._after = batch[0][0].origin
        self._fault = self._send(spans)
        if self._fault:
            self._most = max(1, len(spans) // 2)
            self._wait_ms = min(AGAIN_MS_MAX, self._wait_ms * 2 or AGAIN_MS)
            self._again_ms = at_ms + self._wait_ms
            return 0
        self._most, self._wait_ms = min(SPANS_MAX, self._most * 2), 0
        for log, lines in batch:
            self._cursors[log.origin] = (lines[-1].seq + 1, lines[-1].hash)
        self._file.replace(json.dumps(self._cursors).encode())
        return len(spans)


def _line(seq: int, run: object, n: Any, data: object, leaf: object, kind: str) -> LogLine:
    return LogLine(seq, str(run), n, sql.blob(data), str(leaf), kind)


def _cursors(data: bytes) -> dict[str, tuple[int, str]]:
    """What the file says; none where it is damaged, for what is sent again has the same ids."""
    try:
        return {log: (int(at), str(leaf)) for log, (at, leaf) in json.loads(data).items()}
    except (AttributeError, TypeError, ValueError):
        return {}
