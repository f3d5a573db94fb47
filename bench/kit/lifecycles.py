"""The run's lifecycle in other people's state machines: same states, guard and audit record."""

import hashlib
from collections.abc import Mapping
from typing import Any

from statemachine import State, StateChart, StateMachine
from transitions import Machine
from transitions.extensions import HierarchicalMachine

START_MS = 1_700_000_000_000
OUT: Mapping[str, object] = {"size_bytes": 1000}
TREE = {
    "initializing": ("negotiation", "allocation"),
    "running": ("active", "idle", "waiting"),
    "suspended": ("paused", "exhausted", "held"),
    "terminated": ("completed", "failed", "killed"),
}
LIVE = ("active", "idle", "waiting", "paused", "exhausted", "held")
# event, from, to, guard, name in the history
TABLE = (
    ("negotiate", "negotiation", "allocation", "", "moved"),
    ("start", "allocation", "active", "", "moved"),
    ("done", "active", "active", "owes", "answered"),
    ("finish", "active", "completed", "owes", "moved"),
    ("fail", "active", "failed", "owes", "moved"),
    ("doubt", "active", "held", "owes", "moved"),
    ("wait", "active", "waiting", "owes", "moved"),
    ("arrive", "waiting", "active", "owes", "moved"),
    ("rest", "active", "idle", "", "moved"),
    ("wake", "idle", "active", "", "moved"),
    ("exhaust", "active", "exhausted", "", "moved"),
    ("pause", "active", "paused", "", "moved"),
    ("resume", "paused", "active", "", "moved"),
    ("resume", "exhausted", "active", "", "moved"),
    ("approve", "held", "active", "", "moved"),
    ("decline", "held", "failed", "", "moved"),
    *(("kill", state, "killed", "", "moved") for state in LIVE),
)


class Run:
    """An application's own state around its state machine: the pending effect, slots, history.

    A run that does not ``record`` pays for state and guard alone.
    """

    state: Any = None

    def __init__(self, *, records: bool) -> None:
        self.records = records
        self.attempt = 0
        self.slots: dict[str, object] = {"document": "vault://secret/1", "payment_method": "pm"}
        self.record: tuple[dict[str, object], ...] = ()
        self.owed = self.next_key()

    def next_key(self) -> str:
        """The idempotency key of the next effect: hash(run, step, tool, attempt)."""
        self.attempt += 1
        parts = ("01990000-0000-7000-8000-000000000001", "extract", "invoice.extract")
        return hashlib.sha256("\0".join((*parts, str(self.attempt))).encode()).hexdigest()

    def owes(self, answered_key: str = "", out: Mapping[str, object] = OUT) -> bool:
        """The guard: whether this answers the pending effect."""
        return answered_key == self.owed

    def moved(self, answered_key: str = "", out: Mapping[str, object] = OUT) -> None:
        """Record a change of state."""
        if self.records:
            state = {"from": "paused", "event": "ResumeRequested", "to": "active"}
            body = {"step": "extract", "state": state, "rule": "", "outcome": ""}
            self.record = (self.draft("resumed", body),)

    def answered(self, answered_key: str = "", out: Mapping[str, object] = OUT) -> None:
        """Take the result, owe the next effect, and record both."""
        if not self.records:
            return
        state = {"from": "active", "event": "EffectDone", "to": "active"}
        result = {"step": "receive", "state": state, "tool": "document.receive", "secrets": []}
        result |= {"idempotency_key": answered_key, "outcome": "done", "out": dict(out)}
        self.slots = {**self.slots, **out}
        self.owed = self.next_key()
        intent = {"step": "extract", "state": state, "tool": "invoice.extract"}
        intent |= {"idempotency_key": self.owed, "in": {"document": self.slots["document"]}}
        self.record = (self.draft("result", result), self.draft("intent", intent))

    def refused(self) -> None:
        """Record a refusal."""
        if self.records:
            state = {"from": "active", "event": "EffectDone", "to": "active"}
            decision = {"verdict": "BLOCKED", "rules": ["FSM-001"]}
            body = {"step": "extract", "state": state, "rule": "FSM-001", "decision": decision}
            self.record = (self.draft("refused", body),)

    def draft(self, kind: str, body: dict[str, Any]) -> dict[str, object]:
        """One record, as an envelope would be drafted."""
        return {"kind": kind, "at_ms": START_MS, "actor": "runtime", "body": body}


def transitions_flat(run: Run) -> Any:
    """The ``transitions`` package with eleven plain states; it puts the events on the run."""
    states = [_state(name) for inner in TREE.values() for name in inner]
    rows = [(event, source, to, guard, after) for event, source, to, guard, after in TABLE]
    return _machine(Machine, run, states, rows, "negotiation")


def transitions_nested(run: Run) -> Any:
    """The ``transitions`` package's hierarchical machine with four states that hold eleven."""
    states = [
        {"name": above, "children": [_state(name) for name in inner]}
        for above, inner in TREE.items()
    ]
    path = {name: f"{above}_{name}" for above, inner in TREE.items() for name in inner}
    rows = [(event, path[s], path[to], guard, after) for event, s, to, guard, after in TABLE]
    return _machine(HierarchicalMachine, run, states, rows, path["negotiation"])


def _state(name: str) -> dict[str, Any]:
    """A state of the ``transitions`` package; a terminal one absorbs what comes too late."""
    return {"name": name, "ignore_invalid_triggers": name in TREE["terminated"]}


def _machine(kind: Any, run: Run, states: Any, rows: Any, initial: str) -> Any:
    arrows = [
        {"trigger": event, "source": source, "dest": to, "conditions": guard or [], "after": after}
        for event, source, to, guard, after in rows
    ]
    kind(run, states=states, transitions=arrows, initial=initial, auto_transitions=False)
    return run


def _events(states: Mapping[str, Any]) -> dict[str, Any]:
    """The table as python-statemachine declares it; rows of one event are joined."""
    events: dict[str, Any] = {}
    for event, source, to, guard, after in TABLE:
        arrow = states[source].to(states[to], on=after, cond=guard or None)
        events[event] = events[event] | arrow if event in events else arrow
    return events


def _states(names: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: State(initial=name == "negotiation", final=name in TREE["terminated"])
        for name in names
    }


def statemachine_flat(run: Run) -> Any:
    """python-statemachine with eleven plain states; an event in vain raises."""
    states = _states(tuple(name for inner in TREE.values() for name in inner))
    made = type(StateMachine)("Lifecycle", (StateMachine,), {**states, **_events(states)})
    return made(run)


def statemachine_nested(run: Run) -> Any:
    """python-statemachine's StateChart with four compound states; an event in vain is ignored."""
    states = {name: state for inner in TREE.values() for name, state in _states(inner).items()}
    compound = type(State.Compound)
    above = {
        name: compound(name, (State.Compound,), {each: states[each] for each in inner})
        for name, inner in TREE.items()
    }
    made = type(StateChart)("Lifecycle", (StateChart,), {**above, **_events(states)})
    return made(run)
