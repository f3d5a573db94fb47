"""The lifecycle: one table, and a program whose short runs make every move of it, and no other."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import grant_id
from nanovm_core.core.events import Context, EffectDone, Event, KillRequested, TimePassed
from nanovm_core.core.fsm import HANDLERS, begin, moves, transition
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.messages import Decision, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.loading import load_program
from tests.core.kit.builders import RUN, START_MS, Play, worker_context

LAYERS = 2
MOVES_MAX = 6  # of one run
NO = "EXT-001"
KINDS = ("plain", "own", "ask", "wait")
GOES = (*KINDS, "end", "err")
HEAD = """
v = "nanovm-program/1"
name = "maze"
first = "FIRST"
grants = [{ tool = "a.call" }]
windows = [{ name = "calls", counts = "calls", within_ms = 1_000 }]
budgets = [{ scope = "workspace", unit = "steps", max = 1_000 }]
rules = [
  { id = "not-asked", at = "admission", outcome = "hold", approvable = true, \
when = "$slots.held == 'ask' or $history.calls > 1", why = "held" },
  { id = "stopped", at = "admission", outcome = "suspend", \
when = "$slots.held == 'stop' and $history.calls > 1", why = "no more" },
  { id = "asked", at = "admission", outcome = "allow", when = "$slots.held != 'ask'", why = "yes" },
  { id = "not-judged", at = "authorize", outcome = "hold", approvable = true, \
when = "$slots.held == 'judge'", why = "held" },
  { id = "not-judged-either", at = "authorize", outcome = "hold", approvable = true, \
when = "$slots.held == 'judge'", why = "held too" },
  { id = "judged", at = "authorize", outcome = "allow", \
when = "$slots.held != 'judge'", why = "y" },
]
steps = [
STEPS
]
[limits]
proposals_max = 2
[slots]
go = { type = "string" }
held = { type = "string" }
absent = { type = "boolean" }
[tools]
"a.plain" = {}
"a.model" = {}
"a.call" = {}
"""
RETRY = "retry = { attempts_max = 2, backoff_ms = 1_000 }"
STEPS: Mapping[str, str] = {  # N: the step's layer
    "plain": 'kind = "effect", tool = "a.plain", fills = ["go"], RETRY, next = AWAY, ERRS',
    "own": 'kind = "effect", tool = "a.call", fills = ["go"], RETRY, next = "hubN", ERRS',
    "ask": 'kind = "model", tool = "a.model", accepts = ["a.call"], RETRY, next = "judgeN", ERRS',
    "judge": 'kind = "pure", authorizes = "askN", ERRS, '
    """next = [{ when = "$slots.go == 'plain'", to = "payN" }, { to = "hubN" }]""",
    "pay": 'kind = "effect", call = "authorized", fills = ["go"], RETRY, next = "hubN", ERRS',
    "wait": 'kind = "wait", fills = ["go"], timeout_ms = 60_000, next = AWAY, ERRS',
    "hub": 'kind = "pure", '
    """next = [NEXT{ when = "$slots.go == 'err'", to = "afterN" }, { to = "completed" }]""",
    "after": 'kind = "pure", '
    'next = [{ when = "$slots.absent", to = "completed" }, { to = "completed" }]',
}
LAST = """[{ when = "$slots.go == 'err' and $slots.absent", to = "hubN" }, { to = "completed" }]"""
FIRSTS: Mapping[str, tuple[str, ...]] = {  # a first step, and what of its layer belongs to it
    "plain": ("plain",),
    "own": ("own",),
    "ask": ("ask", "judge", "pay"),
    "wait": ("wait",),
    "hub": (),
}
LOTS: Mapping[str, int] = {"workspace/steps": 100}


def maze(first: str) -> Program:
    """The program that begins with this kind of step; the slot ``go`` leads to the next layer."""
    steps = []
    for number in range(LAYERS):
        last = number == LAYERS - 1
        way = '{{ when = "$slots.go == \'{0}\'", to = "{0}{1}" }}, '
        ways = "" if last else "".join(way.format(kind, number + 1) for kind in KINDS)
        errs = 'on_error = "failed"' if last else 'on_error = "hubN"'
        for kind, step in STEPS.items():
            if number or kind in (*FIRSTS[first], "hub", "after"):
                step = step.replace("RETRY", RETRY).replace("NEXT", ways).replace("ERRS", errs)
                step = step.replace("AWAY", LAST if last else '"hubN"').replace("N", str(number))
                steps.append(f'  {{ name = "{kind}{number}", {step} }},')
    text = HEAD.replace("FIRST", f"{first}0").replace("STEPS", "\n".join(steps))
    return load_program(text.encode())


Triple = tuple[str, str, str]  # a state, an event, and the state that it leads to

# --- a walk over all runs --------------------------------------------------------------------


def walked(way_in: str, go: str, held: str, stepping: bool) -> Iterator[Triple | None]:
    """Check each event in all runs of MOVES_MAX moves; those that differ in times alone are one."""
    program, slots = maze(way_in), {"go": go, "held": held}
    first = begin(program, RUN, slots, [], at_ms=START_MS, actor="x", stepping=stepping).snapshot
    seen, todo = {_shape(first)}, deque([(first, START_MS, 0)])
    while todo:
        now, at_ms, made = todo.popleft()
        if now.state in life.TERMINAL or made == MOVES_MAX:
            continue
        for event, context in offered(program, now, at_ms):
            decision = transition(program, now, event, context)
            yield check(now, event, decision)
            shape = _shape(decision.snapshot)
            if shape not in seen:
                seen.add(shape)
                todo.append((decision.snapshot, context.at_ms, made + 1))


def _shape(now: Snapshot) -> object:
    """What of a run's value decides where it can go."""
    go = now.slots.get("go")
    if now.step.endswith(str(LAYERS - 1)) and go != "err":
        go = ""  # nothing is left that it could lead to
    return (
        (now.state, now.step, now.attempt, now.owed is None, now.awaits == "", go),
        (now.held_by, now.approved, now.refused, now.stepping, now.reserved == ()),
    )


