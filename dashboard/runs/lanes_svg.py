"""The geometry of the swim lanes: ticks in the order of time become places, marks and dots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

LANES = (
    ("Document", "", 44),
    ("Model", "untrusted", 103),
    ("Gate", "decides", 150),
    ("Stripe", "", 202),
    ("Audit log", "", 250),
)
DOCUMENT, MODEL, GATE, STRIPE, LOG = (y for _, _, y in LANES)
WIDTH, HEIGHT, LEFT, RIGHT = 790, 266, 96, 784
BOX, TARGET = 26, 28  # heights of a box and of what a finger hits
GAP_WIDTH = 28  # of an idle time that says its length
ALLOWED = 82  # the width of what the gate says to a call that it allows
LONG_MS = 1_000  # an idle gap from here on says its length
WORK = ("bar", "proposal")  # what a step at work is drawn as
FAR_MS = 10**13  # damaged times may be anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One event on the log's lane; or several that are too close, with their number."""

    number: int
    title: str
    tone: str
    href: str
    x: int = 0
    count: int = 1

    @property
    def y(self) -> int:
        return LOG

    @property
    def hit_x(self) -> int:
        return self.x - TARGET // 2

    @property
    def hit_y(self) -> int:
        return LOG - TARGET // 2

    @property
    def radius(self) -> int:
        return 9 if self.count > 1 else 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A moment, and the room that what happened in it needs."""

    at_ms: int
    room: int = 0
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What is drawn between two ticks (``until`` is None while it goes on), or in the first's room.

    ``shape``: bar, proposal, stop, allowed, damage or pause.
    """

    shape: str
    lane: int
    since: int
    until: int | None
    title: str
    href: str
    text: str = ""
    tone: str = ""
    over: str = ""  # the line above
    under: str = ""  # the line below
    called: bool = False  # a decision on a proposal, and not on another message
    asked: "Item | None" = None  # the proposal that was decided on later, from which a line leads
    leads: int = 0  # the tick at which the payment begins that a decision allowed
    shift: int = 0  # how far left of its room a decision begins, under its proposal
    short: str = ""  # the text where there is little room
    inside: bool = False  # in the room of its tick
    width: int = 0  # at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One line of a mark."""

    x: int
    y: int
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One link of the drawing: what a finger hits, a box or a line, and its words."""

    shape: str
    tone: str
    href: str
    title: str
    x: int
    y: int
    width: int
    height: int
    texts: tuple[Text, ...] = ()
    path: str = ""

    @property
    def boxed(self) -> bool:
        return self.shape not in ("stop", "damage")

    @property
    def hit_x(self) -> int:
        return self.x - max(0, TARGET - self.width) // 2

    @property
    def hit_width(self) -> int:
        return max(TARGET, self.width)

    @property
    def hit_y(self) -> int:
        return self.y - max(0, TARGET - self.height) // 2

    @property
    def hit_height(self) -> int:
        return TARGET if self.shape == "pause" else max(TARGET, self.height)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """An idle time that is drawn shorter, and says how long it was."""

    x: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Where each tick's room begins and ends, from left to right."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    squeezed: frozenset[int]  # the ticks after which a wait is drawn shorter
    over: float  # how much of what it needs has no room; it fits at 0


def axis_of(ticks: Sequence[Tick], items: Sequence[Item], idle: int) -> Axis:
    """Spread the ticks: every room and bar gets what it needs, the rest goes by duration.

    A wait, in which no bar is open, is drawn no longer than a third of all work. ``idle`` is the
    least width of one that says its length.
    """
    spans = [_clamped(b.at_ms - a.at_ms) for a, b in pairwise(ticks)]
    still = _during(items, ("pause",), len(spans))
    works = zip(_during(items, WORK, len(spans)), still, strict=True)
    busy = [at_work and not paused for at_work, paused in works]
    work = sum(span for span, works in zip(spans, busy, strict=True) if works)
    limit = max(work // 3, LONG_MS // 2)
    shown = [s if works else min(s, limit) for s, works in zip(spans, busy, strict=True)]
    least = _least(ticks, items, spans, idle)
    needed = sum(least) + sum(tick.room for tick in ticks)
    spare = RIGHT - LEFT - 10 - needed
    over = max(0, -spare) / max(1, needed)
    total = max(1, sum(shown))
    before, after, x = [], [], LEFT + 4
    for place, tick in enumerate(ticks):
        before.append(x)
        after.append(x + tick.room)
        x += tick.room
        if place < len(spans):
            x += least[place] + max(0, spare) * shown[place] // total
    squeezed = frozenset(i for i, span in enumerate(spans) if not busy[i] and span > limit)
    return Axis(before=tuple(before), after=tuple(after), squeezed=squeezed, over=over)


def _clamped(span: int) -> int:
    return min(max(0, span), FAR_MS)


def _during(items: Iterable[Item], shapes: tuple[str, ...], gaps: int) -> list[bool]:
    """In which gaps between ticks such an item goes on."""
    found = [False] * gaps
    for item in items:
        if item.shape in shapes:
            until = gaps if item.until is None else item.until
            found[item.since : until] = [True] * (until - item.since)
    return found


def _least(
    ticks: Sequence[Tick], items: Sequence[Item], spans: Sequence[int], idle: int
) -> list[int]:
    """The least width of each gap, so that a bar, a pause and an idle time can be read."""
    taken = _during(items, (*WORK, "pause"), len(spans))
    pairs = zip(spans, taken, strict=True)
    least = [2 if known or span < LONG_MS else idle for span, known in pairs]
    for item in items:
        if item.inside or item.until is None or item.until <= item.since:
            continue
        rooms = sum(tick.room for tick in ticks[item.since + 1 : item.until])
        have = rooms + sum(least[item.since : item.until])
        least[item.until - 1] += max(0, item.width - have)
    return least


def marks_of(items: Iterable[Item], axis: Axis) -> tuple[Mark, ...]:
    """The items at their places; pauses first, for the others lie on them."""
    ordered = sorted(items, key=lambda item: item.shape != "pause")
    return tuple(_drawn(item, axis) for item in ordered)


def _place(item: Item, axis: Axis) -> tuple[int, int]:
    if item.inside:
        return axis.before[item.since] + 2 - item.shift, axis.after[item.since] - 2
    end = RIGHT if item.until is None else axis.before[item.until]
    return axis.after[item.since] + 1, max(axis.after[item.since] + 3, end - 1)


def _drawn(item: Item, axis: Axis) -> Mark:
    left, right = _place(item, axis)
    if item.shape == "pause":
        return _pause(item, left, right)
    if item.shape == "proposal":
        return _proposal(item, left, right)
    if item.shape in ("stop", "allowed"):
        box = _drawn(item.asked, axis) if item.asked else None
        return _decision(item, left, right, axis.after[item.leads] + 8, box)
    if item.shape == "damage":
        mark = _mark(item, left, LOG - 36, right - left, 20)
        return replace(mark, texts=(Text(x=left, y=LOG - 20, text=item.text, kind="loud"),))
    return _bar(item, left, right)


def _mark(item: Item, x: int, y: int, width: int, height: int) -> Mark:
    return Mark(
        shape=item.shape,
        tone=item.tone,
        href=item.href,
        title=item.title,
        x=x,
        y=y,
        width=width,
        height=height,
    )


def _pause(item: Item, left: int, right: int) -> Mark:
    fitting = (text for text in (item.text, item.short) if right - left >= wide(text))
    text = next(fitting, "")
    mark = _mark(item, left, 2, right - left, LOG - 2)
    return replace(mark, texts=(Text(x=left + 3, y=16, text=text, kind="quiet"),))


def _bar(item: Item, left: int, right: int) -> Mark:
    y = item.lane - BOX // 2
    inset = min(5, max(1, (right - left - wide(item.text)) // 2))
    inner = Text(x=left + inset, y=item.lane + 4, text=item.text)
    under = Text(x=left + 1, y=y + BOX + 13, text=item.under, kind="quiet")
    return replace(_mark(item, left, y, right - left, BOX), texts=(inner, under))


def _proposal(item: Item, left: int, right: int) -> Mark:
    y = item.lane - BOX // 2
    width = max(item.width - 4, min(right - left, item.width + 60))
    left = right - width if not item.inside else left
    inner = Text(x=left + 5, y=item.lane + 4, text=item.text)
    over = Text(x=left + 1, y=y - 5, text=item.over, kind="mono")
    return replace(_mark(item, left, y, width, BOX), texts=(over, inner))


def _decision(item: Item, left: int, right: int, paid: int, asked: Mark | None) -> Mark:
    """An arrow from the model's lane, or a proposal's box, to the gate or a box in it."""
    y, at = item.lane - 14, left + (item.shift - 14 if item.shift > 0 else 20)
    path = f"M{at} {MODEL + BOX // 2 + (0 if item.called else 10)} V{y - 3}"
    if asked:
        path = f"M{asked.x + asked.width} {MODEL} H{at} V{y - 3}"
    if item.shape == "allowed":
        path += f" M{left + ALLOWED} {item.lane} H{paid} V{STRIPE - BOX // 2}" * (item.leads > 0)
        box = _mark(item, left, y, ALLOWED, BOX)
        return replace(box, texts=(Text(x=left + 5, y=item.lane + 3, text=item.text),), path=path)
    texts = [Text(x=left, y=y + 16, text=item.text, kind="loud")]
    texts.append(Text(x=left, y=y + 29, text=item.under, kind="mono"))
    mark = _mark(item, left, y - 6, max(right - left, wide(item.text)), 38)
    return replace(mark, texts=tuple(texts), path=f"{path} M{at - 14} {y} H{at + 14}")


def dots_of(ticks: Sequence[Tick], axis: Axis) -> tuple[Dot, ...]:
    """The events on the log's lane; those nearer than a finger is wide share one dot."""
    found: list[list[Dot]] = []
    for place, tick in enumerate(ticks):
        middle = (axis.before[place] + axis.after[place]) // 2
        for dot in tick.dots:
            here = replace(dot, x=middle)
            if found and middle - found[-1][0].x < TARGET:
                found[-1].append(here)
            else:
                found.append([here])
    return tuple(_together(dots) for dots in found)


