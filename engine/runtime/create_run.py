"""New runs: their genesis stored under a code of their own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import IntegrityError

from engine.clock import now_ms
from engine.entropy import run_code
from engine.models import Run, Workspace
from engine.runtime import chains, decide, outside, queue
from engine.runtime.context import Sender
from engine.runtime.decide import BegunEffect
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit
from engine.signals import announce
from engine.store import leases, programs, run_rows
from engine.vault.secret_store import Sealed
from nanovm_core.core.authority.capabilities import Grant
from nanovm_core.core.events import ProposalReceived, RunStarted
from nanovm_core.core.fsm import begin
from nanovm_core.core.messages import Decision, RunId, Scalar
from nanovm_core.core.program import Program
from nanovm_core.delegation import narrowed

CODE_TRIES = 20  # a code is drawn from 81 million; a clash is drawn again
_OF_THE_CODE = re.compile("pipeline_run.code")  # SQLite names the column, a server its constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is to be made: what it is about, and under which program and policy."""

    workspace: Workspace
    program: bytes
    policy: bytes
    slots: Mapping[str, Scalar]
    grants: Sequence[Grant] = ()  # narrower ones than the program's; none: the program's own
    sealed: Sequence[Sealed] = ()
    model: str = ""
    pace_ms: int = 0
    stepping: bool = False
    actor: str = "visitor"
    started_by: str = ""  # who starts it with the same commit; nobody: it is READY
    agent: str = ""  # whose accounts, windows and state count; empty: the program's own agent
    incarnation: int = 0  # that its agent has to have, in whose name it is made; 0: any
    proposal: ProposalReceived | None = None  # judged in the same commit; whose key is left out
    about: str = ""  # what its application lists it by


@dataclass(frozen=True, slots=True)
class CreatedRun:
    """A new run, and the effect that was begun with it."""

    run: Run
    work: BegunEffect | None = None
    is_new: bool = True  # False: there is a run of this id, and nothing was done


def make_run(new: NewRun, run_id: UUID, *, starts: bool = False) -> CreatedRun:
    """Store a new run with its genesis, under a code that nobody else has.

    Within a transaction of the caller's, a code that is taken ends that transaction.
    ``starts``: it is started in the same commit, and the caller has its first effect in hand.
    """
    made = _committed(new, run_id, starts=starts)
    if new.started_by:  # not within the commit: others wait for that one
        queue.wake(str(run_id))
    return made


def _committed(new: NewRun, run_id: UUID, *, starts: bool) -> CreatedRun:
    for _ in range(CODE_TRIES):
        try:
            return committed(create_job(new, run_id, starts=starts))
        except IntegrityError as error:
            if not _OF_THE_CODE.search(str(error)):
                raise
    raise RuntimeError("No free run code was found; erase or archive old runs.")


def create_job(new: NewRun, run_id: UUID, *, starts: bool = False) -> Job[CreatedRun]:
    """The job that ``make_run`` has committed; for a caller that drives many runs on one thread.

    It wakes no worker. Where another run has the code that was drawn and the job was alone in its
    commit, its outcome is IntegrityError: make another job.
    """
    program = programs.ruled(new.program, new.policy)
    if new.grants:
        program = program.attenuated(new.grants)
    run = _row(new, run_id, program)
    decision = begin(
        program,
        RunId(run.name),
        new.slots,
        [each.commitment for each in new.sealed],
        at_ms=run.created_ms,
        actor=new.actor,
        agent=new.agent,
        stepping=new.stepping,
    )
    work = partial(_store, new=new, run=run, program=program, decision=decision, starts=starts)
    named = (run.name,) if new.proposal else ()  # its id is asked for again: see ``_store``
    return Job(work, runs=named, logs=(new.workspace.id,))


def _row(new: NewRun, run_id: UUID, program: Program) -> Run:
    given = {"id": run_id, "program_hash": program.hash, "policy_hash": program.policy.hash}
    given |= {"model": new.model, "pace_ms": new.pace_ms, "created_ms": now_ms()}
    run = run_rows.again({**run_rows.DEFAULTS, **given}, new.workspace)
    run._state.adding = True
    run.program_source, run.policy_source = new.program, new.policy  # stored beside it
    run.narrowed_grants = narrowed.encoded(program.grants) if new.grants else b""
    run.about = new.about
    return run


def _store(
    commit: Commit, *, new: NewRun, run: Run, program: Program, decision: Decision, starts: bool
) -> CreatedRun:
    if run.name in commit.runs:
        return CreatedRun(commit.runs[run.name].run, is_new=False)
    run.code = run_code()  # another one each time
    locked = commit.begin(run)
    if new.incarnation:
        outside.require(commit, locked, new.agent, new.incarnation)
    commit.ledgers.put_in_force(locked.workspace, decision.snapshot.agent, program)
    chains.declare(commit.ledgers, locked.workspace, program)
    commit.record(locked, decision, program, new.sealed)
    if new.proposal is not None:
        outside.judge(commit, locked, new.proposal, new.actor)
    elif new.started_by:
        decide.apply(commit, locked, [RunStarted()], Sender(new.started_by))
    else:
        commit.after.append(partial(announce, run))
    if new.proposal or not starts:
        return CreatedRun(run)
    leases.give(run)
    sender = Sender(holder=run.holder)
    begins = partial(decide.keeps_turn, commit, locked, None)
    decision = decide.apply(commit, locked, [RunStarted()], sender, begins_next=begins)
    return CreatedRun(run, decide.continue_run(commit, locked, decision))
