"""A pure transition compared with state-machine packages; the cost of a step as programs grow."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from statemachine.exceptions import TransitionNotAllowed

from bench.kit import lifecycles, subject
from bench.kit.lifecycles import OUT, Run
from bench.kit.report import Bar, Table, row
from bench.kit.rounds import Contestant, compare, measure
from nanovm_core.core.events import (
    EffectDone,
    KillRequested,
    PauseRequested,
    ResumeRequested,
)
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from nanovm_core.loading import load_program

FIRST = "nanovm"
FRESH = "nanovm, its event built each time"
OUT_SLOTS = {"size_bytes": 1000}
LATER = replace(subject.CONTEXT, at_ms=subject.START_MS + 10)
STOPPED = replace(LATER, under_way=False)
SIZES = (10, 100, 1_000, 10_000)
STEPS_A_ROUND = 10_000
WIDE = 1_000
WIDEST = "a step of 1,000 steps that each fill a slot of their own (a run copies its slots)"
FLAT_WITHIN = 1.25  # what a step may cost in the largest program, in steps of the smallest
PEERS = ("transitions", "python-statemachine")
CHARTS = {
    "transitions, HierarchicalMachine": (lifecycles.transitions_nested, Bar("≥", 5)),
    "transitions, flat Machine": (lifecycles.transitions_flat, Bar("≥", 5)),
    "python-statemachine, StateChart": (lifecycles.statemachine_nested, Bar("≥", 50)),
    "python-statemachine, flat StateMachine": (lifecycles.statemachine_flat, Bar("≥", 50)),
}
SAME_RUN = {"out": OUT, "Refused": TransitionNotAllowed}
DONE = "m.done(run.owed, out)"
PAUSE = "m.pause(); m.resume()"
FORGED = "try:\n    m.done('forged', out)\nexcept Refused:\n    pass\nrun.refused()"
LATE = "try:\n    m.done(run.owed, out)\nexcept Refused:\n    pass"


class Case(NamedTuple):
    """One event: the packages' statement for it, and ours with its names."""

    title: str
    theirs: str
    ours: str
    names: Mapping[str, object]
    now: Snapshot
    moves: bool = True  # a refused or absorbed event changes no state, and has no bar
    ended: bool = False


def tables() -> list[Table]:
    """Each event compared with the packages, then each step along a program."""
    return [*(_table(case) for case in _cases()), steps_table()]


def _cases() -> list[Case]:
    under = subject.program()
    active = subject.started(under)
    names = {"t": transition, "p": under, "now": active, "at": LATER}
    one, two = "t(p, now, event, at)", "t(p, now, event, at); t(p, then, later, at)"
    forged = names | {"event": _done("f" * 64)}
    return [
        Case(
            "a result, and the next intent",
            DONE,
            one,
            names | {"event": _done(_key(active))},
            active,
        ),
        Case("a pause and a resume", PAUSE, two, names | _paused(under, active), active),
        Case("a forged result, refused", FORGED, one, forged, active, moves=False),
        Case(
            "a late result, absorbed", LATE, one, names | _late(under, active), active, False, True
        ),
    ]


def _table(case: Case) -> Table:
    """One event, everybody's."""
    contestants = [Contestant(FIRST, case.ours, case.names)]
    bars: dict[str, Bar | None] = {}
    for package, (chart, bar) in CHARTS.items():
        for records in (True, False):
            name = package if records else f"{package}, bare"
            bars[name] = bar if records and case.moves else None
            peer = _peer(chart, ended=case.ended, records=records)
            contestants.append(Contestant(name, case.theirs, peer))
    if case.title.startswith("a result"):
        fresh = {"E": EffectDone, "key": _key(case.now), "out": OUT_SLOTS}
        text = "t(p, now, E(key=key, out=out), at)"
        contestants.append(Contestant(FRESH, text, {**case.names, **fresh}))
        bars[FRESH] = None
    found = compare(contestants)
    return Table(
        title=f"A transition: {case.title}",
        says=(
            "The same lifecycle, guard (the key must be the owed one) and record in each: how "
            "many times as long as ours for the same event. *Bare* keeps no record there; ours "
            "always does."
        ),
        rows=[row(found, name, FIRST, bar) for name, bar in bars.items()],
        peers=PEERS,
    )


def steps_table() -> Table:
    """The cost of one step from the smallest program to the largest."""
    programs = {size: load_program(subject.chain(size)) for size in SIZES}
    walks = {_steps(size): _walk(program, size) for size, program in programs.items()}
    wide = load_program(subject.chain(WIDE, slots=WIDE))
    found = measure(walks | {WIDEST: _walk(wide, WIDE, slots=WIDE)}, rounds=15)
    loaded = measure({_steps(size): _load(size) for size in SIZES}, rounds=3)
    first, flat = _steps(SIZES[0]), Bar("<", FLAT_WITHIN)
    rows = [
        row(found, _steps(size), first, flat, f"a step of a program of {_steps(size)}")
        for size in SIZES[1:]
    ]
    rows.append(row(found, WIDEST, first))
    rows += [
        row(loaded, _steps(size), first, None, f"loading, for each step of {_steps(size)}")
        for size in SIZES[1:]
    ]
    return Table(
        title="The length of a program",
        says=f"Whole runs through `transition`, one step's cost in units of a step of {first}.",
        rows=rows,
    )


def _key(now: Snapshot) -> str:
    return now.owed.key if now.owed else ""


def _done(key: str) -> EffectDone:
    return EffectDone(key=key, out=OUT_SLOTS)


def _paused(under: Program, active: Snapshot) -> dict[str, object]:
    """A pause of a running run, and the resume of the paused one."""
    pause = PauseRequested()
    resume = ResumeRequested(program=active.program)
    return {"event": pause, "then": subject.fed(under, active, pause), "later": resume}


def _late(under: Program, active: Snapshot) -> dict[str, object]:
    """A run that ended and has already sealed one late result, and another such."""
    late = _done(_key(active))
    ended = subject.fed(under, active, KillRequested(), STOPPED)
    return {"now": subject.fed(under, ended, late), "event": late}


def _peer(chart: Callable[[Run], object], *, ended: bool, records: bool) -> dict[str, object]:
    """A package's machine in the state that the event is to meet."""
    run = Run(records=records)
    machine = chart(run)
    for event in ("negotiate", "start", *(["kill"] if ended else [])):
        getattr(machine, event)()
    return {"m": machine, "run": run, **SAME_RUN}


def _steps(size: int) -> str:
    return f"{size:,} steps"


def _walk(program: Program, size: int, slots: int = 1) -> Callable[[], float]:
    """Whole runs of a program, as nanoseconds a step; the events were made before."""
    begun = subject.started(program)
    now, events = begun, []
    for at in range(size):
        events.append(EffectDone(key=_key(now), out={f"n{at % slots}": 1}))
        now = subject.fed(program, now, events[-1])
    if not now.state.startswith("terminated.completed"):
        raise AssertionError(f"The run of {size} steps is in {now.state}.")

    def batch() -> float:
        began = time.perf_counter_ns()
        for _ in range(STEPS_A_ROUND // size):
            state = begun
            for event in events:
                state = transition(program, state, event, LATER).snapshot
        return (time.perf_counter_ns() - began) / STEPS_A_ROUND

    return batch


def _load(size: int) -> Callable[[], float]:
    source = subject.chain(size)

    def batch() -> float:
        times = max(1, 1_000 // size)
        began = time.perf_counter_ns()
        for _ in range(times):
            load_program(source)
        return (time.perf_counter_ns() - began) / times / size

    return batch
