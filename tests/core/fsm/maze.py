"""A program in which any kind of step may follow any other, and a walk over all its runs."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from nanovm_core.core import events as said
from nanovm_core.core import lifecycle as life
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.events import Context, EffectDone, Event, KillRequested, TimePassed
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
grants = [{ tool = "a.call" }]
windows = [{ name = "calls", counts = "calls", within_ms = 1_000 }]
budgets = [{ scope = "workspace", unit = "steps", max = 1_000 }]
rules = [
  { id = "not-asked", at = "admission", outcome = "hold", approvable = true, \
when = "$slots.held == 'ask' or $history.calls > 1", why = "held" },
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
        ways = "" if last else "".join(_way(kind, number + 1) for kind in KINDS)
        errs = 'on_error = "failed"' if last else 'on_error = "hubN"'
        for kind, step in STEPS.items():
            if number or kind in (*FIRSTS[first], "hub", "after"):
                step = step.replace("RETRY", RETRY).replace("NEXT", ways).replace("ERRS", errs)
                step = step.replace("AWAY", LAST if last else '"hubN"').replace("N", str(number))
                steps.append(f'  {{ name = "{kind}{number}", {step} }},')
    text = HEAD.replace("FIRST", f"{first}0").replace("STEPS", "\n".join(steps))
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
        yield said.AnswerArrived(**named, out=out) if now.awaits else EffectDone(key=key, out=out)
    yield said.AnswerArrived(**named, code=NO)
    yield said.EffectFailed(key=key, code=NO, text="no")
    yield said.EffectFailed(key=key, code=NO, text="no", retry=True)
    yield said.ProposalReceived(key=key, raw=b'{"tool": "a.call", "args": {}}')
    yield said.ProposalReceived(key=key, raw=b"no")


def _requests(now: Snapshot) -> Iterator[Event]:
    """What may begin something."""
    yield TimePassed()
    yield said.ResumeRequested(program=now.program)
    yield said.StepRequested(program=now.program)
    yield said.Approved(hold=hold_id(now))
    yield said.RunStarted()


def _idle(now: Snapshot) -> Iterator[Event]:
    """What begins nothing, and what is forged."""
    key, other = now.owed.key if now.owed else "", "0" * 64
    yield said.EffectUnknown(key=key, code=NO, text="no")
    yield said.EffectWaiting(key=key)
    yield said.AnswerArrived(run=now.run, program=now.program, key="")
    yield said.ProposalReceived(key=other, raw=b"no")
    yield said.EffectFailed(key=other, code=NO, text="no")
    yield said.ResumeRequested(program=other)
    yield said.StepRequested(program=other)
    yield said.DeliveryReceived(program=now.program)
    yield TimePassed()
    yield KillRequested()
    yield said.Declined(hold=hold_id(now))
    for kind in (
        said.PauseRequested,
        said.Approved,
        said.Declined,
        said.DamageFound,
        said.ForeignIntent,
    ):
        yield kind()
    yield said.ProgramRefused(found=other)
    yield said.ErasureRequested(refs=(), reason="art17-1-a")
    yield said.ErasureDone(refs=(), reason="art17-1-a", destroyed={})
    yield said.ErasureRefused(refs=(), reason="art17-1-a", ground="art17-3-b", until_ms=9)
