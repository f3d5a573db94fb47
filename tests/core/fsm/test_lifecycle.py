"""The lifecycle: one table, which every run keeps to and of which nothing is left over."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import ErasureRefused, Event, ProposalReceived
from nanovm_core.core.fsm import HANDLERS, drafts
from nanovm_core.core.messages import Decision, Scalar, Snapshot
from tests.core.fsm.maze import FIRSTS, Move, maze
from tests.core.fsm.maze import moves as walk
from tests.core.kit.builders import Play
from tests.core.kit.histories import FILES, named, read, replayed

Triple = tuple[str, str, str]

NAMES = {event for _, event in life.TABLE}
ALL = {(at, event, to) for (at, event), tos in life.TABLE.items() for to in tos}
KINDS = {
    each for each in vars(events).values() if isinstance(each, type) and issubclass(each, Event)
} - {Event}
# Each: the first step, where the program leads next, which hold it meets, and whether it steps.
# Together, up to six moves long, these runs make every move of the table; a test holds that.
STARTS: tuple[tuple[str, str, str, bool], ...] = (
    ("hub", "err", "no", True),
    ("hub", "err", "no", False),
    ("hub", "end", "no", False),
    ("hub", "wait", "no", False),
    ("hub", "ask", "ask", False),
    ("ask", "own", "ask", False),
    ("ask", "wait", "ask", False),
    ("ask", "end", "judge", False),
    ("ask", "err", "judge", False),
    ("ask", "wait", "judge", False),
    ("wait", "plain", "ask", True),
    ("wait", "wait", "ask", True),
    ("wait", "end", "ask", True),
    ("own", "end", "no", True),
    ("own", "wait", "ask", True),
    ("own", "ask", "ask", True),
)


def made(before: Snapshot, event: Event, decision: Decision) -> Triple | None:
    """The move that a decision made, if it made one."""
    to = decision.snapshot.state
    refused = decision.refusal is not None or decision.absorbed != "" or not decision.drafts
    return None if refused and to == before.state else (before.state, type(event).__name__, to)


def path_of(decision: Decision) -> list[str]:
    """The states that the drafts of a decision name one after the other."""
    found: list[str] = []
    for draft in decision.drafts:
        state = draft.body["state"]
        assert isinstance(state, Mapping)
        if found and found[-1] != state["from"]:
            found.append("?")
        found += [str(state["from"]), str(state["to"])]
    return [each for place, each in enumerate(found) if not place or found[place - 1] != each]


def test_table_names_known_states_and_events_only() -> None:
    for (state, _), targets in life.TABLE.items():
        assert {state, *targets} <= set(life.STATES)
        assert len(set(targets)) == len(targets)
    assert NAMES - {"RunCreated"} <= {kind.__name__ for kind in HANDLERS}


def test_every_kind_of_event_has_a_rule() -> None:
    assert set(HANDLERS) == KINDS
    assert len(KINDS) == 21


def test_entry_and_exit_effects_are_exactly_the_functions_that_carry_them_out() -> None:
    named = [
        name for table in (life.ENTRY, life.EXIT) for names in table.values() for name in names
    ]
    assert sorted(named) == sorted(drafts.STATE_EFFECTS)
    assert {*life.ENTRY, *life.EXIT} <= set(life.GROUP.values())
    assert {state for state in life.STATES if life.GROUP[state] == "suspended"} == life.SUSPENDED
    assert {state for state in life.STATES if life.GROUP[state] == "terminated"} == life.TERMINAL


def test_every_state_can_be_reached_and_left_for_an_end() -> None:
    reached, size = {life.NEGOTIATION}, 0
    while len(reached) != size:
        size = len(reached)
        reached |= {to for (at, _), tos in life.TABLE.items() if at in reached for to in tos}
    assert reached == set(life.STATES)
    assert not {at for at, _ in life.TABLE} & life.TERMINAL
    for state in reached - life.TERMINAL - {life.NEGOTIATION}:
        assert life.KILLED in life.TABLE[(state, "KillRequested")]


def test_tables_cannot_be_changed() -> None:
    for table in (life.TABLE, life.ENTRY, life.EXIT, life.GROUP, HANDLERS, drafts.STATE_EFFECTS):
        assert isinstance(table, MappingProxyType)


def walked(start: tuple[str, str, str, bool], depth: int) -> Iterator[Move]:
    """Every event in every short run from this start."""
    first, go, held, stepping = start
    slots: dict[str, Scalar] = {"go": go, "held": held}
    yield from walk(maze(first), slots, stepping=stepping, depth=depth)


def check(move: Move) -> Triple | None:
    """Hold one event to everything that is so of every event."""
    before, event, _, decision = move
    after, triple = decision.snapshot, made(before, event, decision)
    if triple is not None:
        assert triple in ALL
        path = path_of(decision)
        assert (path[0], path[-1]) == (before.state, after.state)
        assert "?" not in path
    elif decision.refusal is not None and not isinstance(event, ProposalReceived):
        assert (after, decision.effects, decision.budgets) == (before, (), ())
        kind = "erasure_refused" if isinstance(event, ErasureRefused) else "refused"
        assert [draft.kind for draft in decision.drafts] == [kind]
    elif not decision.drafts:
        assert (after, decision.effects, decision.budgets) == (before, (), ())
    if (before.state, type(event).__name__) not in life.TABLE and before.state not in life.TERMINAL:
        assert after == before
        assert decision.refusal is not None or decision.absorbed
    if decision.drafts:
        assert decision.drafts[-1].after == after
    stands = after.state in {life.READY, *life.TERMINAL}
    assert (after.state == life.WAITING) <= (after.awaits != "")
    assert (after.owed is None) or not stands
    assert (after.suspended_ms != 0) == (after.state in life.SUSPENDED)
    assert len(decision.effects) <= 1
    assert all(each == after.owed and after.state == life.ACTIVE for each in decision.effects)
    return triple


def test_runs_make_every_move_of_the_table_and_no_other() -> None:
    reached: set[Triple | None] = {(life.NEGOTIATION, "RunCreated", Play().first.state)}
    reached |= {check(move) for start in STARTS for move in walked(start, depth=6)} - {None}
    assert reached == ALL


@pytest.mark.soak
@pytest.mark.parametrize("first", FIRSTS)
def test_long_runs_make_no_other_move_either(first: str) -> None:
    reached = set()
    for go in ("plain", "own", "ask", "wait", "end", "err"):
        for held in ("no", "ask", "judge"):
            for stepping in (False, True):
                reached |= {check(move) for move in walked((first, go, held, stepping), depth=0)}
    assert len(reached) > 40


@pytest.mark.parametrize("file", FILES, ids=named)
def test_histories_keep_to_the_table(file: object) -> None:
    scene, _ = replayed(read(file))  # type: ignore[arg-type]
    before = scene.first
    for event, context, decision in scene.heard:
        if before.state not in life.TERMINAL:
            check(Move(before, event, context, decision))
        before = decision.snapshot
