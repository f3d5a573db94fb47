"""The swim lanes of a run: what its events say, in words, ready to be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.runs.lanes_story import AGENT, Column, LaneStory, Mark
from dashboard.templatetags.show import length
from engine.queries import event_stream
from engine.queries.event_stream import EventStream
from engine.queries.record import RunRecord
from engine.queries.runs import RunHead, StepView
from engine.store import programs
from pipeline.queries.holds import advised

SAID_MAX = 16
ROOMY_MAX, COLUMNS_MAX = 7, 24  # columns with room for reasons, and at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The drawing, and the sentences around it. Without ``columns`` the run has not started."""

    summary: str
    total: str = ""
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The links of all columns, in the order of time."""
        return tuple(mark for column in self.columns for mark in column.marks)


def lanes_of(record: RunRecord, steps: tuple[StepView, ...]) -> Lanes:
    """The newest of what happened in a run, as far as its head; the cost is bounded.

    It is the widest drawing with few enough columns; the oldest are left out where none has.
    """
    run = record.run
    if run.ready and run.length == 1:
        return Lanes(summary="Not started yet.")
    found, places = event_stream.of_run(record), {step.name: step.number for step in steps}

    def told(*, roomy: bool, packed: bool) -> LaneStory:
        story = LaneStory(run=run, places=places, copies=found.copies, roomy=roomy, packed=packed)
        story.agent = _first_agent(record)
        story.tell(found.moments)
        return story

    story = whole = told(roomy=True, packed=False)
    if len(story.columns) > ROOMY_MAX:
        story = told(roomy=False, packed=False)
    if len(story.columns) > COLUMNS_MAX:
        story = told(roomy=False, packed=True)
    older, columns = story.columns[:-COLUMNS_MAX], story.columns[-COLUMNS_MAX:]
    return Lanes(
        total=_total(run, found, whole),
        columns=tuple(columns),
        notes=_notes(found, sum(len(column.rows) for column in older), story.said_copies, run),
        summary=_summary(columns),
    )


def _first_agent(record: RunRecord) -> Mark | None:
    """The agent that begins the run; None where one agent takes all its steps."""
    shape = programs.shape_of(record.stored)
    if not shape.has_agents:
        return None
    name = shape.acting(shape.steps[shape.first].tool, shape.agent)
    return Mark("agent", AGENT, name, f"The {name} begins", f"/runs/{record.run.code}/events/1/")


def _total(run: RunHead, found: EventStream, story: LaneStory) -> str:
    """From start to end, or to the newest event; how long of it the run was paused or on hold."""
    if run.ready:
        return "Not started yet"
    pauses = [each for each in story.columns if each.still and each.marks[0].shape == "pause"]
    over = [each for each in pauses if each is not story.pause]
    paused = sum(each.until_ms - each.since_ms for each in over)
    words = " or ".join(sorted({each.still for each in over}, reverse=True))
    total = length((run.ended_ms or story.at_ms) - found.started_ms)
    least = "at least " * (found.hidden > 0)
    return f"{total}, of which {least}{length(paused)} {words}" if paused > 0 else total


def _notes(found: EventStream, older: int, said_copies: bool, run: RunHead) -> tuple[str, ...]:
    hidden = found.hidden + older
    copies = f"{found.copies} queue message{'s' * (found.copies != 1)} changed nothing."
    advice = advised(run.slots)
    notes = (
        f"Advice: {advice}. It can hold the payment, never allow it." if advice else "",
        "Wider took longer.",
        copies if found.copies and not said_copies else "",
        f"{hidden:,} older events not shown." if hidden else "",
    )
    return tuple(filter(None, notes))


def _summary(columns: Sequence[Column]) -> str:
    """The drawing in words, for those who do not see it."""
    marks = [mark for column in columns for mark in column.marks if mark.shape != "damage"]
    said = [mark.title for mark in marks]
    return "From left to right in time. " + "; ".join(said[-SAID_MAX:]) + "."
