"""Paired measuring: contestants take turns in short shuffled rounds, and only ratios count."""

import gc
import random
import statistics
import timeit
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

SEED = 20_231_114
ROUNDS = 41  # an odd number, so that a median is a round that happened
BATCH_NS = 1_000_000  # much longer than a timer's step, shorter than a scheduler's turn
BATCHES = 3  # a turn is the quickest of these, so other load of the machine counts less
CALLS_MAX = 1_000_000


class Contestant(NamedTuple):
    """A statement that is timed in place, among these names: no wrapper call is in the way."""

    name: str
    statement: str
    names: Mapping[str, object]


class Ratio(NamedTuple):
    """How many times as long, round by round: the median, and the least and greatest round."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        """For a table: the median, and the rounds about it."""
        return f"{three(self.median)} ({three(self.low)} … {three(self.high)})"


class Measured(NamedTuple):
    """What each contestant took for one call, in nanoseconds, round by round."""

    rounds: Mapping[str, Sequence[float]]

    def ratio(self, of: str, to: str) -> Ratio:
        """How long ``of`` takes in units of ``to``, each round with itself."""
        pairs = zip(self.rounds[of], self.rounds[to], strict=True)
        each = [one / other for one, other in pairs]
        return Ratio(statistics.median(each), min(each), max(each))

    def us(self, name: str) -> float:
        """The median time of one call, in microseconds; of no use without its ratio."""
        return statistics.median(self.rounds[name]) / 1000


def compare(contestants: Sequence[Contestant], *, rounds: int = ROUNDS) -> Measured:
    """Time the contestants against each other, every one in every round, in shuffled order."""
    batches = {each.name: _batch(each) for each in contestants}
    if len(batches) != len(contestants):
        raise ValueError("Two contestants have one name; give each its own.")
    return measure(batches, rounds=rounds)


def measure(batches: Mapping[str, Callable[[], float]], *, rounds: int) -> Measured:
    """Call each batch once a round, in shuffled order; a batch answers nanoseconds a call."""
    order, dice = list(batches), random.Random(SEED)  # noqa: S311 - it shuffles, it hides nothing
    found: dict[str, list[float]] = {name: [] for name in batches}
    gc.collect()
    gc.freeze()  # the peers' modules are not collected during a measurement
    for _ in range(rounds):
        dice.shuffle(order)
        for name in order:
            found[name].append(batches[name]())
    gc.unfreeze()
    return Measured(found)


def _batch(contestant: Contestant) -> Callable[[], float]:
    """A turn: batches of about ``BATCH_NS``, the garbage collector running as in service."""
    timer = timeit.Timer(
        contestant.statement,
        setup="gc.enable()",
        globals={**contestant.names, "gc": gc},
    )
    calls = 1
    while (took := timer.timeit(calls) * 1e9) < BATCH_NS / 2 and calls < CALLS_MAX:
        calls *= 2
    calls = max(1, min(CALLS_MAX, round(calls * BATCH_NS / took)))
    return lambda: min(timer.repeat(BATCHES, calls)) * 1e9 / calls


def three(number: float) -> str:
    """Three significant digits, or all the digits before the point."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
