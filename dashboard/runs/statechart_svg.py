"""The lifecycle as a statechart in SVG, drawn from its table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from nanovm_core.core.lifecycle import COMPLETED, STATES, TABLE, TERMINAL

NODE, TITLE, PAD, WIDTH = 38, 34, 8, 204
GROUPS = ("initializing", "running", "suspended", "terminated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One state: a row in its group's box."""

    name: str
    x: int
    y: int
    width: int
    height: int
    mark: str  # current, current ended-ok, current ended-failed, or empty

    @property
    def text_x(self) -> int:
        return self.x + 10

    @property
    def text_y(self) -> int:
        return self.y + 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A compound state and the box around its states."""

    name: str
    x: int
    y: int
    width: int
    height: int
    nodes: tuple[Node, ...]

    @property
    def text_x(self) -> int:
        return self.x + 12

    @property
    def text_y(self) -> int:
        return self.y + 23

    @property
    def end_x(self) -> int:
        return self.x + self.width - 12

    @property
    def current(self) -> bool:
        return any(node.mark for node in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An arrow between two compound states that the table has a transition for."""

    path: str
    tip: str
    mark: str  # last, or empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One picture, wide or tall."""

    shape: str
    width: int
    height: int
    groups: tuple[Group, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statechart:
    """Both pictures, and the same data as a table."""

    state: str
    last: str
    drawings: tuple[Drawing, ...]
    table: tuple[tuple[str, str, str], ...]


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
    },
    "tall": {
        ("initializing", "running"): ((104, 120), (104, 168)),
        ("running", "terminated"): ((206, 240), (236, 240), (236, 640), (206, 640)),
        ("running", "suspended"): ((80, 324), (80, 372)),
        ("suspended", "running"): ((134, 372), (134, 324)),
        ("suspended", "terminated"): ((104, 528), (104, 576)),
        ("initializing", "terminated"): ((206, 60), (262, 60), (262, 680), (206, 680)),
        ("initializing", "suspended"): ((206, 90), (222, 90), (222, 440), (206, 440)),
    },
}


@lru_cache(maxsize=256)
def statechart_of(state: str, move: tuple[str, str, str]) -> Statechart:
    """The picture of a run in ``state`` whose last transition was ``move`` (from, event, to)."""
    return Statechart(
        state=state,
        last=f"{move[0]} — {move[1]} → {move[2]}" if move[1] else "none yet",
        drawings=tuple(_drawing(shape, state, move) for shape in PLACES),
        table=tuple((a, event, ", ".join(to)) for (a, event), to in TABLE.items()),
    )


@cache
def pairs() -> frozenset[tuple[str, str]]:
    """Between which compound states the table moves."""
    moves = {(_group(a), _group(b)) for (a, _), targets in TABLE.items() for b in targets}
    return frozenset((a, b) for a, b in moves if a != b)


def _drawing(shape: str, state: str, move: tuple[str, str, str]) -> Drawing:
    width, height = SIZES[shape]
    last = (_group(move[0]), _group(move[2]))
    return Drawing(
        shape=shape,
        width=width,
        height=height,
        groups=tuple(_box(name, *PLACES[shape][name], state) for name in GROUPS),
        edges=tuple(
            _edge(points, "last" if pair == last else "")
            for pair, points in ROUTES[shape].items()
            if pair in pairs()
        ),
    )


def _box(name: str, x: int, y: int, state: str) -> Group:
    states = [s for s in STATES if _group(s) == name]
    nodes = tuple(
        Node(
            name=s.partition(".")[2].replace("_", " "),
            x=x + PAD,
            y=y + TITLE + i * NODE,
            width=WIDTH - 2 * PAD,
            height=NODE - 6,
            mark=_mark(s) if s == state else "",
        )
        for i, s in enumerate(states)
    )
    height = TITLE + len(states) * NODE + PAD
    return Group(name=name, x=x, y=y, width=WIDTH, height=height, nodes=nodes)


def _mark(state: str) -> str:
    if state not in TERMINAL:
        return "current"
    return "current ended-ok" if state == COMPLETED else "current ended-failed"


def _edge(points: tuple[tuple[int, int], ...], mark: str) -> Edge:
    (ax, ay), (bx, by) = points[-2], points[-1]
    dx, dy = (bx > ax) - (bx < ax), (by > ay) - (by < ay)
    body = (*points[:-1], (bx - 8 * dx, by - 8 * dy))
    path = "M" + " L".join(f"{x} {y}" for x, y in body)
    left = (bx - 10 * dx + 6 * dy, by - 10 * dy + 6 * dx)
    right = (bx - 10 * dx - 6 * dy, by - 10 * dy - 6 * dx)
    return Edge(path=path, tip=f"{bx},{by} {left[0]},{left[1]} {right[0]},{right[1]}", mark=mark)


def _group(state: str) -> str:
    return state.partition(".")[0]
