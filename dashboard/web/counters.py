"""Counters that refill with time: in the queue server for all processes, else in this one."""

import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings

log = logging.getLogger(__name__)

ANSWER_S_MAX = 0.5  # a visitor's press waits for it
KEYS_MAX = 50_000  # that this process remembers while the queue server is away: some megabytes
PREFIX = "nanovm:quota:"
# Each key holds the time (µs) at which its counter is empty again, and is gone by then. All
# charges are taken, or none: a refused request uses up nothing.
SCRIPT = """
local t = redis.call('TIME')
local now, worst, wait, after = t[1] * 1000000 + t[2], 0, 0, {}
for i, key in ipairs(KEYS) do
  local most, period, cost = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local empty = math.max(tonumber(redis.call('GET', key) or 0), now)
  after[i] = math.floor(empty + cost * period / most)
  if after[i] - period - now > wait then wait, worst = after[i] - period - now, i end
end
if worst == 0 then
  for i, key in ipairs(KEYS) do
    local left = math.ceil((after[i] - now) / 1000)
    if left > 0 then redis.call('SET', key, string.format('%.0f', after[i]), 'PX', left) end
  end
end
return {worst, wait}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCharge:
    """``cost`` of the ``most`` that ``key`` may use at once, and again in each period."""

    key: str
    most: int
    period_s: int
    cost: int = 1


def charge_all(charges: Sequence[RateCharge]) -> tuple[int, float] | None:
    """Charge all counters or none. If none: index of the fullest, and seconds to wait.

    Where the queue server does not answer, this process counts alone: nobody is refused for that,
    and nobody goes uncounted.
    """
    from redis import RedisError  # a command starts without the client

    if settings.REDIS_URL:
        try:
            return _charge_there(settings.REDIS_URL, charges)
        except (RedisError, OSError) as error:
            log.warning("quotas are counted in this process: %s", type(error).__name__)
    return _here.charge_all(charges, time.time_ns() // 1000)


class LocalCounters:
    """The same in this process's memory; what is empty again is forgotten when there are many."""

    def __init__(self) -> None:
        self._empty: dict[str, int] = {}
        self._lock = threading.Lock()

    def charge_all(self, charges: Sequence[RateCharge], now_us: int) -> tuple[int, float] | None:
        """``charge_all`` at this time."""
        with self._lock:
            after = {
                each.key: math.floor(
                    max(self._empty.get(each.key, 0), now_us)
                    + each.cost * each.period_s * 1_000_000 / each.most
                )
                for each in charges
            }
            waits = [after[each.key] - each.period_s * 1_000_000 - now_us for each in charges]
            worst = max(waits, default=0)
            if worst > 0:
                return waits.index(worst), worst / 1_000_000
            if len(self._empty) > KEYS_MAX:
                self._empty = {key: at for key, at in self._empty.items() if at > now_us}
            self._empty |= after
            return None


_here = LocalCounters()


def _charge_there(url: str, charges: Sequence[RateCharge]) -> tuple[int, float] | None:
    keys = [PREFIX + each.key for each in charges]
    numbers = [n for each in charges for n in (each.most, each.period_s * 1_000_000, each.cost)]
    worst, wait_us = _script(url)(keys=keys, args=numbers)
    return (worst - 1, wait_us / 1_000_000) if worst else None


@cache
def _script(url: str) -> Any:
    return client(url).register_script(SCRIPT)


def client(url: str) -> Any:
    """A client of the queue server that waits ``ANSWER_S_MAX`` for each answer, and asks once."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    limits = {"socket_timeout": ANSWER_S_MAX, "socket_connect_timeout": ANSWER_S_MAX}
    return Redis.from_url(url, retry=Retry(NoBackoff(), 0), **limits)
