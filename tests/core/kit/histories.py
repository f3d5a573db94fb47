"""Golden histories as files: what was said to a run, and what each event came to."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any

from nanovm_core.core import events
from nanovm_core.core.envelope import encode_snapshot, snapshot_hash
from nanovm_core.core.events import Event
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.core.messages import Commitment, Decision, Recorded, RunId
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import ROOT, Scene
from tests.core.kit.chain import sealed

FOLDER = ROOT / "tests/vectors"
VERSION = "nanovm-history/1"
USUAL = {"by_holder": True, "vouched": True}  # what a line says by saying nothing

# --- events as JSON --------------------------------------------------------------------------


def said(event: Event) -> dict[str, Any]:
    """An event as a line of a history: its name, and every field that is not as usual."""
    found: dict[str, Any] = {"event": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
        usual = field.default if field.default_factory is MISSING else field.default_factory()
        usual = USUAL.get(field.name, usual)
        if value != usual:
            found[field.name] = _plain(value)
    return found


def heard(line: Mapping[str, Any]) -> Event:
    """The event that a line of a history says."""
    given = dict(line)
    kind: type[Event] = getattr(events, given.pop("event"))
    given = {name: True for name in USUAL if name in kind.__dataclass_fields__} | given
    if "secret" in given:
        given["secret"] = Commitment(*given["secret"])
    if "raw" in given:
        given["raw"] = given["raw"].encode()
    for name, read in (("secrets", Commitment), ("history", Recorded)):
        if name in given:
            given[name] = tuple(read(*each) for each in given[name])
    for name in ("refs", "kept"):
        if name in given:
            given[name] = tuple(given[name])
    if "revoked" in given:
        given["revoked"] = frozenset(given["revoked"])
    return kind(**given)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


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


# --- whole histories -------------------------------------------------------------------------


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


def recorded(scene: Scene, given: Mapping[str, Any]) -> dict[str, Any]:
    """A played run as a history; ``given`` says what it is about and its program's files."""
    first = scene.first
    refs = {each.slot for each in scene.secrets}
    begun = {
        "run": first.run,
        "agent": first.agent,
        "stepping": first.stepping,
        "slots": {name: value for name, value in first.slots.items() if name not in refs},
        "secrets": [list(each) for each in scene.secrets],
    }
    lines = [{"said": said(event), "comes_to": came_to(then)} for event, then in scene.heard]
    return {"v": VERSION, **given, "begun": begun, "events": lines, **_ends(scene)}


def replayed(history: Mapping[str, Any]) -> tuple[Scene, list[dict[str, Any]]]:
    """The run that a history tells, played again from its events, and what each came to."""
    begun = history["begun"]
    secrets = [Commitment(*each) for each in begun["secrets"]]
    scene = Scene(
        rules(history),
        begun["slots"],
        secrets,
        stepping=begun["stepping"],
        agent=begun["agent"],
        run=RunId(begun["run"]),
    )
    lines = []
    for line in history["events"]:
        event = heard(line["said"])
        scene.ledger = MappingProxyType(dict(event.ledger))
        scene.history, scene.revoked = event.history, event.revoked
        lines.append(came_to(scene.feed(event)))
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
