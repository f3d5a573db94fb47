"""How much waits, what was dropped and which child was restarted: numbers for ``/healthz``."""

import redis
from django.conf import settings
from django.db import DatabaseError

from config import restarts
from pipeline.queries.stuck_runs import waiting_ms
from pipeline.runtime import queue


def said() -> dict[str, object]:
    """What is known of it; what cannot be asked is left out, for /healthz says elsewhere why.

    ``queue_length`` counts messages that no worker took yet, ``dropped`` those that were malformed
    since the queue server started, ``restarts`` the children of ``make demo`` that ended.
    """
    return {**_queue(), **_runs(), **_restarts()}


def _queue() -> dict[str, int]:
    if not settings.REDIS_URL:
        return {}
    try:
        waiting, dropped = queue.counts(settings.REDIS_URL)
    except (redis.RedisError, OSError, ValueError):
        return {}
    return {"queue_length": waiting, "dropped": dropped}


def _runs() -> dict[str, int]:
    try:
        return {"oldest_waiting_ms": waiting_ms()}
    except DatabaseError:
        return {}


def _restarts() -> dict[str, object]:
    found = restarts.recorded()
    return {} if found is None else {"restarts": found}
