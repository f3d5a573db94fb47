"""The graph of a program's steps: no cycle, no unreachable step, no call without authorization."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nanovm_core.core.program import AUTHORIZED, COMPLETED, EFFECT, FAILED, MODEL, PURE, Step
from nanovm_core.loading.places import Path

Steps = Mapping[str, Step]

CYCLES_SHOWN_MAX = 20  # each lists the steps on its way: reporting all of them could be quadratic
LOOP_SHOWN_MAX = 8  # steps of one cycle: a sentence, not a list
MOVES_MAX = 64  # in one transition: each is sealed with the others, and costs some of its stack


class Misfit(NamedTuple):
    """An inconsistency of a program, and its place in the file.

    ``path`` names a step or a grant by name, where the file has an index. ``inside`` is a
    condition and the offset in it, where the fault is in one.
    """

    path: Path
    text: str
    code: str = "PRG-002"
    inside: tuple[str, int] | None = None


class _Edge(NamedTuple):
    """One way from a step to another: its ``place`` in ``next``, or -1 for ``on_error``."""

    source: str
    target: str
    place: int

    @property
    def path(self) -> Path:
        at: Path = ("next", self.place, "to") if self.place >= 0 else ("on_error",)
        return ("steps", self.source, *at)


def misfits(first: str, steps: Steps) -> Iterator[Misfit]:
    """The faults of the graph, in linear time and without recursion.

    ``checks`` reports targets that do not exist; while there is one, unreachable steps are not
    reported.
    """
    if first not in steps:
        yield Misfit(
            ("first",), f"first = {first!r} is no step: name the step that a run begins at"
        )
    into: dict[str, list[_Edge]] = {name: [] for name in steps}
    for edge in (edge for step in steps.values() for edge in _edges(step)):
        if edge.target in into:
            into[edge.target].append(edge)
    for step in steps.values():
        yield from _authority_misfits(step, into[step.name], first, steps)
    yield from _cycles(steps)
    yield from _rushes(steps)
    if first in steps and not any(map(_is_loose, steps.values(), [steps] * len(steps))):
        reached = _reached(first, steps)
        for name in steps:
            if name not in reached:
                text = f"step {name} is unreachable: lead a step to it, or take it out"
                yield Misfit(("steps", name, "name"), text)


def _edges(step: Step) -> Iterator[_Edge]:
    for place, branch in enumerate(step.next):
        if branch.to != COMPLETED:
            yield _Edge(step.name, branch.to, place)
    if step.on_error != FAILED:
        yield _Edge(step.name, step.on_error, -1)


def _is_loose(step: Step, steps: Steps) -> bool:
    """Whether a target of this step is missing or unknown."""
    return not step.next or any(edge.target not in steps for edge in _edges(step))


def _reached(first: str, steps: Steps) -> set[str]:
    reached, todo = {first}, [first]
    while todo:
        for edge in _edges(steps[todo.pop()]):
            if edge.target in steps and edge.target not in reached:
                reached.add(edge.target)
                todo.append(edge.target)
    return reached


def _cycles(steps: Steps) -> Iterator[Misfit]:
    """The edges that close a cycle: depth-first search with its own stack."""
    found, done = 0, set[str]()
    for start in steps:
        way: dict[str, Iterator[_Edge]] = {}  # the steps on the way here, in order
        if start not in done:
            way[start] = _edges(steps[start])
        while way:
            at = next(reversed(way))
            edge = next(way[at], None)
            if edge is None:
                way.popitem()
                done.add(at)
            elif edge.target in way:
                if (found := found + 1) > CYCLES_SHOWN_MAX:
                    return
                yield Misfit(edge.path, _told(list(way), edge.target))
            elif edge.target in steps and edge.target not in done:
                way[edge.target] = _edges(steps[edge.target])


def _told(way: list[str], back_to: str) -> str:
    loop = [*way[way.index(back_to) :], back_to]
    shown = loop if len(loop) <= LOOP_SHOWN_MAX else [*loop[:4], "…", *loop[-3:]]
    return f"the steps form a cycle: {' → '.join(shown)}; a program ends, so lead one elsewhere"


def _rushes(steps: Steps) -> Iterator[Misfit]:
    """The first edge beyond MOVES_MAX moves in one transition, without an answer from outside.

    A pure step continues at once; an effect or a model that is refused fails at once.
    """
    silent = {name: list(_silent(step, steps)) for name, step in steps.items()}
    into = dict.fromkeys(steps, 0)
    for edge in (edge for edges in silent.values() for edge in edges):
        into[edge.target] += 1
    moves = dict.fromkeys(steps, 0)
    todo = [name for name, count in into.items() if not count]
    while todo:
        name = todo.pop()
        for edge in silent[name]:
            if moves[name] == MOVES_MAX:
                text = f"over {MOVES_MAX} steps up to {edge.target} follow one another at once"
                yield Misfit(edge.path, f"{text}: put an effect or a wait between them")
                return
            moves[edge.target] = max(moves[edge.target], moves[name] + 1)
            into[edge.target] -= 1
            todo += [] if into[edge.target] else [edge.target]


def _silent(step: Step, steps: Steps) -> Iterator[_Edge]:
    """The edges that a run may follow without an answer from outside."""
    for edge in _edges(step):
        if edge.target in steps and (
            step.kind == PURE or (edge.place < 0 and step.kind in (EFFECT, MODEL))
        ):
            yield edge


# --- authority -------------------------------------------------------------------------------


def _authority_misfits(step: Step, into: list[_Edge], first: str, steps: Steps) -> Iterator[Misfit]:
    """On every way from a model's proposal to the call there is the step that authorizes it."""
    if step.kind == MODEL:
        yield from _proposal_misfits(step, steps)
    elif step.call == AUTHORIZED:
        what = f"step {step.name} makes the call that a pure step authorized, but"
        for edge in into:
            before = steps[edge.source]
            if edge.place < 0 or before.kind != PURE or not before.authorizes:
                text = f"{what} {edge.source} leads to it and authorizes nothing"
                yield Misfit(edge.path, f"{text}: lead it through a pure step with `authorizes`")
        if step.name == first:
            yield Misfit(("first",), f"{what} the run begins with it: begin elsewhere")
    elif step.authorizes:
        yield from _judge_misfits(step, into, first, steps)


