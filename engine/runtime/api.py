"""The runtime: lock, read, decide, write, commit, then act. The only writer of runs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from django.db import InterfaceError, OperationalError

from engine.clock import now_ms
from engine.models import Run
from engine.runtime import decide, queue, terms
from engine.runtime.context import RUNTIME, Sender
from engine.runtime.decide import AfterAnswer, BegunEffect, NextRun, TimeSlice
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit, LockedRun
from engine.store import actors, leases, outbox, programs, records, sql
from engine.store.records import hold_of
from engine.vault import secret_store
from engine.vault.secret_store import Sealed
from nanovm_core.core import events
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import Event
from nanovm_core.core.lifecycle import ACTIVE, TERMINAL
from nanovm_core.core.messages import Decision
from nanovm_core.core.program import MODEL as MODEL_STEP
from nanovm_core.errors import VerificationError

log = logging.getLogger(__name__)
T = TypeVar("T")
MODEL = "model"  # the actor of a model's answers


def submit(
    run_id: str,
    events: Sequence[Event],
    *,
    actor: str = RUNTIME.actor,
    secrets: Sequence[Sealed] = (),
    holder: str = "",
    vouched: bool = False,
) -> Decision:
    """Feed events to a run: the only way its state ever changes.

    The stored chain and snapshot are recomputed first; damage is sealed, fails a live run,
    and the events are not looked at. The result of an effect is taken from the ``holder`` of
    the run's lease alone, and an awaited answer from an ``actor`` whom the caller has identified
    (``vouched``). Of ``secrets`` those are kept that an envelope commits to; a person's decision
    that is not refused commits to all. Returns the last event's decision.
    """
    sender = Sender(actor, holder, vouched)
    return on_run(run_id, lambda commit, run: decide.apply(commit, run, events, sender, secrets))


def answer(work: BegunEffect, event: Event, secrets: Sequence[Sealed], outcome: str) -> AfterAnswer:
    """Feed what came of an effect back, and begin what the run owes next in the same commit.

    ``outcome`` goes into the adapters' own record. Where nothing follows, the lease is free. An
    answer to a wait is vouched for: the caller read it at the far side itself. A thread that
    drives in turn has the next turn's effect in hand then, of another run: taken in this commit.
    """
    chosen: list[str] = []
    try:
        return committed(answer_job(work, event, secrets, outcome, chosen))
    except (InterfaceError, OperationalError):
        raise
    except Exception as error:
        if not chosen:
            raise
        leases.set_aside(chosen[-1])
        name = type(error).__name__  # its text may quote what is stored
        text = "the next run could not be taken (%s); this one's answer is stored without it"
        log.warning(text, name)
        return committed(answer_job(work, event, secrets, outcome))


def answer_job(
    work: BegunEffect,
    event: Event,
    secrets: Sequence[Sealed] = (),
    outcome: str = "",
    chosen: list[str] | None = None,
) -> Job[AfterAnswer]:
    """The job that ``answer`` has committed; for a caller that drives many runs on one thread.

    ``chosen`` is told which run has the next turn; None: none is taken.
    """

    def answered(commit: Commit, locked: LockedRun) -> AfterAnswer:
        actor = MODEL if isinstance(event, events.ProposalReceived) else RUNTIME.actor
        sender = Sender(actor, work.holder, vouched=isinstance(event, events.AnswerArrived))
        begins_next = partial(decide.keeps_turn, commit, locked, work.share)
        holds = leases.is_holder(locked.run.holder, work.holder)
        decision = decide.apply(commit, locked, [event], sender, secrets, begins_next=begins_next)
        if work.recorded and holds:  # else the newest record is another worker's
            outbox.record_outcome(locked.id, work.effect.key, outcome)
        owed = decision.snapshot.owed
        refused = decision.refusal is not None and owed is not None and owed.key == work.effect.key
        if refused or not leases.is_holder(locked.run.holder, work.holder):
            return AfterAnswer(decision, None)  # it is still owed; or the lease is another's by now
        following = decide.continue_run(commit, locked, decision, work.share)
        until_ms = work.share.until_ms if work.share and chosen is not None else 0
        if following is None and chosen is not None and now_ms() < until_ms:
            following = decide.take_turn(commit, chosen, TimeSlice(until_ms)).work
        return AfterAnswer(decision, following)

    return _job(work.run.name, answered)


def is_damaged(run_id: str) -> bool:
    """Whether what is stored of a run, recomputed, is not whole: chain, snapshot or program."""
    run = Run.objects.get(id=run_id)
    try:
        records.verified(run)
    except VerificationError:
        return True
    return programs.found_hash(run) != run.program_hash


def check(run_id: str) -> Decision | None:
    """Seal what is damaged of a run; None where nothing is, else the decision that sealed it."""
    return submit(run_id, ()) if is_damaged(run_id) else None


def take(run_id: str) -> tuple[bool, BegunEffect | None]:
    """Take a run's lease and begin the effect that it owes, in one commit.

    Where a deadline is over, the kernel is told so first. False where another worker holds the
    lease, or where that of another agent has to take it; no effect where none is due, or where
    damage was found and sealed: the lease is free then.
    """
    taken = on_run(run_id, decide.claim)
    return taken.free, taken.work


def take_turn(until_ms: int, named: str = "") -> NextRun:
    """Take the run whose turn it is, as ``take`` would, in one commit; see ``store.turns``.

    ``named``: the run that a message names, which had to wait if this is another. A run that
    cannot be taken is set aside for a while, so that it does not stop the others.
    """
    chosen: list[str] = []
    try:
        share = TimeSlice(until_ms)
        work = partial(decide.take_turn, chosen=chosen, share=share, named=named)
        return committed(Job(work))
    except Exception:
        if chosen:
            leases.set_aside(chosen[-1])
        raise


def begin_effect(run_id: str) -> BegunEffect | None:
    """Begin what a running run owes to this process, under whatever lease it has; or None."""
    return on_run(run_id, _begin)


def propose(run_id: str, raw: bytes, actor: str = "visitor") -> Decision:
    """Put a tool call before the kernel, as if the model had proposed it.

    Where the run waits for its model, this is its answer; elsewhere it is out of turn. A run
    that has ended keeps no words of it: nothing comes into the vault that an erasure missed.
    """
    run = Run.objects.select_related("workspace").get(id=run_id)
    sealed: list[Sealed] = []
    if run.state not in TERMINAL:
        said = {"proposal": raw}
        sealed += secret_store.seal_values(str(run.id), run.workspace.origin, said).values()
    step = programs.shape_of(run).steps.get(run.step)
    asks_model = step is not None and (step.kind, step.tool) == (MODEL_STEP, run.owed_tool)
    event = events.ProposalReceived(
        raw=raw,
        secret=sealed[0].commitment if sealed else None,
        key=run.owed_key if asks_model else "",
    )
    decision = submit(run_id, [event], actor=actor, secrets=sealed)
    if decision.effects:
        queue.wake(run_id)
    return decision


def start(run_id: str, actor: str) -> Decision:
    """Begin a run."""
    return _ask(run_id, events.RunStarted(), actor)


def pause(run_id: str, actor: str) -> Decision:
    """Pause a run; an answer under way is still accepted."""
    return _ask(run_id, events.PauseRequested(), actor)


def resume(run_id: str, actor: str, program: str | None = None) -> Decision:
    """Let a paused run go on, under the program it began with unless another is named."""
    named = program if program is not None else _program_hash(run_id)
    return _ask(run_id, events.ResumeRequested(program=named), actor)


def step(run_id: str, actor: str) -> Decision:
    """Let a paused run take one step."""
    return _ask(run_id, events.StepRequested(program=_program_hash(run_id)), actor)


def approve(
    run_id: str, actor: str, hold: str | None = None, seen: Mapping[str, str] | None = None
) -> Decision:
    """Lift the hold that a person saw, on the terms that they saw; None: as they are now."""
    held = hold_now(run_id) if hold is None else hold
    shown = terms_now(run_id) if seen is None else seen
    return _ask(run_id, events.Approved(hold=held, seen=shown), actor)


def decline(
    run_id: str, actor: str, hold: str | None = None, secrets: Sequence[Sealed] = ()
) -> Decision:
    """Refuse for good what a person saw held; None is what the run waits for now.

    ``secrets``: what they say beside it, which the decision's envelope commits to.
    """
    seen = hold_now(run_id) if hold is None else hold
    return _ask(run_id, events.Declined(hold=seen), actor, secrets)


def wake(run_id: str, _actor: str) -> Decision:
    """Have a worker look at a run, its stored bytes recomputed and its outbox made whole first.

    It is safe at any time, and all that a run needs which nobody drives; only damage is sealed.
    What a waiting run waits for is asked after at once.
    """
    decision = submit(run_id, ())
    outbox.hasten(run_id)
    queue.wake(run_id)
    return decision


def kill(run_id: str, actor: str) -> Decision:
    """Stop a run for good, unless an effect that moves money is under way."""
    return _ask(run_id, events.KillRequested(), actor)


def _ask(run_id: str, event: Event, actor: str, secrets: Sequence[Sealed] = ()) -> Decision:
    """Submit somebody's request, and wake the run where that makes it owe something."""
    decision = submit(run_id, [event], actor=actor, secrets=secrets)
    if decision.effects:
        queue.wake(run_id)
    return decision


