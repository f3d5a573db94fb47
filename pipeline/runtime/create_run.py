"""New runs: their documents sealed, their genesis stored under a code of their own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import IntegrityError

from nanovm_core.core.budget import Budget
from nanovm_core.core.events import RunStarted
from nanovm_core.core.fsm import begin
from nanovm_core.core.messages import Decision, RunId, Scalar
from nanovm_core.core.program import Program
from pipeline.clock import now_ms
from pipeline.entropy import run_code, uuid7
from pipeline.models import Run, Workspace
from pipeline.runtime import decide, queue
from pipeline.runtime.context import Sender
from pipeline.runtime.decide import Begun
from pipeline.runtime.group_commit import Job, committed
from pipeline.runtime.transaction import UnitOfWork
from pipeline.signals import announce
from pipeline.store import leases, programs
from pipeline.vault import secret_store
from pipeline.vault.secret_store import Sealed

CODE_TRIES = 20  # a code is drawn from 81 million; a clash is drawn again
_OF_THE_CODE = re.compile("pipeline_run.code")  # SQLite names the column, a server its constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is to be made: what it is about, and under which program and policy."""

    workspace: Workspace
    program: bytes
    policy: bytes
    slots: Mapping[str, Scalar]
    sealed: Sequence[Sealed] = ()
    model: str = ""
    pace_ms: int = 0
    stepping: bool = False
    actor: str = "visitor"
    started_by: str = ""  # who starts it with the same commit; nobody: it is READY


@dataclass(frozen=True, slots=True)
class Made:
    """A new run, and the effect that was begun with it."""

    run: Run
    work: Begun | None = None


def create_run(
    workspace: Workspace,
    document: bytes,
    file_name: str,
    *,
    model: str = "faithful",
    proposal: bytes = b"",
    payment_method: str = "pm_card_visa",
    pace_ms: int = 0,
    policy: str = "default",
    stepping: bool = False,
    started_by: str = "",
) -> Run:
    """Make a run over a document: its genesis sealed, nothing begun; READY, or ``started_by`` one.

    ``proposal`` is what a compromised model will say; it lies in the vault like all a model
    says. A bad document is no error here: step ``receive`` says what is wrong with it.
    """
    run = uuid7()
    given = {"file_name": file_name.encode("utf-8", "replace"), "document": document}
    if proposal:
        given["planted"] = proposal
    sealed = secret_store.seal_values(str(run), workspace.origin, given)
    sealed["document"] = secret_store.in_a_file(sealed["document"])
    refs = {slot: each.ref for slot, each in sealed.items()}
    new = NewRun(
        workspace=workspace,
        program=programs.shipped_program(),
        policy=programs.policy_source(policy),
        slots={**refs, "payment_method": payment_method},
        sealed=tuple(sealed.values()),
        model=model,
        pace_ms=pace_ms,
        stepping=stepping,
        started_by=started_by,
    )
    return make_run(new, run).run


def make_run(new: NewRun, run_id: UUID, *, starts: bool = False) -> Made:
    """Store a new run with its genesis, under a code that nobody else has.

    Within a transaction of the caller's, a code that is taken ends that transaction.
    ``starts``: it is started in the same commit, and the caller has its first effect in hand.
    """
    made = _made(new, run_id, starts=starts)
    if new.started_by:  # not within the commit: others wait for that one
        queue.wake(str(run_id))
    return made


def _made(new: NewRun, run_id: UUID, *, starts: bool) -> Made:
    for _ in range(CODE_TRIES):
        try:
            return committed(making(new, run_id, starts=starts))
        except IntegrityError as error:
            if not _OF_THE_CODE.search(str(error)):
                raise
    raise RuntimeError("No free run code was found; erase or archive old runs.")


def making(new: NewRun, run_id: UUID, *, starts: bool = False) -> Job[Made]:
    """The job that ``make_run`` has committed; for a caller that drives many runs on one thread.

    It wakes no worker. Where another run has the code that was drawn and the job was alone in its
    commit, its outcome is IntegrityError: make another job.
    """
    program = programs.ruled(new.program, new.policy)
    run = _row(new, run_id, program)
    decision = begin(
        program,
        RunId(str(run.id)),
        new.slots,
        [each.commitment for each in new.sealed],
        at_ms=run.created_ms,
        actor=new.actor,
        stepping=new.stepping,
    )
    budgets = (*program.budgets, *program.policy.budgets)
    work = partial(_make, new=new, run=run, budgets=budgets, decision=decision, starts=starts)
    return Job(work, logs=(new.workspace.id,))


def _row(new: NewRun, run_id: UUID, program: Program) -> Run:
    run = Run(
        id=run_id,
        workspace=new.workspace,
        program_hash=program.hash,
        policy_hash=program.policy.hash,
        model=new.model,
        pace_ms=new.pace_ms,
        created_ms=now_ms(),
    )
    run.program_source, run.policy_source = new.program, new.policy  # stored beside it
    return run


def _make(
    commit: UnitOfWork,
    *,
    new: NewRun,
    run: Run,
    budgets: tuple[Budget, ...],
    decision: Decision,
    starts: bool,
) -> Made:
    run.code = run_code()  # another one each time
    held = commit.begin(run)
    commit.budgets.put_in_force(held.workspace, decision.snapshot.agent, budgets)
    commit.record(held, decision, new.sealed)
    if new.started_by:
        decide.apply(commit, held, [RunStarted()], Sender(new.started_by))
    else:
        commit.after.append(partial(announce, run))
    if not starts:
        return Made(run)
    leases.give(run)
    sender = Sender(holder=run.holder)
    begins = partial(decide.goes_on, commit, held, None)
    decision = decide.apply(commit, held, [RunStarted()], sender, goes_on=begins)
    return Made(run, decide.continue_run(commit, held, decision))
