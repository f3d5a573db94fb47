"""Who waits for a copy, in which order, and about how long: one copy is made at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db.models import QuerySet

from engine.clock import now_ms
from sabotage.ablation.copy_process import SECONDS_MAX
from sabotage.models import Attack

ASKED, DONE, FAILED = "asked", "done", "failed"
MADE_MS_MAX = int(SECONDS_MAX * 1000) + 30_000  # the worker that made it for longer has died
WAITED_MS_MAX = 15 * 60_000  # no worker takes any
WAITING_MAX = 20  # some minutes: whoever comes later is told so
TYPICAL_MS = 12_000  # where no copy was made yet
NEWEST = 9  # copies that an estimate is made from
ESTIMATE_STEP_S = 5
KEY, FRESH_S = "sabotage.copy_queue.typical", 30


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    """Where a copy is in the queue: how many are made before it, and about how long it takes."""

    before: int
    wait_s: int

    @property
    def said(self) -> str:
        """The same in words."""
        if not self.before:
            return f"It is being made; about {self.wait_s} s."
        are = "copy is" if self.before == 1 else "copies are"
        return f"{self.before} {are} before it; about {self.wait_s} s."


def under_way(kept: Mapping[str, Any]) -> bool:
    """Whether a copy was requested, and a worker may still make it."""
    if kept.get("state") != ASKED:
        return False
    if "begun_ms" in kept:
        return now_ms() - int(kept["begun_ms"]) < MADE_MS_MAX
    return now_ms() - int(kept["at_ms"]) < WAITED_MS_MAX


def waiting() -> list[tuple[UUID, Mapping[str, Any]]]:
    """The attacks that are to be made on a copy, in order: the one that is made now is first."""
    asked = _with_state(ASKED).values_list("id", "unguarded")
    return sorted((each for each in asked if under_way(each[1])), key=lambda each: _rank(each[1]))


def place_of(kept: Mapping[str, Any]) -> QueuePlace:
    """The place of an attack that waits."""
    return _place(kept, [each for _, each in waiting()])


def full() -> QueuePlace | None:
    """The place that another one would get, where that is too far back; None where there is room.

    What is made ahead of any press waits for all that is pressed for, and takes nobody's place.
    """
    pressed = [each for _, each in waiting() if not each.get("ahead")]
    return _place({"at_ms": now_ms()}, pressed) if len(pressed) >= WAITING_MAX else None


def _place(kept: Mapping[str, Any], queue: Sequence[Mapping[str, Any]]) -> QueuePlace:
    before = [each for each in queue if _rank(each) < _rank(kept)]
    typical_ms = _typical_ms()
    made_ms = [now_ms() - int(each["begun_ms"]) for each in (*before, kept) if "begun_ms" in each]
    left_ms = typical_ms * (len(before) + 1) - min(sum(made_ms[:1]), typical_ms)
    steps = max(1, -(-left_ms // (1000 * ESTIMATE_STEP_S)))
    return QueuePlace(before=len(before), wait_s=steps * ESTIMATE_STEP_S)


def _rank(kept: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """What is made now, then what was pressed for, then what is made ahead; each by its time."""
    return "begun_ms" not in kept, bool(kept.get("ahead")), int(kept["at_ms"])


def _typical_ms() -> int:
    """How long the newest copies took."""
    found = cache.get(KEY)
    if not isinstance(found, int):
        took = _with_state(DONE).exclude(unguarded__took_ms=None).order_by("-created_ms")
        newest = list(took.values_list("unguarded__took_ms", flat=True)[:NEWEST])
        found = int(median(newest)) if newest else TYPICAL_MS
        cache.set(KEY, found, FRESH_S)
    return found


def _with_state(state: str) -> QuerySet[Attack]:
    return Attack.objects.filter(unguarded__state=state)
