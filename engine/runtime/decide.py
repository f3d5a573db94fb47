"""Inside a commit: events are decided on verified bytes, effects are begun, leases change hands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from engine.clock import now_ms
from engine.models import Run
from engine.ops import timings
from engine.runtime import queue, warrants
from engine.runtime.context import RUNTIME, Sender, context_of
from engine.runtime.transaction import LockedRun, UnitOfWork, refs_of
from engine.signals import announce
from engine.store import leases, logs, outbox, programs, records, sql, tail, turns
from engine.vault.secret_store import Sealed
from nanovm_core.core import fsm
from nanovm_core.core.events import (
    Approved,
    DeliveryReceived,
    Event,
    ForeignIntent,
    ProgramRefused,
    TimePassed,
)
from nanovm_core.core.fsm import transition
from nanovm_core.core.lifecycle import ACTIVE, GROUP, TERMINAL, WAITING
from nanovm_core.core.messages import Args, Decision, Effect, Refusal, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import VerificationError

RENEW_MS = leases.TTL_MS // 2  # a lease with less than this left is renewed with the next commit


class Share(NamedTuple):
    """How long a thread stays with a run, and with its message."""

    until_ms: int  # later it takes up no other run
    left: int = turns.EFFECTS_MAX  # effects, this one included, before it looks whether others wait


class Begun(NamedTuple):
    """An effect that was begun in a commit: the sealed intent itself, not the row in the outbox.

    ``before``: somebody had begun it already, so its outcome may be unknown. ``recorded``: the
    adapters' record has a row of this call. ``holder``: of the lease under which it is done.
    ``share``: of the thread that drives it in turn.
    """

    run: Run
    program: Program
    snapshot: Snapshot
    effect: Effect
    before: bool
    recorded: bool
    holder: str
    share: Share | None = None  # None: it is not driven in turn

    @property
    def slots(self) -> Args:
        """What the run holds."""
        return self.snapshot.slots

    @property
    def deadline_ms(self) -> int:
        """When nobody waits for it any more; 0: no such time."""
        return self.snapshot.deadline_ms

    @property
    def token(self) -> bytes:
        """The signed warrant of a granted call; else empty."""
        return warrants.token(self.program, self.snapshot, self.effect)


class Answered(NamedTuple):
    """What came of an effect's answer, and the effect that was begun with it."""

    decision: Decision
    work: Begun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What came of taking a run's lease: not ``free`` where another worker holds it."""

    free: bool = True
    work: Begun | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The run whose turn it is, None where nothing can be taken; and its effect, if one is due."""

    run: str | None = None
    work: Begun | None = None


def _nothing_begins(_: Effect) -> bool:
    return False


def apply(
    commit: UnitOfWork,
    held: LockedRun,
    events: Sequence[Event],
    sender: Sender = RUNTIME,
    secrets: Sequence[Sealed] = (),
    *,
    goes_on: Callable[[Effect], bool] = _nothing_begins,
) -> Decision:
    """Apply events to a run, one after the other, and record each decision.

    The stored chain and snapshot are recomputed first; damage is sealed, fails a live run, and
    the events are not looked at. ``goes_on``: whether the holder begins at once
    what the run owes next.
    """
    if held.workspace.successor_id is not None:
        return _refused(commit, held, events)
    by_holder = leases.is_holder(held.run.holder, sender.holder)
    may_begin = goes_on if by_holder and not held.run.pace_ms else _nothing_begins
    try:
        decision = _decided(commit, held, events, sender, secrets, goes_on=may_begin)
    except VerificationError as damage:
        decision = quarantine(commit, held, damage)
    commit.after.append(partial(announce, held.run))
    return decision


def _refused(commit: UnitOfWork, held: LockedRun, events: Sequence[Event]) -> Decision:
    """Refuse and count events of a run whose log a restore closed (LOG-009), and seal none.

    The log takes no envelope any more: another copy of it, longer than this one, was signed. The
    run keeps its value, and owes nothing to anybody.
    """
    for event in events:
        commit.count(held, type(event).__name__)
    try:
        value = records.value_of(held.run, held.chain, held.workspace.origin)
    except VerificationError:  # it is shown and not sealed: fsck names it
        value = records.trusted(held.run, held.chain.envelopes)
    no = logs.closed_error(held.workspace)
    return Decision(value, refusal=Refusal(code=no.code, text=no.text))


def quarantine(commit: UnitOfWork, held: LockedRun, damage: VerificationError) -> Decision:
    """Seal what was found damaged."""
    decision = fsm.quarantine(
        records.trusted(held.run, held.chain.envelopes), damage, at_ms=now_ms()
    )
    commit.record(held, decision)
    return decision


def _decided(
    commit: UnitOfWork,
    held: LockedRun,
    events: Sequence[Event],
    sender: Sender,
    secrets: Sequence[Sealed],
    *,
    goes_on: Callable[[Effect], bool],
) -> Decision:
    snapshot = records.value_of(held.run, held.chain, held.workspace.origin)
    held.refs = refs_of(snapshot)
    program = own_program(held, snapshot)
    decision = Decision(snapshot=snapshot)
    found = [*_exchanged(commit, held), *reconciled(held, snapshot)]
    for place, event in enumerate((*found, *events) if found else events):
        source = RUNTIME if place < len(found) else sender
        context = context_of(event, commit, held, program, snapshot, source)
        with timings.spent(timings.GATE):
            decision = transition(program, snapshot, event, context)
        _expect_end(held, event, decision)
        begins = all(goes_on(each) for each in decision.effects)
        commit.record(held, decision, secrets, begins=begins)
        snapshot = decision.snapshot
    return decision


def _expect_end(held: LockedRun, event: Event, decision: Decision) -> None:
    """Return unless a payment may be a second one, because the log's end was cut off.

    Asked where a person approved, or where the far side may have forgotten an earlier call.
    """
    approved = isinstance(event, Approved) and decision.refusal is None
    if approved or any(each.warrant is not None for each in decision.effects):
        genesis = records.body_of(held.chain.envelopes[0].data)
        if approved or genesis["at_ms"] <= now_ms() - tail.KEY_LIFE_MS:
            tail.check(held.workspace, genesis["seq"], held.run.length)


def own_program(held: LockedRun, snapshot: Snapshot) -> Program:
    """The run's program; a run that has ended absorbs, under whatever program.

    Raises:
        VerificationError: PRG-011, where it is lost, or its grants are not those of the genesis.
    """
    if snapshot.state in TERMINAL:
        return programs.shape_of(held.run)
    program = programs.program_of(held.run)
    if held.chain.granted != held.run.narrowed_grants:
        records.expect_grants(held.chain.envelopes, program)
        held.chain.granted = held.run.narrowed_grants
    return program


def _exchanged(commit: UnitOfWork, held: LockedRun) -> list[Event]:
    """The event that a foreign program beside the run is; the true copy is put back."""
    found = programs.found_hash(held.run)
    if found == held.run.program_hash:
        return []
    source = programs.source_of(held.run)
    if source is not None:
        commit.put_back(held, source)
    return [ProgramRefused(found=found)]


def reconciled(held: LockedRun, now: Snapshot) -> list[Event]:
    """Make the run's row say what its snapshot owes, and say so where somebody forged another.

    A row that names nothing, or the right effect without a time for it, is only made whole.
    """
    run, owed = held.run, now.owed
    if outbox.owes(run, owed):
        return []
    named = (run.owed_key, run.owed_tool)
    lost = [("", ""), (owed.key, owed.tool) if owed else ("", "")]
    outbox.owe(run, owed)
    return [] if named in lost else [ForeignIntent()]


# --- beginning effects -----------------------------------------------------------------------


def take_turn(commit: UnitOfWork, chosen: list[str], share: Share, named: str = "") -> Turn:
    """Take the run whose turn it is, and begin what it owes.

    ``named``: a run that a message names; if it is another's turn, its delivery is counted as
    absorbed. ``chosen`` is told which run it is, whatever becomes of this commit.
    """
    commit.settle()
    sql.flush()
    run = turns.next_run(commit.held)
    if named and run != named and not leases.absorb_now(named):
        commit.after.append(partial(leases.absorb, named))
    if run is None:
        return Turn()
    chosen.append(run)
    held = commit.join(run)
    if leases.is_held(held.run.holder, held.run.until_ms):
        return Turn(run)  # between the statement and its locks another process took it
    turns.serve(held.workspace.id)
    return Turn(run, claim(commit, held, share).work)


def claim(commit: UnitOfWork, held: LockedRun, share: Share | None = None) -> Claim:
    """Begin what a running run owes, under a new lease.

    Where the run's deadline is over, the kernel is fed TimePassed first; but what a run waits for
    is asked once more before that. A delivery that finds nothing due, or the lease held, is
    counted as absorbed. ``share``: it is taken in turn, and no message was delivered to it.
    """
    if leases.is_held(held.run.holder, held.run.until_ms):
        leases.absorb(held.run.name)
        return Claim(free=False)
    if held.workspace.successor_id is not None:
        _refused(commit, held, [DeliveryReceived(program="")])
        return Claim()
    try:
        snapshot = records.value_of(held.run, held.chain, held.workspace.origin)
        own_program(held, snapshot)
    except VerificationError as damage:
        quarantine(commit, held, damage)
        return Claim()
    is_running = GROUP[snapshot.state] == "running"  # while it is suspended, its clock stands still
    deadline_ms = (snapshot.deadline_ms or None) if is_running else None
    held.run.deadline_ms = deadline_ms  # the row says whom to look at, and not what is over
    asks = snapshot.state == WAITING and _owes_now(commit, held, snapshot)
    if deadline_ms is not None and deadline_ms <= now_ms() and not asks:
        snapshot = apply(commit, held, [TimePassed()]).snapshot
    effect = snapshot.owed
    if effect is None or not _owes_now(commit, held, snapshot):
        _leave(commit, held, effect, share)
        return Claim()
    if share is not None and not turns.has_slot(held.id, held.workspace.id, effect.tool):
        return Claim()  # a passed deadline led to it: it has its turn when a slot is free
    leases.give(held.run)
    if asks:
        return Claim(work=_in_hand(held, snapshot, effect, before=True, recorded=True, share=share))
    return Claim(work=start(held, snapshot, effect, share))


def _leave(commit: UnitOfWork, held: LockedRun, effect: Effect | None, share: Share | None) -> None:
    """Leave a run that owes nothing now: its row is made whole, or its delivery counted."""
    if not outbox.owes(held.run, effect):
        apply(commit, held, ())  # the row would have its turn again and again
    elif share is None:
        leases.absorb(held.run.name)


def start(held: LockedRun, now: Snapshot, effect: Effect, share: Share | None = None) -> Begun:
    """Mark an effect as begun, in the outbox and in the adapters' own record."""
    before = outbox.is_begun(held.run, effect)
    recorded = outbox.begin(held.run, effect)
    return _in_hand(held, now, effect, before=before, recorded=recorded, share=share)


