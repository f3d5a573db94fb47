"""The fragments of a run's live page, and those that changed since a cursor."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.template.loader import render_to_string

from dashboard.runs import integrity, lanes, outcome, story
from dashboard.runs.statechart_svg import statechart_of
from dashboard.verdicts import cards, plans, verdict_card
from engine.queries import evidence, log, runs, steps
from engine.queries.log import EventRow
from engine.queries.runs import RunHead
from engine.queries.secrets import FactView
from pipeline.application import STEPS
from pipeline.queries import duplicates, far_side, money, personal, stuck_runs, usual_amounts
from pipeline.queries.money import PaymentView
from pipeline.queries.stuck_runs import StuckReason
from pipeline.steps import approvals
from pipeline.steps.approvals import Approvable
from sabotage.kit.assessment import ATTACKER

# The parts that change while a run goes on: each is one file with one root element and id.
FRAGMENTS = (
    *("alarm", "title", "controls", "outcome", "stage", "strip", "story", "rail", "lanes"),
    *("own_verdict", "all_fired", "machine", "payment", "facts", "receipt", "total"),
    *("score", "expect", "plans", "planning", "shots", "tail", "bar"),
)
# What is drawn once for all viewers, and all that it shows: nothing that the vault opened.
PURE = {"machine": ("run", "machine")}
ROWS_SHOWN = 40  # rows in the page; older ones are in the run's audit list
ROWS_MAX = 500  # more missed rows than this: the page is fetched anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """What a viewer has seen: so many rows, and the state of this mark.

    ``known`` are the marks of the single fragments, where they are known: else all that may
    differ are sent.
    """

    after: int
    mark: str
    known: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """HTML for a viewer whose cursor was ``after``; ``upto`` is the cursor it leads to."""

    html: str
    upto: int
    mark: str = ""  # of everything the viewer shows then
    resync: bool = False
    known: Mapping[str, str] = field(default_factory=dict)


def context_of(run: RunHead) -> dict[str, Any]:
    """Everything the run's page and its fragments show, read now."""
    told, stall, later = story.story_of(run), stuck_runs.of_run(run), far_side.later(run)
    tally, shots = cards.tally(run), cards.of_run(run)  # the story may judge; all counted is shown
    verdict = verdict_card.latest(run, shots)
    moved = log.last_move(run)
    move = (moved.state_from, moved.state_event, moved.state_to) if moved else ("", "", "")
    values, rail = personal.values_of(run), steps.of_run(run)
    payment, facts = money.payment_of(run, values), personal.facts_of(run, values)
    rows, crops = log.last_rows(run, ROWS_SHOWN), personal.crops_of(values.get("crops", ""))
    approvable = approvals.to_approve(run.id) if run.held_by else None
    return {
        "run": run,
        "steps": rail,
        "outcome": outcome.outcome_of(run, payment, facts, crops, approvable),
        **_hold_of(run, payment, facts, stall, approvable),
        "strip": outcome.strip_of(run, rows),
        "rows": rows,
        "story": told,
        "lanes": lanes.lanes_of(run, rail),
        "stopped": tally.stopped,
        "losses": verdict_card.losses(tally.reports),
        "latest": verdict.attack if verdict else None,
        "fired": sum(tally.fired.values()),
        "verdict": verdict,
        **verdict_card.stage_of(run, shots),
        "breached": cards.breached(run) if tally.breached else (),
        "integrity": integrity.of_run(run, tally.breached),
        "epoch": (moved.number if moved else 0) + len(later),
        "machine": statechart_of(run.state, move),
        "payment": payment,
        "later": later,
        "facts": facts,
        "crops": crops,
        "standing": evidence.signing_status(run),
        "stall": stall,
        "file_name": values.get("file_name", ""),
        "injectors": verdict_card.shown(run, cards.cards(run, shots, tally.fired), payment),
        **_plans(run),
    }


def _hold_of(
    run: RunHead,
    payment: PaymentView,
    facts: Sequence[FactView],
    stall: StuckReason | None,
    approvable: Approvable | None,
) -> dict[str, Any]:
    """What is shown to whoever decides about a hold: what is new, and what came before."""
    original = duplicates.original_of(run.slots) if run.held_by else None
    return {
        "approve_label": outcome.approve_label(payment, facts, stall, original, approvable),
        "approvable": approvable,
        "original": original,
        "usual": usual_amounts.usual_of(run.id, run.slots) if run.held_by else None,
    }


