"""Two workers, killed at random; messages late and twice; in the end all is as it must be."""

from collections import Counter
from pathlib import Path

import pytest

from nanovm_core.core import lifecycle as life
from pipeline.models import AdapterCall, Outbox, Run
from tests.crash.sim import Sim
from tests.crash.storm import storm
from tests.crash.verdict import faults
from tests.house.demo import wait_for_none


def weathered(data: Path, runs: int, kills: int, seed: int) -> int:
    """How many effects had to be begun again."""
    with storm(data, seed) as blown:
        blown.begin(runs)
        blown.blow(kills)
        blown.calm()
        assert faults(Sim(folder=data, world=blown.world())) == []
        ended = Counter(Run.objects.values_list("state", flat=True))
        paid = len(blown.world().succeeded())
        calls, effects = AdapterCall.objects.count(), Outbox.objects.count()
    assert wait_for_none(data) == []
    again = f"{blown.kills} kills under way, {calls - effects} effects begun again"
    print(f"storm: {runs} runs, {again}, {paid} payments")
    assert ended == {life.COMPLETED: paid, life.FAILED: runs - paid}
    assert paid == runs - runs // 10
    assert blown.kills >= kills // 2, "it was over before it began"
    return calls - effects


def test_a_small_storm_loses_nothing_and_pays_nothing_twice(data: Path) -> None:
    weathered(data, runs=10, kills=2, seed=4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_loses_nothing_and_pays_nothing_twice(data: Path, seed: int) -> None:
    assert weathered(data, runs=100, kills=20, seed=seed) > 0
