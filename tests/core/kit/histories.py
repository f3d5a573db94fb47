"""Golden histories as files: what was said to a run, and what each event came to."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from nanovm_core.core import events
from nanovm_core.core.envelope import encode_snapshot, snapshot_hash
from nanovm_core.core.events import Context, Event
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.core.messages import Commitment, Decision, Recorded, RunId
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import ROOT, Scene, worker_context
from tests.core.kit.chain import sealed

FOLDER = ROOT / "tests/vectors"
VERSION = "nanovm-history/1"
USUAL = worker_context(at_ms=-1)  # what a line says by saying nothing

# --- events and contexts as JSON -------------------------------------------------------------


def said(event: Event) -> dict[str, Any]:
    """An event as a line of a history: its name, and every field that is not as usual."""
    usual = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(event)
    }
    return {"event": type(event).__name__, **_unusual(event, usual)}


def known(context: Context) -> dict[str, Any]:
    """A context as a line of a history: every field that is not as usual."""
    return _unusual(context, {field.name: getattr(USUAL, field.name) for field in fields(context)})


def _unusual(found: Event | Context, usual: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: getattr(found, name) for name in usual}
    return {name: _plain(value) for name, value in given.items() if value != usual[name]}


def heard(line: Mapping[str, Any]) -> Event:
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
    history = tuple(Recorded(*each) for each in line.get("history", ()))
    return {
        **line,
        "ledger": line.get("ledger", {}),
        "history": history,
        "revoked": frozenset(line.get("revoked", ())),
    }


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
    lines = [
        {"said": said(event), "context": known(context), "comes_to": came_to(then)}
        for event, context, then in scene.heard
    ]
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
    lines = [
        came_to(scene.feed(heard(line["said"]), **known_of(line["context"])))
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
