"""Golden histories: the same events give the same envelopes, states and values, for ever."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit.builders import Scene, replay
from tests.core.kit.chain import comes_back
from tests.core.kit.histories import FILES, differences, named, read, replayed, rules


@cache
def played(file: Path) -> tuple[Scene, list[dict[str, Any]]]:
    """The run of a history, played once for all tests that only look at it."""
    return replayed(read(file))


@pytest.mark.parametrize("file", FILES, ids=named)
def test_history_gives_what_it_always_gave(file: Path) -> None:
    assert differences(read(file)) == ()


@pytest.mark.parametrize("file", FILES, ids=named)
def test_replay_alone_gives_the_same_value_from_anywhere_on_the_way(file: Path) -> None:
    scene, _ = played(file)
    program = rules(read(file))  # another object, compiled from the same bytes
    events = [(event, context) for event, context, _ in scene.heard]
    assert replay(program, scene.first, events) == scene.now
    middle = len(events) // 2
    for place in {0, middle, len(events) - 1}:
        snapshot = scene.heard[place][2].snapshot
        assert replay(program, snapshot, events[place + 1 :]) == scene.now
    for draft in scene.drafts:
        assert comes_back(draft.after)
