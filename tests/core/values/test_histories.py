"""Golden histories: the same events give the same envelopes, states and values, for ever."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import check_chain
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.fsm import transition
from tests.core.kit.builders import Scene, replay
from tests.core.kit.chain import comes_back, sealed
from tests.core.kit.histories import FILES, FOLDER, differences, named, read, replayed, rules


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


@pytest.mark.parametrize("file", FILES, ids=named)
def test_what_was_sealed_is_one_chain_and_ends_with_the_value(file: Path) -> None:
    scene, _ = played(file)
    check_chain(sealed(scene), run=scene.first.run)
    before = scene.first
    for event, context, decision in scene.heard:
        assert transition(scene.program, before, event, context) == decision
        assert decision.snapshot == (decision.drafts[-1].after if decision.drafts else before)
        before = decision.snapshot


def test_histories_that_must_be_refused_at_last_are() -> None:
    codes = set()
    for file in FILES:
        history = read(file)
        code = history["refused_at_last"]
        if code:
            scene, lines = played(file)
            assert lines[-1]["refused"] == code, file.name
            assert lines[-1]["kinds"][0] == "refused"
            before, after = scene.heard[-2][2].snapshot, scene.now
            assert (after.state, after.slots) == (before.state, before.slots)
            assert after == before or isinstance(scene.heard[-1][0], ProposalReceived)
            codes.add(code)
    assert codes >= {
        *("FSM-001", "FSM-002", "FSM-004", "FSM-007", "FSM-009", "FSM-012", "FSM-015"),
        *("CAP-002", "CAP-007", "CAP-008", "POL-003", "POL-010", "POL-021", "PRG-010"),
    }


def test_histories_reach_every_end_and_many_refusals() -> None:
    lines = [line["comes_to"] for file in FILES for line in read(file)["events"]]
    assert {life.COMPLETED, life.FAILED, life.KILLED} <= {line["state"] for line in lines}
    assert set(life.STATES) - {life.NEGOTIATION, life.READY} <= {line["state"] for line in lines}
    assert len({line["refused"] for line in lines} - {""}) >= 20
    assert {"ignored", "erasure_done", "failed", "suspended", "resumed", "terminal"} <= {
        kind for line in lines for kind in line["kinds"]
    }


def test_changed_expectation_or_event_is_missed() -> None:
    history = read(FOLDER / "history_invoice_paid.json")
    last = len(history["events"]) - 1
    assert differences({**history, "head": "0" * 64}) == ("head",)
    assert "head" in differences({**history, "events": history["events"][1:]})
    history["events"][last]["comes_to"]["state"] = life.KILLED
    assert differences(history) == (f"events/{last}",)
    history["events"][0]["context"]["at_ms"] += 1
    assert "head" in differences(history)
