"""A dry run: what the kernel would say to a proposal now; nothing is recorded, nothing done."""

from collections.abc import Iterator
from typing import NamedTuple

from engine.application import main
from engine.clock import now_ms
from engine.models import Run
from engine.runtime import warrants
from engine.store import ledgers, programs, records, tallies
from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import resolve
from nanovm_core.core.envelope import encode_snapshot
from nanovm_core.core.events import Context, Event
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Decision, Snapshot
from nanovm_core.core.program import MODEL, Program
from nanovm_core.core.proposals import read_proposal
from nanovm_core.errors import RefusedError, VerificationError

ABSORBED = "FSM-003"


class Dry(NamedTuple):
    """What would come of it. ``word``: BLOCKED, IGNORED, ACCEPTED, HELD or DETECTED."""

    word: str
    rule: str = ""
    text: str = ""


class Inputs(NamedTuple):
    """All that a decision about a proposal depends on beside program, policy and its bytes.

    It holds refs and clear facts, never a personal value.
    """

    snapshot: bytes  # canonical, before the proposal
    ledger: dict[str, int]
    counts: dict[str, int]
    revoked: tuple[str, ...]


def judged(run_id: str, raw: bytes) -> Dry:
    """Ask the transition function itself, on the run's verified value, and keep nothing.

    A run that is paused before its model is taken to be asked first, as ``questions`` says:
    that is what becomes of it when the proposal is made in earnest.
    """
    row = Run.objects.select_related("workspace").get(id=run_id)
    try:
        now = records.verified(row).snapshot
        ended = now.state in life.TERMINAL
        program = programs.shape_of(row) if ended else programs.program_of(row)
    except VerificationError as damage:
        return Dry(word="DETECTED", rule=damage.code, text=damage.text)
    known = _known(row, program, now)
    for event in questions(program, now):
        now = transition(program, now, event, known).snapshot
    proposal = events.ProposalReceived(raw=raw, key=_key(program, now))
    return _outcome(program, transition(program, now, proposal, known), known)


def questions(program: Program, now: Snapshot) -> Iterator[Event]:
    """What has to happen before a run that is paused at its model waits for the model's answer.

    One step is asked for and the run is paused again, in one go: the question is open then,
    and no worker takes it up while the run holds still. Nothing, where that is not how it stands.
    """
    step = program.steps.get(now.step)
    if now.state == life.PAUSED and now.owed is None and step is not None and step.kind == MODEL:
        yield events.StepRequested(program=now.program)
        yield events.PauseRequested()


def inputs_of(run_id: str) -> Inputs:
    """What a decision about this run depends on now.

    Raises:
        VerificationError: the stored bytes are damaged; nothing can be decided on them.
    """
    row = Run.objects.select_related("workspace").get(id=run_id)
    now = records.verified(row).snapshot
    known = _known(row, programs.program_of(row), now)
    return Inputs(
        snapshot=encode_snapshot(now),
        ledger=dict(known.ledger),
        counts=dict(known.counts),
        revoked=tuple(sorted(known.revoked)),
    )


def _known(row: Run, program: Program, now: Snapshot) -> Context:
    """The context that the runtime would build under its lock, read without one."""
    at_ms = now_ms()
    return Context(
        at_ms=at_ms,
        actor="visitor",
        ledger=ledgers.remaining(row.workspace, program, now),
        counts=tallies.counts_of(row.workspace, program, now.agent, at_ms),
        revoked=warrants.revoked(row.workspace, program),
    )


def _key(program: Program, now: Snapshot) -> str:
    """The key of the model's open question, as ``runtime.propose`` finds it."""
    owed, step = now.owed, program.steps.get(now.step)
    asks = owed is not None and step is not None and step.kind == MODEL
    return owed.key if owed is not None and asks else ""


def _outcome(program: Program, decision: Decision, known: Context) -> Dry:
    refusal, now = decision.refusal, decision.snapshot
    if refusal is not None:
        return Dry(word="BLOCKED", rule=refusal.code, text=refusal.text)
    if decision.absorbed or any(draft.kind == "ignored" for draft in decision.drafts):
        return Dry(word="IGNORED", rule=ABSORBED, text="The run has ended.")
    if now.state == life.PAUSED:  # it was taken, and what follows waits for somebody to go on
        now = transition(program, now, events.ResumeRequested(program=now.program), known).snapshot
    if now.reason is not None and now.reason[0]:
        word = "BLOCKED" if now.state in life.TERMINAL else "HELD"
        return Dry(word=word, rule=now.reason[0], text=now.reason[1])
    return Dry(word="ACCEPTED", text="All checks passed; this is what the invoice says.")


def parse(raw: bytes) -> Dry:
    """What can be said of a proposal without a run: whether it is one call of a granted tool."""
    try:
        resolve(programs.current(main()).grants, read_proposal(raw).tool)
    except RefusedError as error:
        return Dry(word="BLOCKED", rule=error.code, text=error.text)
    return Dry(
        word="READ", text="One well-formed call of an allowed tool. The other checks need a run."
    )