def _proposal_misfits(step: Step, steps: Steps) -> Iterator[Misfit]:
    for place, branch in enumerate(step.next):
        if branch.to in steps and steps[branch.to].authorizes == step.name:
            continue
        if branch.to in steps or branch.to == COMPLETED:
            yield Misfit(
                ("steps", step.name, "next", place, "to"),
                f"step {step.name}: what a model proposes goes to a pure step with "
                f"authorizes = {step.name!r} first; {branch.to!r} is none",
            )


def _judge_misfits(step: Step, into: list[_Edge], first: str, steps: Steps) -> Iterator[Misfit]:
    what = f"step {step.name} authorizes {step.authorizes!r}"
    if step.authorizes not in steps or steps[step.authorizes].kind != MODEL:
        yield Misfit(("steps", step.name, "authorizes"), f"{what}, which is no model step")
        return
    for edge in into:
        if edge.source != step.authorizes or edge.place < 0:
            text = f"{what}, but {edge.source} leads to it too, with nothing proposed"
            yield Misfit(edge.path, f"{text}: lead it elsewhere")
    if step.name == first:
        yield Misfit(("first",), f"{what}, but the run begins with it: begin elsewhere")
    targets = [steps[branch.to].call for branch in step.next if branch.to in steps]
    if AUTHORIZED not in targets and not _is_loose(step, steps):
        text = f"{what}, and no step after it makes the call: give one call = {AUTHORIZED!r}"
        yield Misfit(("steps", step.name, "next"), text)
