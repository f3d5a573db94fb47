"""Time is measured where it is asked for, each part once, and kept beside the queue for a while."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings

from engine.ops import timings
from engine.ops.processes import redis_server
from engine.ops.timings import COMMIT, GATE, REST, VAULT, WHOLE, of_step, recording, spent
from engine.runtime import step_times

RUN = "01a210a7-af16-7626-98d4-90f290e2c63d"
MS = 1_000_000


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at_ns = 0

    def __call__(self) -> int:
        return self.at_ns

    def pass_ms(self, milliseconds: int) -> None:
        self.at_ns += milliseconds * MS


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that everything is measured by."""
    made = Clock()
    monkeypatch.setattr(timings, "monotonic_ns", made)
    return made


def work(clock: Clock) -> None:
    """A step of 100 ms: a commit of 40 ms, of which the gate takes 10 and the vault 5, and 60."""
    with of_step("charge"):
        clock.pass_ms(20)
        with spent(COMMIT):
            clock.pass_ms(20)
            with spent(GATE):
                clock.pass_ms(10)
            with spent(VAULT):
                clock.pass_ms(5)
            clock.pass_ms(5)
        clock.pass_ms(40)


def test_what_is_measured_within_a_part_counts_once_and_all_adds_up(clock: Clock) -> None:
    with recording() as made:
        clock.pass_ms(3)
        work(clock)
        with spent(VAULT):
            clock.pass_ms(2)
    found = made.parts_ms()
    assert {part: ms for part, ms in found.items() if ms} == {
        GATE: 10,
        COMMIT: 25,
        VAULT: 7,
        REST: 63,
        WHOLE: 105,
    }
    steps = {GATE: 10_000, VAULT: 5_000, COMMIT: 25_000, REST: 60_000}
    assert made.steps() == {f"charge/{part}": micros for part, micros in steps.items()}


def test_nothing_is_measured_where_nobody_asks_and_one_recording_is_that_of_all_within(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording() as outer, recording() as inner:
        work(clock)
    assert inner is outer
    monkeypatch.setattr(timings, "monotonic_ns", lambda: pytest.fail("the clock was read"))
    work(clock)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A queue server, which the settings name."""
    with redis_server(tmp_path) as url:
        monkeypatch.setattr(settings, "REDIS_URL", url)
        yield url


def test_the_times_of_a_step_are_kept_for_a_while_and_attempts_add_up(
    clock: Clock, server: str
) -> None:
    for _ in range(2):
        with step_times.timed(RUN):
            work(clock)
    kept = step_times.of_step(RUN, "charge")
    assert kept == {GATE: 20, COMMIT: 50, VAULT: 10, REST: 120, WHOLE: 200}
    assert step_times.of_step(RUN, "vault") == {}
    with redis.Redis.from_url(server) as client:
        assert 0 < client.ttl(step_times.KEY + RUN) <= step_times.KEPT_SECONDS


def test_a_queue_server_that_is_away_stops_neither_a_run_nor_a_page(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    with step_times.timed(RUN):
        work(clock)
    assert step_times.of_step(RUN, "charge") == {}
