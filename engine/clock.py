"""The clock: the only module that reads the time or waits."""

import time
from time import perf_counter_ns


def now_ms() -> int:
    """Milliseconds UTC."""
    return time.time_ns() // 1_000_000


def monotonic_ns() -> int:
    """Nanoseconds of a monotonic clock, to measure durations."""
    return perf_counter_ns()


def sleep_ms(duration_ms: float) -> None:
    """Wait: between attempts at the outside, and for spectators."""
    time.sleep(duration_ms / 1000)
