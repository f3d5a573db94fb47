"""All that a run's page shows, read once: a value, of which each fragment draws its parts."""

from dataclasses import dataclass, replace
from uuid import UUID

from dashboard.runs import integrity, lanes, outcome, story
from dashboard.runs.integrity import Integrity
from dashboard.runs.lanes import Lanes
from dashboard.runs.outcome import OutcomeLine, Strip
from dashboard.runs.statechart_svg import Statechart, statechart_of
from dashboard.runs.story import Story
from dashboard.start import call_view
from dashboard.verdicts import cards, plans, verdict_card
from dashboard.verdicts.plans import CHOICES, PlanLine
from engine.models import Run
from engine.queries import agents, evidence, steps
from engine.queries.log import EventRow
from engine.queries.record import RunRecord, record_of
from engine.queries.runs import RunHead, StepView
from engine.runtime import api, terms
from gate.asked import Asked
from gate.replies import Reply
from nanovm_core.core.gate.why import Check
from pipeline.queries import far_side, holds, money, personal, stuck_runs
from pipeline.register.usual_amounts import Usual, usual_of
from pipeline.reports import Original, original_of
from pipeline.steps import approvals

ROWS_SHOWN = 40  # rows in the page; older ones are in the run's audit list


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run at one moment. No part of it is read again, and none is HTML."""

    run: RunHead
    rows: tuple[EventRow, ...]  # all that were read, oldest first
    epoch: int  # it rises with each change that makes a button another command
    steps: tuple[StepView, ...]
    outcome: OutcomeLine
    strip: Strip
    story: Story | None
    lanes: Lanes
    machine: Statechart
    standing: evidence.SigningStatus
    stall: stuck_runs.StuckReason | None
    halted: agents.AgentView | None  # the agent with which it was paused
    # the money, and what it is decided by
    payment: money.PaymentView
    later: tuple[far_side.Later, ...]
    approve_label: str
    terms: str  # what an approval is bound to, as its form carries it
    approvable: approvals.Approvable | None
    original: Original | None
    hold: holds.HeldRun | None
    usual: Usual | None
    mine: personal.Personal
    integrity: Integrity
    attacks: cards.Attacks
    verdicts: verdict_card.Verdicts
    plans: tuple[PlanLine, ...]
    plan_steps: tuple[tuple[int, str], ...] = CHOICES
    # of a foreign agent's call alone: what it asked, and the five checks of it
    asked: Asked | None = None
    reply: Reply | None = None  # None where its record is damaged
    checks: tuple[Check, ...] = ()

    @property
    def latest(self) -> UUID | None:
        """The attack whose verdict is the newest; None where the record itself says it."""
        return self.verdicts.latest.attack if self.verdicts.latest else None


def read(run: RunHead, row: Run | None = None) -> RunView:
    """Read a run now, as far as its head. A model's refused answer is judged, and so counted."""
    agreed = terms.written(api.terms_now(run.id)) if run.hold else ""  # before what it is about
    record, held = record_of(run, row), run.held_by
    told = None if run.is_call else story.story_of(record)  # it counts the model's refused answer
    attacks, mine = cards.of_run(run), personal.of_run(run)
    payment, later = money.payment_of(record, mine.values), far_side.later(run)
    approvable = approvals.to_approve(run.id) if held else None
    original = original_of(run.slots) if held else None
    rail, moved = steps.of_run(record), record.last_move()
    stall = stuck_runs.of_run(record.stored, run)
    view = RunView(
        run=run,
        rows=record.rows,
        epoch=(moved.number if moved else 0) + len(later),
        steps=rail,
        outcome=outcome.outcome_of(record, payment, mine, approvable),
        strip=outcome.strip_of(run, record.rows[-ROWS_SHOWN:]),
        story=told,
        lanes=Lanes(summary="") if run.is_call else lanes.lanes_of(record, rail),
        machine=statechart_of(run.state, _move(moved)),
        standing=evidence.signing_status(run),
        stall=stall,
        halted=agents.halting(record.stored),
        payment=payment,
        later=later,
        approve_label=outcome.approve_label(payment, mine.facts, stall, original, approvable, held),
        terms=agreed,
        approvable=approvable,
        original=original,
        hold=holds.hold_of(run, mine.values, approvable) if held else None,
        usual=usual_of(run.id, run.slots) if held else None,
        mine=mine,
        integrity=integrity.of_run(record, attacks.breached),
        attacks=attacks,
        verdicts=verdict_card.of_run(record, attacks, payment),
        plans=plans.of_run(run),
    )
    return _of_call(view, record) if run.is_call else view


def _of_call(view: RunView, record: RunRecord) -> RunView:
    """The view of a foreign agent's call: its arguments and checks in place of an invoice."""
    line, parts = call_view.parts(record, view.stall, view.approve_label)
    return replace(view, outcome=replace(view.outcome, **line), **parts)


def _move(last: EventRow | None) -> tuple[str, str, str]:
    return (last.state_from, last.state_event, last.state_to) if last else ("", "", "")
