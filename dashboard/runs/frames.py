"""The fragments of a run's live page, and those that changed since a cursor."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string

from dashboard.runs import run_view
from dashboard.runs.run_view import RunView
from engine.models import Link
from engine.queries import runs
from engine.queries.log import EventRow
from pipeline.application import STEPS
from sabotage.kit.assessment import ATTACKER

# What changes while a run goes on: each fragment is one file with one root element and id, drawn
# of these parts of the view alone. It is sent when one of them differs from what a viewer saw.
FRAGMENTS: Mapping[str, Sequence[str]] = {
    "alarm": ("integrity", "attacks.through"),
    "title": (
        *("run.label", "run.number", "run.erased_ms", "run.quarantined", "run.reason"),
        *("run.state", "mine.file_name", "stall", "integrity", "halted", "asked.verdict"),
    ),
    "controls": (
        *("run.state", "run.hold", "terms", "run.held_by", "run.erased_ms", "epoch", "story.next"),
        *("stall", "approvable", "original", "approve_label", "halted"),
    ),
    "outcome": ("outcome", "later", "attacks.total", "attacks.stopped", "usual", "reply"),
    "hold": ("hold", "run.hold", "run.held_by", "approvable", "original"),
    "stage": ("verdicts.stage", "verdicts.cards", "story", "run.ended"),
    "strip": ("strip", "run.state"),
    "story": ("story", "run.ended", "epoch"),
    "rail": ("steps", "run.number", "run.step"),
    "lanes": ("lanes",),
    "own_verdict": ("verdicts.latest",),
    "all_fired": ("latest", "verdicts.all_fired", "verdicts.cards"),
    "machine": ("machine", "run.state", "run.reason"),
    "payment": ("payment", "later", "run.ended"),
    "facts": ("mine.facts", "mine.crops", "run.erased_ms", "run.state"),
    "asked": ("asked", "checks", "outcome", "run.erased_ms", "run.state"),
    "receipt": ("standing", "run.ended", "run.length"),
    "total": ("attacks.total", "attacks.stopped", "verdicts.losses"),
    "score": ("integrity", "attacks.total"),
    "expect": ("story.next", "run.state", "run.step", "run.number"),
    "plans": ("plans",),
    "planning": ("verdicts.cards", "plan_steps", "run.ready"),
    "shots": ("verdicts.cards", "verdicts.all_fired", "latest", "story"),
    "tail": ("run.length", "run.head", "run.quarantined"),
    "bar": ("run.state", "run.erased_ms", "story.next", "epoch", "halted"),
}
OF_CALLS = (  # of a call of a foreign agent, which has no document and is attacked elsewhere
    *("alarm", "title", "controls", "outcome", "hold", "strip", "rail", "asked"),
    *("machine", "receipt", "tail", "bar"),
)
ENDS = {"completed": "The run succeeded.", "declined": "A person declined it."}
ENDS["killed"] = "The run was stopped."
ROWS_MAX = 500  # more missed rows than this: the page is fetched anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """What a viewer has seen: so many rows, and the state of this mark.

    ``known`` are the marks of the single fragments, where they are known: else all that may
    differ are sent.
    """

    after: int
    mark: str
    known: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """HTML for a viewer whose cursor was ``after``; ``upto`` is the cursor it leads to."""

    html: str
    upto: int
    mark: str = ""  # of everything the viewer shows then
    resync: bool = False
    known: Mapping[str, str] = field(default_factory=dict)


def context_of(view: RunView, parts: Sequence[str]) -> dict[str, Any]:
    """What a fragment is drawn of: its parts, and the run, whose code and id never change."""
    return {name: getattr(view, name) for name in ("run", *(p.partition(".")[0] for p in parts))}


def draw(name: str, view: RunView, viewer: Link | None = None) -> str:
    """A fragment: a page and a frame are made of the same bytes.

    ``viewer``: the link through which somebody else reads it, without the owner's controls.
    """
    return render(name, {**context_of(view, FRAGMENTS[name]), "viewer": viewer}, oob=True)


def render(name: str, context: Mapping[str, Any], *, oob: bool) -> str:
    return render_to_string(f"run/_{name}.html", {**context, "oob": oob})


def names_of(run: runs.RunHead) -> Sequence[str]:
    """The fragments that a run's page has."""
    return OF_CALLS if run.is_call else [name for name in FRAGMENTS if name != "asked"]


