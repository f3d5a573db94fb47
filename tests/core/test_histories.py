"""Golden histories: the same events give the same envelopes, states and values, for ever."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from nanovm_core import messages
from nanovm_core.envelope import encode_snapshot, snapshot_hash
from nanovm_core.messages import Commitment, Event
from nanovm_core.policy import load_policy
from nanovm_core.program import load_program
from tests.core.builders import ROOT, Play
from tests.core.chain import sealed

FOLDER = ROOT / "tests/vectors"
FILES = sorted(FOLDER.glob("history_*.json"))


def event_of(value: Mapping[str, Any]) -> Event:
    """The event that a line of a history says."""
    given = dict(value)
    kind: type[Event] = getattr(messages, given.pop("event"))
    if "secrets" in given:
        given["secrets"] = tuple(Commitment(**each) for each in given["secrets"])
    if "secret" in given:
        given |= {"secret": Commitment(**given["secret"]), "raw": given["raw"].encode()}
    if "refs" in given:
        given["refs"] = tuple(given["refs"])
    return kind(**given)


def played(history: Mapping[str, Any]) -> tuple[Play, list[dict[str, Any]]]:
    """The run after a history, and what each event came to."""
    rules = load_program((FOLDER / "program.toml").read_bytes())
    rules = rules.under(load_policy((FOLDER / "policy.toml").read_bytes()))
    play = Play(rules)
    came_to = []
    for line in history["events"]:
        play.funds = MappingProxyType(line["funds"])
        decision = play.feed(event_of(line["said"]))
        came_to.append(
            {
                "kinds": [draft.kind for draft in decision.drafts],
                "state": decision.snapshot.state,
                "refused": decision.refusal.code if decision.refusal else "",
                "absorbed": decision.absorbed,
                "owes": [effect.tool for effect in decision.effects],
            }
        )
    return play, came_to


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem.removeprefix("history_"))
def test_history_gives_what_it_always_gave(file: Path) -> None:
    history = json.loads(file.read_text())
    play, came_to = played(history)
    assert came_to == [line["comes_to"] for line in history["events"]]
    assert snapshot_hash(encode_snapshot(play.now)) == history["snapshot"]
    assert sealed(play)[-1].hash == history["head"]


def test_there_are_histories_of_every_end_and_many_refusals() -> None:
    histories = [json.loads(file.read_text()) for file in FILES]
    ends = {history["events"][-1]["comes_to"]["state"] for history in histories}
    assert {"terminated.completed", "terminated.failed", "terminated.killed"} <= ends
    refused = {line["comes_to"]["refused"] for each in histories for line in each["events"]}
    assert len(refused - {""}) >= 12
