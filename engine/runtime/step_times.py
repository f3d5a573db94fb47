"""How long the parts of a run's steps took in its workers: kept at the queue server for a while.

Diagnostics alone: nothing waits for the disk, no envelope bears them, and they may be lost.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from engine.ops import timings
from engine.runtime import queue

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

KEPT_SECONDS = 86_400
# A run's steps may take a millisecond each: their worker waits for no exchange after each of them.
SOON_S = 0.05
KEY = "nanovm.times."


@dataclass(slots=True)
class Unkept:
    """What this process measured and has not sent yet: microseconds by run, then step and part."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    is_put_off: bool = False
    runs: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, run_id: str, found: Counter[str]) -> bool:
        """Add what a block measured; whether it is the first that waits."""
        with self.lock:
            is_first = not self.runs
            self.runs.setdefault(run_id, Counter()).update(found)
        return is_first

    def taken(self) -> dict[str, Counter[str]]:
        """Remove and return all of it."""
        with self.lock:
            found, self.runs = self.runs, {}
        return found


_unkept = Unkept()


@contextmanager
def timed(run_id: str) -> Iterator[None]:
    """Measure what is done to a run in the block, and add it to what is kept of it.

    Without a queue server nothing is; where it does not answer, that is logged.
    """
    with timings.recording() as made:
        yield
    found = made.steps()
    if settings.REDIS_URL and found:
        _keep(run_id, found)


def put_off() -> None:
    """From now on have other threads of this process send what was measured, within SOON_S.

    What waits when the process ends is lost.
    """
    _unkept.is_put_off = True


def _keep(run_id: str, found: dict[str, int]) -> None:
    is_first = _unkept.add(run_id, Counter(found))
    if not _unkept.is_put_off:
        send()
    elif is_first:
        soon = threading.Timer(SOON_S, send)
        soon.daemon = True
        soon.start()


def send() -> None:
    """Send what waits to the queue server, in one exchange."""
    from redis import RedisError

    runs = _unkept.taken()
    if not runs:
        return
    try:
        with _server(settings.REDIS_URL).pipeline(transaction=False) as asked:
            for run_id, found in runs.items():
                for name, micros in found.items():
                    asked.hincrby(KEY + run_id, name, micros)
                asked.expire(KEY + run_id, KEPT_SECONDS)
            asked.execute()
    except (RedisError, OSError) as error:
        log.warning("the times of a run were not kept: %s", type(error).__name__)


def of_step(run_id: str, step: str) -> dict[str, float]:
    """Milliseconds of a step by part, the rest and the whole at the end; empty where not kept."""
    from redis import RedisError

    if not settings.REDIS_URL:
        return {}
    names = (*timings.PARTS, timings.REST)
    try:
        stored = _server(settings.REDIS_URL).hmget(KEY + run_id, [f"{step}/{n}" for n in names])
    except (RedisError, OSError) as error:
        log.warning("the times of a run were not read: %s", type(error).__name__)
        return {}
    micros = {name: int(each) for name, each in zip(names, stored, strict=True) if each}
    whole = {timings.WHOLE: sum(micros.values())} if micros else {}
    return {name: each / 1000 for name, each in {**micros, **whole}.items()}


@cache
def _server(url: str) -> "Redis":
    return queue.connected(url)
