"""Golden histories: what a run was told, and what each event came to.

``python -m tests.core.kit.histories`` writes what the recorded events come to now. Run it by
hand, and say in the commit why the kernel may decide something else than it did.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nanovm_core.core import events
from nanovm_core.core.envelope import encode_snapshot, snapshot_hash
from nanovm_core.core.events import Event
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.core.messages import Commitment, Decision, RunId
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import ROOT, Scene
from tests.core.kit.chain import sealed

FOLDER = ROOT / "tests/vectors"
VERSION = "nanovm-history/1"
FILES = sorted(FOLDER.glob("history_*.json"))


def named(file: Path) -> str:
    """A history's name."""
    return file.stem.removeprefix("history_")


def read(path: Path) -> dict[str, Any]:
    """A history."""
    history: dict[str, Any] = json.loads(path.read_text())
    assert history["v"] == VERSION
    return history


def event_of(line: Mapping[str, Any]) -> Event:
    """The event that a line of a history says."""
    given = dict(line)
    kind: type[Event] = getattr(events, given.pop("event"))
    if "secret" in given:
        given["secret"] = Commitment(*given["secret"])
    if "raw" in given:
        given["raw"] = given["raw"].encode()
    if "secrets" in given:
        given["secrets"] = tuple(Commitment(*each) for each in given["secrets"])
    for name in ("refs", "kept"):
        if name in given:
            given[name] = tuple(given[name])
    return kind(**given)


def known_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the context that a line of a history gives."""
    shared = {"ledger": line.get("ledger", {}), "revoked": frozenset(line.get("revoked", ()))}
    return {**line, **shared}


def came_to(decision: Decision) -> dict[str, Any]:
    """What an event came to, as a line of a history."""
    after = decision.snapshot
    return {
        "state": after.state,
        "step": after.step,
        "kinds": [draft.kind for draft in decision.drafts],
        "owes": [effect.tool for effect in decision.effects],
        "budgets": [list(change) for change in decision.budgets],
        "refused": decision.refusal.code if decision.refusal else "",
        "absorbed": decision.absorbed,
        "snapshot": snapshot_hash(encode_snapshot(after)),
    }


def source(part: Mapping[str, Any]) -> bytes:
    """A program or a policy of a history: a file with some of its text changed."""
    text: str = (FOLDER / part["file"]).read_text()
    for old, new in part["edits"]:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is {text.count(old)} times in {part['file']}")
        text = text.replace(old, new)
    return text.encode()


def rules(history: Mapping[str, Any]) -> Program:
    """The program of a history, under its policy."""
    program = load_program(source(history["program"]))
    if history["policy"] is None:
        return program
    return program.under(load_policy(source(history["policy"]), program))


def replayed(history: Mapping[str, Any]) -> tuple[Scene, list[dict[str, Any]]]:
    """The run that a history tells, played again from its events, and what each came to."""
    begun = history["begun"]
    secrets = [Commitment(*each) for each in begun["secrets"]]
    run, agent = RunId(begun["run"]), begun["agent"]
    stepping = begun["stepping"]
    scene = Scene(rules(history), begun["slots"], secrets, stepping=stepping, agent=agent, run=run)
    lines = [
        came_to(scene.feed(event_of(line["said"]), **known_of(line["context"])))
        for line in history["events"]
    ]
    return scene, lines


def differences(history: Mapping[str, Any]) -> tuple[str, ...]:
    """What of a history does not come out as it says; nothing, where it is genuine."""
    try:
        scene, lines = replayed(history)
    except ProgramError:
        return ("program",)
    found = [name for name, value in _ends(scene).items() if value != history[name]]
    told = [line["comes_to"] for line in history["events"]]
    places = [place for place, line in enumerate(lines) if line != told[place]]
    return (*found, *(f"events/{place}" for place in places))


def _ends(scene: Scene) -> dict[str, str]:
    return {
        "program_hash": scene.program.hash,
        "policy_hash": scene.program.policy.hash,
        "capabilities": capabilities_hash(scene.program),
        "snapshot": snapshot_hash(encode_snapshot(scene.now)),
        "head": sealed(scene)[-1].hash,
    }


def main() -> None:
    """Write what the events of every history come to now."""
    for path in FILES:
        history = read(path)
        scene, lines = replayed(history)
        for line, came in zip(history["events"], lines, strict=True):
            line["comes_to"] = came
        text = json.dumps({**history, **_ends(scene)}, indent=1, ensure_ascii=True)
        path.write_text(text + "\n")
    sys.stdout.write(f"{len(FILES)} histories written to {FOLDER}\n")


if __name__ == "__main__":
    main()
