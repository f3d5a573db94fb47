"""The swim lanes of a run: what its events say, in words, ready to be drawn."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboard.runs import lanes_svg as svg
from dashboard.runs.lanes_story import PACKED, ROOMY, Story
from dashboard.runs.lanes_svg import Dot, Gap, Item, Mark, length
from engine.queries import event_stream
from engine.queries.event_stream import Course
from engine.queries.record import STORY, Record
from engine.queries.runs import RunHead, StepView

SAID_MAX = 16
ROOMY_MAX = 30  # a run with more steps, pauses and holds fits only as closely as possible
IDLE = (46, 30, 28, 4, 4)  # the least width of an idle time, by grain


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The drawing, and the sentences around it. Without ``marks`` the run has not started."""

    total: str
    marks: tuple[Mark, ...]
    dots: tuple[Dot, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    summary: str
    width: int = svg.WIDTH
    height: int = svg.HEIGHT
    left: int = svg.LEFT
    right: int = svg.RIGHT
    names: tuple[tuple[str, str, int], ...] = svg.LANES


def lanes_of(record: Record, steps: tuple[StepView, ...]) -> Lanes:
    """The newest of what happened in a run, as far as its head; the cost is bounded."""
    run = record.run
    if run.ready and run.length == 1:
        return Lanes(total="", marks=(), dots=(), gaps=(), notes=(), summary="Not started yet.")
    found = event_stream.of_run(record)
    return drawn(run, found, {step.name: step.number for step in steps})


def drawn(run: RunHead, found: Course, places: Mapping[str, int]) -> Lanes:
    """The widest drawing that fits; where none does, the oldest events are left out."""
    moments = found.moments
    told = sum(moment.row.kind in STORY for moment in moments)
    grain, whole = ROOMY if told <= ROOMY_MAX else PACKED, None
    while True:
        story = Story(run=run, places=places, grain=grain, copies=found.copies)
        story.tell(moments)
        whole = whole or story
        axis = svg.axis_of(story.ticks, story.items, idle=IDLE[grain])
        if not axis.over or len(moments) == 1:
            break
        if grain < PACKED:
            grain += 1
        else:
            moments = moments[max(1, int(len(moments) * axis.over)) :]
    hidden = found.hidden + len(found.moments) - len(moments)
    return Lanes(
        total=_total(run, found, whole),
        marks=svg.marks_of(story.items, axis),
        dots=svg.dots_of(story.ticks, axis),
        gaps=svg.gaps_of(story.ticks, story.items, axis),
        notes=_notes(found, hidden, bool(axis.squeezed), story.said_copies),
        summary=_summary(story.items),
    )


def _total(run: RunHead, found: Course, story: Story) -> str:
    """From start to end, or to the newest event; how long of it the run was paused or on hold."""
    if run.ready:
        return "Not started yet"
    until = run.ended_ms or story.at_ms
    waits = [(item, item.until) for item in story.items if item.shape == "pause" and item.until]
    paused = sum(story.ticks[end].at_ms - story.ticks[item.since].at_ms for item, end in waits)
    words = " or ".join(sorted({"on hold" if item.tone else "paused" for item, _ in waits})[::-1])
    total = length(until - found.started_ms)
    least = "at least " * (found.hidden > 0)
    return f"{total}, of which {least}{length(paused)} {words}" if paused > 0 else total


def _notes(found: Course, hidden: int, squeezed: bool, said_copies: bool) -> tuple[str, ...]:
    copies = f"{found.copies} queue message{'s' * (found.copies != 1)} changed nothing."
    return tuple(
        filter(
            None,
            (
                "Long waits are drawn shorter, short steps wider."
                if squeezed
                else "Short steps are drawn wider.",
                copies if found.copies and not said_copies else "",
                f"{hidden:,} older events not shown." if hidden else "",
            ),
        )
    )


def _summary(items: Iterable[Item]) -> str:
    """The drawing in words, for those who do not see it."""
    said = [item.title for item in items if item.shape != "damage"]
    return "From left to right in time. " + "; ".join(said[-SAID_MAX:]) + "."