def _plans(run: RunHead) -> dict[str, Any]:
    return {"plans": plans.of_run(run), "plan_steps": plans.CHOICES}


def render(name: str, context: Mapping[str, Any], *, oob: bool) -> str:
    if values := PURE.get(name):
        return _drawn(name, oob, tuple((each, context[each]) for each in values))
    return render_to_string(f"run/_{name}.html", {**context, "oob": oob})


@lru_cache(maxsize=512)
def _drawn(name: str, oob: bool, values: tuple[tuple[str, Hashable], ...]) -> str:
    return render_to_string(f"run/_{name}.html", {**dict(values), "oob": oob})


def parts_of(context: Mapping[str, Any]) -> dict[str, str]:
    """Every fragment with this context: a page and a frame are made of the same bytes."""
    return {name: render(name, context, oob=True) for name in FRAGMENTS}


def mark_of(parts: Mapping[str, str]) -> str:
    """The mark of everything that a page of these fragments shows; its cursor carries it."""
    return _whole({name: _mark(html) for name, html in parts.items()})


def frame(run_id: str, after: int, mark: str, known: Mapping[str, str]) -> Frame:
    """What a viewer has to be sent who has seen ``after`` rows and the state ``mark``."""
    return frames(run_id, [Cursor(after=after, mark=mark, known=known)])[0]


def frames(run_id: str, cursors: Sequence[Cursor]) -> list[Frame]:
    """What each viewer has to be sent, in the order of their cursors: drawn once for all.

    The head is read first, and no row beyond it is shown: a page never shows a row whose
    consequences it does not show.
    """
    run = runs.by_id(run_id)
    if all(_beyond(run, cursor) for cursor in cursors):
        return [_resync(run) for _ in cursors]
    parts = parts_of(context_of(run))
    made: list[tuple[Cursor, Frame]] = []  # most viewers are at the same cursor
    for cursor in cursors:
        if not any(cursor == each for each, _ in made):
            made.append((cursor, _frame(run, parts, cursor)))
    return [next(frame for each, frame in made if each == cursor) for cursor in cursors]


def _beyond(run: RunHead, cursor: Cursor) -> bool:
    return cursor.after > run.length or run.length - cursor.after > ROWS_MAX


def _resync(run: RunHead) -> Frame:
    return Frame(html="", upto=run.length, resync=True)


def _frame(run: RunHead, parts: Mapping[str, str], cursor: Cursor) -> Frame:
    if _beyond(run, cursor):
        return _resync(run)
    after, known = cursor.after, cursor.known
    rows = log.rows_after(run, after, run.length - after)
    marks = {name: _mark(html) for name, html in parts.items()}
    now = _whole(marks)
    differs = now != cursor.mark
    changed = [parts[name] for name in FRAGMENTS if differs and marks[name] != known.get(name)]
    if rows or changed:
        news = {"rows": rows, "run": run, "after": after, "mark": now, "say": said(rows)}
        changed.append(render_to_string("run/_news.html", news))
    return Frame(html="".join(changed), upto=run.length, mark=now, known=marks)


def cursor_of(after: str, mark: str) -> tuple[int, str]:
    """A viewer's cursor as it came in an address; nonsense reads as having seen nothing."""
    return (int(after) if after.isdecimal() and len(after) < 16 else 0), mark[:16]


def said(rows: tuple[EventRow, ...]) -> str:
    """The sentence for people who hear the page: step ends and verdicts, not every row."""
    return " ".join(filter(None, (_sentence(row) for row in rows)))


def _sentence(row: EventRow) -> str:
    if row.kind == "result" and row.step in STEPS:
        return f"Step {STEPS.index(row.step) + 1} of {len(STEPS)}, {row.step}, is done."
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
        return "The run succeeded." if row.outcome == "completed" else f"The run {row.outcome}."
    return "Personal data was erased." if row.kind == "erasure_done" else ""


def _mark(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()


def _whole(marks: Mapping[str, str]) -> str:
    return _mark("".join(marks[name] for name in FRAGMENTS))[:16]
