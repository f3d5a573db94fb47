"""Every point of every story: the process dies there, comes back, and all is as it must be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.crashes import DAY_MS, Wreck, recovered, wrecked_again, wrecks
from tests.crash.stories import PAID, STORIES, Story

PAYMENT = "payment: "
each_story = pytest.mark.parametrize("story", STORIES, ids=lambda each: each.name)


def different(found: list[Wreck]) -> list[Wreck]:
    """One of each run of points between which nothing that lasts was changed."""
    states = [each.state() for each in found]
    return [
        each for place, each in enumerate(found) if place == 0 or states[place] != states[place - 1]
    ]


@each_story
def test_a_crash_at_any_point_loses_nothing_and_does_nothing_twice(
    story: Story, data: Path, record_property: Callable[[str, object], None]
) -> None:
    """A part of the states here, all of them in the soak."""
    found, points = wrecks(story, data)
    states = different(found)[1 :: story.every]
    bad = [fault for left in states for fault in recovered(story, left)]
    assert bad == []
    print(f"{story.name}: {points} crash points, {len(states)} states tried, all held")
    assert points >= story.points_min
    record_property("crash points", len(states))


def test_a_day_without_anybody_leads_to_one_payment(data: Path) -> None:
    found, _ = wrecks(PAID, data, lambda point: point.startswith(PAYMENT))
    assert [fault for left in found for fault in recovered(PAID, left, DAY_MS)] == []
    assert len(found) == 3


@pytest.mark.soak
@each_story
@pytest.mark.parametrize("outage_ms", [1_001, 40_000, 61_000, DAY_MS])
def test_a_crash_at_any_point_and_any_outage(story: Story, data: Path, outage_ms: int) -> None:
    found, points = wrecks(story, data)
    assert [fault for left in found for fault in recovered(story, left, outage_ms)] == []
    print(f"{story.name}: crash points: {points}, {outage_ms} ms later, all held")


@pytest.mark.soak
@each_story
def test_a_crash_while_it_comes_back(story: Story, data: Path) -> None:
    found = different(wrecks(story, data)[0])
    again = [each for left in found for each in wrecked_again(story, left, 3)]
    assert [fault for left in again for fault in recovered(story, left)] == []
    print(f"{story.name}: second crashes: {len(again)}, all held")
