"""Per-visitor rate limits.

Proposals and fresh runs are counted by their rows, so the limit holds across processes and
restarts. Checks leave no row: each web process counts them in its own cache. A visitor who
drops the cookie is counted as another one; limit addresses in front of the web server.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db.models import Min, Q, QuerySet

from dashboard.models import Entry
from pipeline.clock import now_ms
from pipeline.models import Run

WINDOW_MS = 60_000
PROPOSALS_MAX = 30  # a minute: one every two seconds is more than anybody types
STARTS_MAX = 6  # a minute, of runs of whatever kind: each is some seconds of a worker's time
CHECKS_MAX = 240  # a minute: a check a pause in typing, four a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What is left of a quota in this minute; ``wait_s`` is how long until there is more."""

    name: str
    limit: int
    used: int
    wait_s: int

    @property
    def left(self) -> int:
        """How many more; never below none."""
        return max(0, self.limit - self.used)


def proposals(workspace: UUID | None) -> Quota:
    """The proposals of the last minute."""
    rows = Entry.objects.filter(Q(workspace_id=workspace))
    return _counted("proposals", PROPOSALS_MAX, rows, "at_ms")


def starts(workspace: UUID | None) -> Quota:
    """The runs that the visitor made in the last minute, on any page."""
    rows = Run.objects.filter(Q(workspace_id=workspace))
    return _counted("fresh runs", STARTS_MAX, rows, "created_ms")


def _counted(name: str, limit: int, rows: "QuerySet[Any]", at: str) -> Quota:
    young = rows.filter(**{f"{at}__gt": now_ms() - WINDOW_MS})
    return _of(name, limit, young.count(), young.aggregate(at_ms=Min(at))["at_ms"])


def checks(session: str) -> Quota:
    """The checks of this minute; nothing is counted by asking."""
    return _of("checks", CHECKS_MAX, int(cache.get(_key(session), 0)), _began_ms())


def check_taken(session: str) -> Quota:
    """Count one more check; it may be made where the quota it answers was not used up before."""
    key = _key(session)
    cache.add(key, 0, timeout=2 * WINDOW_MS // 1000)
    try:
        used = cache.incr(key)
    except ValueError:  # the cache dropped it just now: it counts from the beginning
        cache.set(key, 1, timeout=2 * WINDOW_MS // 1000)
        used = 1
    return _of("checks", CHECKS_MAX, used, _began_ms())


def _of(name: str, limit: int, used: int, since_ms: int | None) -> Quota:
    left_ms = (since_ms or 0) + WINDOW_MS - now_ms()
    wait_s = max(1, -(-left_ms // 1000)) if used >= limit else 0
    return Quota(name=name, limit=limit, used=used, wait_s=wait_s)


def _began_ms() -> int:
    return now_ms() // WINDOW_MS * WINDOW_MS


def _key(session: str) -> str:
    return f"arena-checks:{session}:{_began_ms()}"