def on_run(run_id: str, work: Callable[[Commit, LockedRun], T]) -> T:
    """Do something to a run, in a commit.

    Raises:
        Run.DoesNotExist: where there is no such run.
    """
    return committed(_job(sql.name(str(run_id)), work))


def _job(run: str, work: Callable[[Commit, LockedRun], T]) -> Job[T]:
    def locked(commit: Commit) -> T:
        if run not in commit.runs:
            raise Run.DoesNotExist(f"There is no run {run}.")
        return work(commit, commit.runs[run])

    return Job(locked, runs=(run,))


def _begin(commit: Commit, locked: LockedRun) -> BegunEffect | None:
    if (found := decide.sound(commit, locked)) is None:
        return None
    now = decide.unless_halted(commit, locked, found)
    if now.owed is None or now.state != ACTIVE or not actors.is_own(now.owed.tool):
        return None
    if decide.is_outside(locked, now.owed):
        return None
    return decide.start(locked, now, now.owed)


def hold_now(run_id: str) -> str:
    """The name of the hold that a run waits for now; empty without one."""
    return hold_of(Run.objects.get(id=run_id))


def terms_now(run_id: str) -> Mapping[str, str]:
    """What an approval of the run's hold is bound to now; nothing where it waits for none."""
    run = Run.objects.select_related("workspace").get(id=run_id)
    try:
        return terms.terms_of(run, decode_snapshot(bytes(run.snapshot))) if hold_of(run) else {}
    except VerificationError:
        return {}  # whoever decides about it comes to the runtime, which finds the damage


def _program_hash(run_id: str) -> str:
    return Run.objects.values_list("program_hash", flat=True).get(id=run_id)
