"""The processes in words: who starts them again, how each runs, and what it may open."""

import json
from typing import NamedTuple

from engine.clock import now_ms
from engine.ops.process_file import RUNNING, Node, Process, Processes

RULES = {  # by strategy: what a supervisor does when a process ends
    "one_for_one": "starts a process again when it ends",
    "one_for_all": "starts all of its processes again when one ends",
    "rest_for_one": "starts a process again when it ends, and those listed after it",
    "simple_one_for_one": "runs copies of one process, and starts a copy again when it ends",
}
DOES = {  # by agent, else by name
    "reader": "reads documents and asks the model",
    "payer": "decides and pays: all other steps of a run",
    "queue": "tells the others which run goes on",
    "stripe": "local Stripe test server",
    "signer": "signs the audit logs",
    "web": "serves these pages",
    "controller": "compares Stripe's list with the audit logs",
    "follow": "sends the audit logs as telemetry",
}
HOLDS = {  # by file or folder
    "app.sqlite3": "runs and audit logs of all workspaces",
    "keys.sqlite3": "the keys of encrypted values and documents",
    "kek": "the key that encrypts these keys",
    "media": "the documents, encrypted",
    "signer/logs": "what the signer signed last",
}


class Line(NamedTuple):
    """A process, and what it does in words."""

    name: str
    it: Process
    does: str


class Branch(NamedTuple):
    """A supervisor with what it starts. ``ends``: the restarts in its window now."""

    name: str
    it: Node
    rule: str
    ends: int
    children: tuple["Line | Branch", ...]


class Opens(NamedTuple):
    """What processes in the same state, behind the same walls, may open.

    ``it``: one of them. ``files``: each that is open, with what it holds.
    """

    names: list[str]
    it: Process
    files: list[tuple[str, str]]


def tree(found: Processes) -> list[Branch]:
    """The supervisors that no other one starts, each with all below it."""
    below = {name for each in found.supervisors.values() for name in each.children}
    return [_branch(found, name) for name in found.supervisors if name not in below]


def lines(found: Processes) -> list[Line]:
    """All processes."""
    return [Line(name, it, DOES.get(it.agent or name, "")) for name, it in found.processes.items()]


def opens(of: list[Line]) -> list[Opens]:
    """What these processes may open, those behind walls first; at last those that do not run."""
    groups: dict[str, list[Line]] = {}
    for line in of:
        walls = json.dumps(line.it.walls) if line.it.state == RUNNING else ""
        groups.setdefault(walls, []).append(line)
    found = []
    for _, same in sorted(groups.items(), reverse=True):  # "{…", "null", ""
        it = same[0].it
        files = it.walls["files"] if it.walls else []
        held = [(file, HOLDS.get(file.split(" (")[0], "")) for file in files]
        found.append(Opens([line.name for line in same], it, held))
    return found


def _branch(found: Processes, name: str) -> Branch:
    it, known = found.supervisors[name], {line.name: line for line in lines(found)}
    children = tuple(known.get(each) or _branch(found, each) for each in it.children)
    since = (it.gave_up_ms or now_ms()) - it.within_s * 1_000
    ends = sum(at >= since for at in it.ends_ms)
    return Branch(name, it, RULES[it.strategy], ends, children)
