"""How long the parts of a run's steps took in its workers: kept at the queue server for a while.

Diagnostics alone: nothing waits for the disk, no envelope bears them, and they may be lost.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from pipeline.ops import timings
from pipeline.runtime import queue

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

KEPT_SECONDS = 86_400
KEY = "nanovm.times."


@contextmanager
def kept(run_id: str) -> Iterator[None]:
    """Measure what is done to a run in the block, and add it to what is kept of it.

    Without a queue server nothing is; where it does not answer, that is logged.
    """
    with timings.recording() as made:
        yield
    found = made.steps()
    if settings.REDIS_URL and found:
        _keep(run_id, found)


def _keep(run_id: str, found: dict[str, dict[str, int]]) -> None:
    from redis import RedisError

    try:
        with _server(settings.REDIS_URL).pipeline(transaction=False) as asked:
            for step, parts in found.items():
                for part, micros in parts.items():
                    asked.hincrby(KEY + run_id, f"{step}/{part}", micros)
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
    if not micros:
        return {}
    return {
        name: each / 1000 for name, each in (micros | {timings.WHOLE: sum(micros.values())}).items()
    }


@cache
def _server(url: str) -> "Redis":
    return queue.connected(url)
