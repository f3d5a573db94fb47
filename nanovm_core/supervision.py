"""When a child process that ended is started again, and when its supervisor gives up.

Words and limits are those of OTP's supervisors: ``one_for_one`` (a child that ends is started
again, and no other), ``permanent`` (every child is, however it ended), restart intensity
(``MAX_RESTARTS`` ``WITHIN_MS``). It is pure: whoever starts processes gives it the times.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_RESTARTS = 5  # of one child,
WITHIN_MS = 60_000  # in so long a time: one more end stops everything
BACKOFF_MS = 250  # before the first restart; each further one in that time waits twice as long,
BACKOFF_MS_MAX = 4_000  # up to this


@dataclass(frozen=True, slots=True)
class Start:
    """Start the child again at this moment."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Escalate:
    """Stop everything: the child ended this often within ``WITHIN_MS``."""

    ends: int


def decide(ends_ms: Sequence[int], now: int) -> Start | Escalate:
    """What follows the newest of a child's ends, which is now; the same for the same times."""
    recent = [at for at in ends_ms if now - at < WITHIN_MS]
    if len(recent) > MAX_RESTARTS:
        return Escalate(len(recent))
    return Start(now + min(BACKOFF_MS << max(0, len(recent) - 1), BACKOFF_MS_MAX))
