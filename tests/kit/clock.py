"""A test's own time: this process's clock moved on, and programs that make attempts wait."""

import time
from collections.abc import Callable

import pytest

from engine.worker import drive
from pipeline.application import INVOICES

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Leap = Callable[[int], None]


def leaping(monkeypatch: pytest.MonkeyPatch) -> Leap:
    """What moves this process's clock on, by so many milliseconds."""
    real, ahead_ms = time.time_ns, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_ms[0] * 1_000_000)

    def leap(duration_ms: int) -> None:
        ahead_ms[0] += duration_ms

    return leap


def stopped(monkeypatch: pytest.MonkeyPatch) -> Leap:
    """What moves the time of runs on, which stands still otherwise; pauses of a driver take none.

    However slow the machine is, nothing comes due before a test or a pause says so.
    """
    began_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: began_ns)
    leap = leaping(monkeypatch)
    monkeypatch.setattr(drive, "sleep_ms", leap)
    return leap


def with_backoff(monkeypatch: pytest.MonkeyPatch, backoff_ms: int) -> None:
    """Ship the program with a pause before each further attempt."""
    said = b"retry = { attempts_max = 3 }"
    source = INVOICES.source()
    assert said in source
    paused = b"retry = { attempts_max = 3, backoff_ms = %d }" % backoff_ms
    monkeypatch.setattr(INVOICES, "source", lambda: source.replace(said, paused))