def _together(dots: Sequence[Dot]) -> Dot:
    if len(dots) == 1:
        return dots[0]
    chosen = next((dot for dot in dots if dot.tone), dots[0])
    title = f"Events {dots[0].number} to {dots[-1].number}: " + ", ".join(d.title for d in dots[:6])
    return replace(chosen, x=dots[0].x, title=title, count=len(dots))


def gaps_of(ticks: Sequence[Tick], items: Iterable[Item], axis: Axis) -> tuple[Gap, ...]:
    """The waits outside a pause that are drawn shorter, where there is room to say so."""
    still = _during(items, ("pause",), len(ticks))
    spans = [(i, ticks[i + 1].at_ms - ticks[i].at_ms) for i in sorted(axis.squeezed)]
    return tuple(
        Gap(x=(axis.after[i] + axis.before[i + 1]) // 2, text=length(span))
        for i, span in spans
        if not still[i] and span >= LONG_MS and axis.before[i + 1] - axis.after[i] >= GAP_WIDTH
    )


def wide(text: str) -> int:
    """About the width of a line of text."""
    return len(text) * 15 // 2 + 4


def length(span_ms: int) -> str:
    """A duration as short as it can be read: 48 ms, 3.4 s, 12 min, 5 h, 3 d."""
    span_ms = _clamped(span_ms)
    if span_ms < 1_000:
        return f"{span_ms} ms"
    if span_ms < 100_000:
        return f"{span_ms // 1_000}.{span_ms % 1_000 // 100} s"
    minutes = span_ms // 60_000
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1_440} d"