def goes_on(commit: UnitOfWork, held: LockedRun, share: Share | None, effect: Effect) -> bool:
    """Whether a run's turn goes on with this effect: it has a slot, and need not give way."""
    if share is None:
        return True
    if not turns.has_slot(held.id, held.workspace.id, effect.tool):
        return False
    return share.left > 1 or not turns.others_wait(held.workspace.id, commit.held)


def continue_run(
    commit: UnitOfWork, held: LockedRun, decision: Decision, share: Share | None = None
) -> Begun | None:
    """What the holder does next: begun with the decision, or nothing, and the lease is free."""
    now, owed = decision.snapshot, decision.snapshot.owed
    if owed is not None and owed in decision.effects and now.state == ACTIVE:
        if held.run.begun_ms is not None:
            if held.run.until_ms < now_ms() + RENEW_MS:
                leases.extend(held.run)
            if share is not None:
                left = share.left - 1 or turns.EFFECTS_MAX  # nobody waited
                share = share._replace(left=left)
            recorded = owed.warrant is not None
            return _in_hand(held, now, owed, before=False, recorded=recorded, share=share)
        if held.run.pace_ms:
            _put_off(commit, held)
    leases.free(held.run)
    return None


def _owes_now(commit: UnitOfWork, held: LockedRun, now: Snapshot) -> bool:
    """Whether its effect is to be done or asked after now.

    A paced run's fresh effect is put off for spectators.
    """
    effect, run = now.owed, held.run
    due_ms = run.due_ms if outbox.owes(run, effect) else None
    if effect is None or due_ms is None or due_ms > now_ms():
        return False
    if now.state != ACTIVE:
        return now.state == WAITING
    if run.pace_ms and not due_ms and run.begun_ms is None:
        _put_off(commit, held)
        return False
    return True


def _put_off(commit: UnitOfWork, held: LockedRun) -> None:
    pace_ms = held.run.pace_ms
    held.run.due_ms = now_ms() + pace_ms
    commit.after.append(partial(queue.wake, held.run.name, in_ms=pace_ms))


def _in_hand(
    held: LockedRun,
    now: Snapshot,
    effect: Effect,
    *,
    before: bool,
    recorded: bool,
    share: Share | None,
) -> Begun:
    program = programs.program_of(held.run)
    return Begun(
        run=held.run,
        program=program,
        snapshot=now,
        effect=effect,
        before=before,
        recorded=recorded,
        holder=held.run.holder,
        share=share,
    )
