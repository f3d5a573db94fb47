"""The clock: the only module that reads the time or waits."""

import time

monotonic_ns = time.perf_counter_ns  # to measure durations


def now_ms() -> int:
    """Milliseconds UTC."""
    return time.time_ns() // 1_000_000


def sleep_ms(duration_ms: float) -> None:
    """Wait: between attempts at the outside, and for spectators."""
    time.sleep(duration_ms / 1000)
