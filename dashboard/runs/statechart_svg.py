"""The states of a run, or of an agent, as a statechart in SVG, drawn from their table."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from nanovm_core import agents
from nanovm_core.core import lifecycle as life

NODE, TITLE, PAD = 38, 34, 8  # a state's row, a group's title, what is left below


class Group(NamedTuple):
    """A compound state: a box at this place, and in it its states, each a name and its mark.

    The mark is current, current ended-ok, current ended-failed, or empty.
    """

    name: str
    x: int
    y: int
    height: int
    states: tuple[tuple[int, str, str], ...]  # with the place in the box

    @property
    def current(self) -> bool:
        return any(mark for _, _, mark in self.states)


class Drawing(NamedTuple):
    """One picture, wide or tall. An edge is an arrow that the table has: its path, and "last"."""

    shape: str
    width: int
    height: int
    groups: tuple[Group, ...]
    edges: tuple[tuple[str, str], ...]


class Statechart(NamedTuple):
    """Both pictures, and the same data as a table, in which the present state is ``here``."""

    of: str  # whose states they are
    state: str
    here: str
    last: str
    drawings: tuple[Drawing, ...]
    table: tuple[tuple[str, str, str], ...]


class Machine(NamedTuple):
    """What is drawn: the states, in boxes by their first word, and the table between them."""

    states: tuple[str, ...]
    table: Mapping[tuple[str, str], Sequence[str]]


# What a running agent does follows from its runs: its table has one state for all three.
_RUNS = (life.ACTIVE, life.IDLE, life.WAITING)
_OTHERS = tuple(state for state in agents.STATES if state != agents.RUNNING)
MACHINES = {
    "run": Machine(life.STATES, life.TABLE),
    "agent": Machine((*_RUNS, *_OTHERS), agents.TABLE),
}

# The position of each compound state, and the points of the arrows between them.
PLACES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "wide": {
        "initializing": (2, 30),
        "running": (242, 30),
        "suspended": (242, 244),
        "terminated": (482, 30),
    },
    "tall": {
        "initializing": (2, 2),
        "running": (2, 168),
        "suspended": (2, 372),
        "terminated": (2, 576),
    },
}
SIZES = {"wide": (688, 406), "tall": (270, 738)}
ROUTES: Mapping[str, Mapping[tuple[str, str], tuple[tuple[int, int], ...]]] = {
    "wide": {
        ("initializing", "running"): ((206, 78), (242, 78)),
        ("running", "terminated"): ((446, 98), (482, 98)),
        ("running", "suspended"): ((314, 186), (314, 244)),
        ("suspended", "running"): ((374, 244), (374, 186)),
        ("suspended", "terminated"): ((446, 323), (584, 323), (584, 186)),
        ("initializing", "terminated"): ((104, 30), (104, 10), (584, 10), (584, 30)),
        ("initializing", "suspended"): ((104, 148), (104, 323), (242, 323)),
        ("terminated", "initializing"): ((584, 30), (584, 10), (104, 10), (104, 30)),
    },
    "tall": {
        ("initializing", "running"): ((104, 120), (104, 168)),
        ("running", "terminated"): ((206, 240), (236, 240), (236, 640), (206, 640)),
        ("running", "suspended"): ((80, 324), (80, 372)),
        ("suspended", "running"): ((134, 372), (134, 324)),
        ("suspended", "terminated"): ((104, 528), (104, 576)),
        ("initializing", "terminated"): ((206, 60), (262, 60), (262, 680), (206, 680)),
        ("initializing", "suspended"): ((206, 90), (222, 90), (222, 440), (206, 440)),
        ("terminated", "initializing"): ((206, 680), (262, 680), (262, 60), (206, 60)),
    },
}


@lru_cache(maxsize=256)
def statechart_of(state: str, move: tuple[str, str, str], of: str = "run") -> Statechart:
    """The picture in ``state``, after the transition ``move`` (from, event, to)."""
    table = MACHINES[of].table
    return Statechart(
        of=of,
        state=state,
        here=next((each for each, _ in table if state.startswith(each)), state),
        last=f"{move[0]} — {move[1]} → {move[2]}" if move[1] else "none yet",
        drawings=tuple(_drawing(shape, state, move, of) for shape in PLACES),
        table=tuple((a, event, ", ".join(to)) for (a, event), to in table.items()),
    )


@cache
def pairs(of: str = "run") -> frozenset[tuple[str, str]]:
    """Between which compound states the table moves."""
    moves = {(_box(a), _box(b)) for (a, _), targets in MACHINES[of].table.items() for b in targets}
    return frozenset((a, b) for a, b in moves if a != b)


def _box(state: str) -> str:
    return state.partition(".")[0]


def _drawing(shape: str, state: str, move: tuple[str, str, str], of: str) -> Drawing:
    last = (_box(move[0]), _box(move[2]))
    groups = tuple(_group(name, *place, state, of) for name, place in PLACES[shape].items())
    routes = [(pair, points) for pair, points in ROUTES[shape].items() if pair in pairs(of)]
    edges = tuple((_path(points), "last" if pair == last else "") for pair, points in routes)
    return Drawing(shape, *SIZES[shape], groups, edges)


def _group(name: str, x: int, y: int, state: str, of: str) -> Group:
    own = [each for each in MACHINES[of].states if _box(each) == name]
    names = [each.partition(".")[2].replace("_", " ") for each in own]
    marks = [_mark(each) if each == state else "" for each in own]
    end = TITLE + len(own) * NODE
    states = tuple(zip(range(TITLE, end, NODE), names, marks, strict=True))
    return Group(name, x, y, end + PAD, states)


def _mark(state: str) -> str:
    if state not in life.TERMINAL:
        return "current"
    return "current ended-ok" if state == life.COMPLETED else "current ended-failed"


def _path(points: Sequence[tuple[int, int]]) -> str:
    """A line that leaves room for its tip."""
    (ax, ay), (bx, by) = points[-2:]
    end = bx - 8 * ((bx > ax) - (bx < ax)), by - 8 * ((by > ay) - (by < ay))
    return "M" + " L".join(f"{x} {y}" for x, y in (*points[:-1], end))