CALM = {"calls": 0}


def offered(program: Program, now: Snapshot, at_ms: int) -> Iterator[tuple[Event, Context]]:
    """Every kind of event as it could come now: fitting, forged, early, late, without funds."""
    soon, late = at_ms + 1, max(at_ms, now.deadline_ms)
    gone = frozenset(grant_id(grant) for grant in program.grants.values())
    for event in (*_answers(now), *_requests(now)):
        at_ms = late if isinstance(event, TimePassed) else soon
        known = worker_context(at_ms=at_ms, ledger=LOTS, counts=CALM)
        yield event, known
        yield event, replace(known, ledger={})
        yield event, replace(known, counts={"calls": 2})
        yield event, replace(known, revoked=gone)
    known = worker_context(at_ms=soon, ledger=LOTS, counts=CALM)
    for event in _idle(now):
        yield event, known
    yield KillRequested(), replace(known, under_way=False)
    yield EffectDone(key=now.owed.key if now.owed else ""), replace(known, by_holder=False)


def _answers(now: Snapshot) -> Iterator[Event]:
    """What may come of an effect, or of the model."""
    key = now.owed.key if now.owed else ""
    if not now.owed and not now.awaits:
        yield EffectDone(key=key)
        return
    named: Any = {"run": now.run, "program": now.program, "key": now.awaits}
    for go in GOES:
        out = {"go": go}
        yield events.AnswerArrived(**named, out=out) if now.awaits else EffectDone(key=key, out=out)
    yield events.AnswerArrived(**named, code=NO)
    yield events.EffectFailed(key=key, code=NO, text="no")
    yield events.EffectFailed(key=key, code=NO, text="no", retry=True)
    yield events.ProposalReceived(key=key, raw=b'{"tool": "a.call", "args": {}}')
    yield events.ProposalReceived(key=key, raw=b"no")


def _requests(now: Snapshot) -> Iterator[Event]:
    """What may begin something."""
    yield TimePassed()
    yield events.ResumeRequested(program=now.program)
    yield events.StepRequested(program=now.program)
    yield events.Approved(hold=hold_id(now))
    yield events.RunStarted()


def _idle(now: Snapshot) -> Iterator[Event]:
    """What begins nothing, and what is forged."""
    key, other = now.owed.key if now.owed else "", "0" * 64
    yield events.EffectUnknown(key=key, code=NO, text="no")
    yield events.AnswerArrived(run=now.run, program=now.program, key=now.awaits, outcome="unknown")
    yield events.EffectWaiting(key=key)
    yield events.AnswerArrived(run=now.run, program=now.program, key="")
    yield events.ProposalReceived(key=other, raw=b"no")
    yield events.EffectFailed(key=other, code=NO, text="no")
    yield events.ResumeRequested(program=other)
    yield events.StepRequested(program=other)
    yield events.DeliveryReceived(program=now.program)
    yield TimePassed()
    yield KillRequested()
    yield events.Declined(hold=hold_id(now))
    for kind in (
        events.PauseRequested,
        events.Approved,
        events.Declined,
        events.DamageFound,
        events.ForeignIntent,
    ):
        yield kind()
    yield events.ProgramRefused(found=other)
    yield events.ErasureRequested(refs=(), reason="art17-1-a")
    yield events.ErasureDone(refs=(), reason="art17-1-a", destroyed={})
    yield events.ErasureRefused(refs=(), reason="art17-1-a", ground="art17-3-b", until_ms=9)


ALL = {(at, event, to) for (at, event), tos in life.TABLE.items() for to in tos}
EVENT_KINDS = {
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
    ("ask", "end", "stop", False),
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


def test_every_kind_of_event_has_a_rule() -> None:
    assert set(HANDLERS) == EVENT_KINDS
    assert len(EVENT_KINDS) == 21


def test_entry_and_exit_effects_are_exactly_the_functions_that_carry_them_out() -> None:
    named = [
        name for table in (life.ENTRY, life.EXIT) for names in table.values() for name in names
    ]
    assert sorted(named) == sorted(moves.STATE_EFFECTS)
    assert {*life.ENTRY, *life.EXIT} <= set(life.GROUP.values())
    assert {state for state in life.STATES if life.GROUP[state] == "suspended"} == life.SUSPENDED
    assert {state for state in life.STATES if life.GROUP[state] == "terminated"} == life.TERMINAL


def check(before: Snapshot, event: Event, decision: Decision) -> Triple | None:
    """Hold one event to everything that is so of every event; the move that it made."""
    after, triple = decision.snapshot, made(before, event, decision)
    if triple is not None:
        assert triple in ALL
        path = path_of(decision)
        assert (path[0], path[-1]) == (before.state, after.state)
        assert "?" not in path
    elif decision.refusal is not None and not isinstance(event, events.ProposalReceived):
        assert (after, decision.effects, decision.budgets) == (before, (), ())
        kind = "erasure_refused" if isinstance(event, events.ErasureRefused) else "refused"
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
    reached |= {move for start in STARTS for move in walked(*start)} - {None}
    assert reached == ALL
