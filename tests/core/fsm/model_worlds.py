"""A program in which any kind of step may follow any other, and a walk over all its runs."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from nanovm_core.core import lifecycle as life
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.events import (
    AnswerArrived,
    Approved,
    Context,
    DamageFound,
    Declined,
    DeliveryReceived,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    ErasureDone,
    ErasureRefused,
    ErasureRequested,
    Event,
    ForeignIntent,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ProposalReceived,
    ResumeRequested,
    RunStarted,
    StepRequested,
    TimePassed,
)
from nanovm_core.core.fsm import begin, transition
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.messages import Decision, Recorded, Scalar, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.loading import load_program
from tests.core.kit.builders import RUN, START_MS, worker_context

LAYERS = 2
NO = "EXT-001"
KINDS = ("plain", "own", "ask", "wait")
GOES = (*KINDS, "end", "err")
HEAD = """
v = "nanovm-program/1"
name = "maze"
first = "FIRST"
[limits]
proposals_max = 2
[slots]
go = { type = "string" }
held = { type = "string" }
absent = { type = "boolean" }
[tools."a.plain"]
[tools."a.model"]
[tools."a.call"]
[[grants]]
tool = "a.call"
[[windows]]
name = "calls"
counts = "calls"
within_ms = 1_000
[[budgets]]
scope = "workspace"
unit = "steps"
max = 1_000
[[rules]]
id = "not-asked"
at = "admission"
outcome = "hold"
approvable = true
when = "$slots.held == 'ask' or $history.calls > 1"
why = "held"
[[rules]]
id = "asked"
at = "admission"
outcome = "allow"
when = "$slots.held != 'ask'"
why = "asked"
[[rules]]
id = "not-judged"
at = "authorize"
outcome = "hold"
approvable = true
when = "$slots.held == 'judge'"
why = "held"
[[rules]]
id = "not-judged-either"
at = "authorize"
outcome = "hold"
approvable = true
when = "$slots.held == 'judge'"
why = "held too"
[[rules]]
id = "judged"
at = "authorize"
outcome = "allow"
when = "$slots.held != 'judge'"
why = "judged"
"""
RETRY = "retry = { attempts_max = 2, backoff_ms = BACKOFF }"
STEPS = """
[[steps]]
name = "plainN"
kind = "effect"
tool = "a.plain"
fills = ["go"]
RETRY
next = AWAY
on_error = "ERROR"
[[steps]]
name = "ownN"
kind = "effect"
tool = "a.call"
fills = ["go"]
RETRY
next = "hubN"
on_error = "ERROR"
[[steps]]
name = "askN"
kind = "model"
tool = "a.model"
accepts = ["a.call"]
RETRY
next = "judgeN"
on_error = "ERROR"
[[steps]]
name = "judgeN"
kind = "pure"
authorizes = "askN"
next = [{ when = "$slots.go == 'plain'", to = "payN" }, { to = "hubN" }]
on_error = "ERROR"
[[steps]]
name = "payN"
kind = "effect"
call = "authorized"
fills = ["go"]
RETRY
next = "hubN"
on_error = "ERROR"
[[steps]]
name = "waitN"
kind = "wait"
fills = ["go"]
timeout_ms = 60_000
next = AWAY
on_error = "ERROR"
[[steps]]
name = "hubN"
kind = "pure"
next = [NEXT{ when = "$slots.go == 'err'", to = "afterN" }, { to = "completed" }]
[[steps]]
name = "afterN"
kind = "pure"
next = [{ when = "$slots.absent", to = "completed" }, { to = "completed" }]
"""


LAST = """[{ when = "$slots.go == 'err' and $slots.absent", to = "hubN" }, { to = "completed" }]"""
FIRSTS: Mapping[str, tuple[str, ...]] = {  # a first step, and what of its layer belongs to it
    "plain": ("plain",),
    "own": ("own",),
    "ask": ("ask", "judge", "pay"),
    "wait": ("wait",),
    "hub": (),
}
LOTS: Mapping[str, int] = {"workspace/steps": 100}


def maze(first: str, *, backoff_ms: int = 1_000, layers: int = LAYERS) -> Program:
    """The program that begins with this kind of step; the slot ``go`` leads to the next layer."""
    text = HEAD.replace("FIRST", f"{first}0")
    retry = RETRY.replace("BACKOFF", str(backoff_ms))
    for number in range(layers):
        last = number == layers - 1
        ways = "" if last else "".join(_way(kind, number + 1) for kind in KINDS)
        steps = STEPS.replace("RETRY", retry).replace("NEXT", ways)
        steps = steps.replace("ERROR", "failed" if last else "hubN")
        steps = steps.replace("AWAY", LAST if last else '"hubN"').replace("N", str(number))
        for step in steps.split("[[steps]]")[1:]:
            kind = step.split('"', 2)[1].rstrip("0123456789")
            if number or kind in (*FIRSTS[first], "hub", "after"):
                text += f"[[steps]]{step}"
    return load_program(text.encode())


def _way(kind: str, layer: int) -> str:
    return f'{{ when = "$slots.go == \'{kind}\'", to = "{kind}{layer}" }}, '


# --- a walk over all runs --------------------------------------------------------------------


class Move(NamedTuple):
    """One event in one run."""

    before: Snapshot
    event: Event
    context: Context
    decision: Decision


def moves(
    program: Program, slots: Mapping[str, Scalar], *, stepping: bool = False, depth: int = 0
) -> Iterator[Move]:
    """Every event in every run of the program, runs that differ in times and keys taken as one.

    With a ``depth``, in every run up to that many moves.
    """
    first = begin(program, RUN, slots, [], at_ms=START_MS, actor="x", stepping=stepping).snapshot
    seen, todo = {_shape(first)}, deque([(first, START_MS, 0)])
    while todo:
        now, at_ms, made = todo.popleft()
        if now.state in life.TERMINAL or made == (depth or inf):
            continue
        for event, context in events(program, now, at_ms):
            decision = transition(program, now, event, context)
            yield Move(now, event, context, decision)
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


def events(program: Program, now: Snapshot, at_ms: int) -> Iterator[tuple[Event, Context]]:
    """Every kind of event as it could come now: fitting, forged, early, late, without funds."""
    soon, late = at_ms + 1, max(at_ms, now.deadline_ms)
    gone = frozenset(grant_id(grant) for grant in program.grants.values())
    busy = tuple(Recorded(soon, "a.call", "called") for _ in range(2))
    for event in (*_answers(now), *_requests(now)):
        known = worker_context(at_ms=late if isinstance(event, TimePassed) else soon, ledger=LOTS)
        yield event, known
        yield event, replace(known, ledger={})
        yield event, replace(known, history=busy)
        yield event, replace(known, revoked=gone)
    known = worker_context(at_ms=soon, ledger=LOTS)
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
        yield AnswerArrived(**named, out=out) if now.awaits else EffectDone(key=key, out=out)
    yield AnswerArrived(**named, code=NO)
    yield EffectFailed(key=key, code=NO, text="no")
    yield EffectFailed(key=key, code=NO, text="no", retry=True)
    yield ProposalReceived(key=key, raw=b'{"tool": "a.call", "args": {}}')
    yield ProposalReceived(key=key, raw=b"no")


def _requests(now: Snapshot) -> Iterator[Event]:
    """What may begin something."""
    yield TimePassed()
    yield ResumeRequested(program=now.program)
    yield StepRequested(program=now.program)
    yield Approved(hold=hold_id(now))
    yield RunStarted()


def _idle(now: Snapshot) -> Iterator[Event]:
    """What begins nothing, and what is forged."""
    key, other = now.owed.key if now.owed else "", "0" * 64
    yield EffectUnknown(key=key, code=NO, text="no")
    yield EffectWaiting(key=key)
    yield AnswerArrived(run=now.run, program=now.program, key="")
    yield ProposalReceived(key=other, raw=b"no")
    yield EffectFailed(key=other, code=NO, text="no")
    yield ResumeRequested(program=other)
    yield StepRequested(program=other)
    yield DeliveryReceived(program=now.program)
    yield TimePassed()
    yield KillRequested()
    yield Declined(hold=hold_id(now))
    for kind in (PauseRequested, Approved, Declined, DamageFound, ForeignIntent):
        yield kind()
    yield ProgramRefused(found=other)
    yield ErasureRequested(refs=(), reason="art17-1-a")
    yield ErasureDone(refs=(), reason="art17-1-a", destroyed={})
    yield ErasureRefused(refs=(), reason="art17-1-a", ground="art17-3-b", until_ms=9)