def marks_of(view: RunView) -> dict[str, str]:
    """A mark for each fragment of the page that differs where its parts do."""
    names = names_of(view.run)
    return {name: _mark([_part(view, part) for part in FRAGMENTS[name]]) for name in names}


def mark_of(marks: Mapping[str, str]) -> str:
    """The mark of everything that a page with these fragments shows; its cursor carries it."""
    return _mark([*marks.values()])[:16]


def frames(run_id: str, cursors: Sequence[Cursor]) -> list[Frame]:
    """What to send each viewer, in the order of their cursors: read once for all.

    The head is read first, and no row beyond it is shown: a page never shows a row whose
    consequences it does not show.
    """
    row = runs.stored(run_id)
    run = runs.head_of(row)
    if all(_beyond(run, cursor) for cursor in cursors):
        return [_resync(run) for _ in cursors]
    view = run_view.read(run, row)
    marks = marks_of(view)
    unlike = [each for n, each in enumerate(cursors) if each not in cursors[:n]]
    made = [_frame(view, marks, cursor) for cursor in unlike]
    return [made[unlike.index(cursor)] for cursor in cursors]


def _beyond(run: runs.RunHead, cursor: Cursor) -> bool:
    return cursor.after > run.length or run.length - cursor.after > ROWS_MAX


def _resync(run: runs.RunHead) -> Frame:
    return Frame(html="", upto=run.length, resync=True)


def _frame(view: RunView, marks: Mapping[str, str], cursor: Cursor) -> Frame:
    if _beyond(view.run, cursor):
        return _resync(view.run)
    rows = tuple(row for row in view.rows if row.number > cursor.after)
    now = mark_of(marks)
    names = [each for each in marks if now != cursor.mark and marks[each] != cursor.known.get(each)]
    changed = [draw(name, view) for name in names]
    if rows or changed:
        say = said(rows, view.run.steps)
        news = {"rows": rows, "run": view.run, "after": cursor.after, "mark": now, "say": say}
        changed.append(render_to_string("run/_news.html", news))
    return Frame(html="".join(changed), upto=view.run.length, mark=now, known=marks)


def cursor_of(after: str, mark: str) -> tuple[int, str]:
    """A viewer's cursor as it came in an address; nonsense reads as having seen nothing."""
    return (int(after) if after.isdecimal() and len(after) < 16 else 0), mark[:16]


def said(rows: tuple[EventRow, ...], steps: Sequence[str] = STEPS) -> str:
    """The sentence for screen readers: step ends and verdicts, not every row."""
    return " ".join(filter(None, (_sentence(row, steps) for row in rows)))


def _sentence(row: EventRow, steps: Sequence[str]) -> str:
    if row.kind == "result" and row.step in steps:
        return f"Step {steps.index(row.step) + 1} of {len(steps)}, {row.step}, is done."
    if row.kind == "refused":
        by_attack = row.actor.startswith(ATTACKER)  # it may have several; its verdict names one
        return "An attack was blocked." if by_attack else f"Blocked by rule {row.rule}."
    if row.kind == "ignored":
        return "A duplicate message was ignored."
    if row.kind == "integrity":
        return "Damage was detected. The run is quarantined."
    if row.kind == "suspended":
        return "The run is on hold."
    if row.kind == "terminal":
        return ENDS.get(row.outcome, f"The run {row.outcome}.")
    return "Personal data was erased." if row.kind == "erasure_done" else ""


def _part(view: RunView, path: str) -> Any:
    """A part of the view, or a field of one; None where the view has none."""
    found: Any = view
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _mark(values: Sequence[Any]) -> str:
    """A digest of values: what it is made of cannot be told from it."""
    return hashlib.sha256(repr(values).encode()).hexdigest()
