"""A pure transition beside state-machine packages, and the cost of a step as programs grow."""

import time
from collections.abc import Callable

from statemachine.exceptions import TransitionNotAllowed

from bench import lifecycles, subject
from bench.lifecycles import OUT, Run
from bench.report import Bar, Row, Table, row
from bench.rounds import Contestant, compare, measure
from nanovm_core.events import EffectDone, Event, KillRequested, PauseRequested, ResumeRequested
from nanovm_core.fsm import transition
from nanovm_core.loading import load_program
from nanovm_core.messages import Snapshot
from nanovm_core.program import Program

FIRST = "nanovm"
LATER_MS = subject.START_MS + 10
SIZES = (10, 100, 1_000, 10_000)
STEPS_A_ROUND = 10_000
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


def tables() -> list[Table]:
    """Event for event beside the packages, then step for step along a program."""
    return [events_table(), steps_table()]


def events_table() -> Table:
    """Each event beside the same event in the packages."""
    under = subject.program()
    active = subject.started(under)
    rows = [
        *_rows("a result, and the next intent", DONE, *_ours(under, active, _done(active))),
        *_rows("a pause and a resume", PAUSE, *_ours(under, *_paused(under, active))),
        *_rows("a forged result, refused", FORGED, *_ours(under, active, _done(active, "f" * 64))),
        *_rows("a late result, absorbed", LATE, *_ours(under, *_late(under, active)), ended=True),
    ]
    return Table(
        title="A transition",
        says=(
            "The same lifecycle, guard (the key must be the owed one) and record in each: how "
            "many times as long as ours for the same event. *Bare* leaves the record out there, "
            "and not here."
        ),
        rows=rows,
        peers=PEERS,
    )


def steps_table() -> Table:
    """The cost of one step from the smallest program to the largest."""
    programs = {size: load_program(subject.chain(size)) for size in SIZES}
    found = measure(
        {_steps(size): _walk(program, size) for size, program in programs.items()}, rounds=15
    )
    loaded = measure({_steps(size): _load(size) for size in SIZES}, rounds=3)
    first, flat = _steps(SIZES[0]), Bar("<", FLAT_WITHIN)
    rows = [
        row(found, _steps(size), first, flat, f"a step of a program of {_steps(size)}")
        for size in SIZES[1:]
    ]
    rows += [
        row(loaded, _steps(size), first, None, f"loading, for each step of {_steps(size)}")
        for size in SIZES[1:]
    ]
    return Table(
        title="The length of a program",
        says=f"Whole runs through `transition`, one step's cost in units of a step of {first}.",
        rows=rows,
    )


def _ours(
    under: Program, now: Snapshot, event: Event, *more: object
) -> tuple[str, dict[str, object]]:
    """The statement that decides ``event``, and then the next pair of snapshot and event."""
    names: dict[str, object] = {"t": transition, "p": under, "now": now, "event": event}
    if not more:
        return "t(p, now, event)", names
    return "t(p, now, event); t(p, then, later)", names | {"then": more[0], "later": more[1]}


def _done(now: Snapshot, key: str = "") -> EffectDone:
    owed = key or (now.owed.key if now.owed else "")
    return EffectDone(at_ms=LATER_MS, key=owed, out=OUT_SLOTS, ledger=subject.LEDGER)


OUT_SLOTS = {"size_bytes": 1000}


def _paused(under: Program, active: Snapshot) -> tuple[Snapshot, Event, Snapshot, Event]:
    pause = PauseRequested(at_ms=LATER_MS, ledger=subject.LEDGER)
    resume = ResumeRequested(at_ms=LATER_MS, ledger=subject.LEDGER, program=active.program)
    return active, pause, subject.fed(under, active, pause), resume


def _late(under: Program, active: Snapshot) -> tuple[Snapshot, Event]:
    """A run that ended and has already sealed one late result."""
    late = _done(active)
    ended = subject.fed(under, active, KillRequested(at_ms=LATER_MS, under_way=False))
    return subject.fed(under, ended, late), late


def _rows(
    event: str, theirs: str, ours: str, names: dict[str, object], *, ended: bool = False
) -> list[Row]:
    """One event, everybody's."""
    contestants = [Contestant(FIRST, ours, names)]
    bars: dict[str, Bar | None] = {}
    for package, (chart, bar) in CHARTS.items():
        for records in (True, False):
            name = f"{event}: {package}" + ("" if records else ", bare")
            bars[name] = bar if records else None
            contestants.append(Contestant(name, theirs, _peer(chart, ended=ended, records=records)))
    found = compare(contestants)
    return [row(found, name, FIRST, bar) for name, bar in bars.items()]


def _peer(chart: Callable[[Run], object], *, ended: bool, records: bool) -> dict[str, object]:
    """A package's machine in the state that the event is to meet."""
    run = Run(records=records)
    machine = chart(run)
    for event in ("negotiate", "start", *(["kill"] if ended else [])):
        getattr(machine, event)()
    return {"m": machine, "run": run, **SAME_RUN}


def _steps(size: int) -> str:
    return f"{size:,} steps"


def _walk(program: Program, size: int) -> Callable[[], float]:
    """Whole runs of a program, as nanoseconds a step; the events were made before."""
    begun = subject.started(program)
    now, events = begun, []
    for _ in range(size):
        key = now.owed.key if now.owed else ""
        events.append(EffectDone(at_ms=LATER_MS, key=key, out={"n": 1}))
        now = subject.fed(program, now, events[-1])
    if not now.state.startswith("terminated.completed"):
        raise AssertionError(f"The run of {size} steps stands in {now.state}.")

    def batch() -> float:
        began = time.perf_counter_ns()
        for _ in range(STEPS_A_ROUND // size):
            state = begun
            for event in events:
                state = transition(program, state, event).snapshot
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
