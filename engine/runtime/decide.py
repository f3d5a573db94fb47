"""Inside a commit: events are decided on verified bytes, effects are begun, leases change hands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from engine import application
from engine.clock import now_ms
from engine.models import Run
from engine.ops import timings
from engine.runtime import queue, warrants
from engine.runtime.agent_moves import Agents
from engine.runtime.context import RUNTIME, Sender, context_of, exchanged, expect_end
from engine.runtime.transaction import Commit, LockedRun, with_words
from engine.signals import announce
from engine.store import actors, leases, logs, outbox, programs, records, turns
from engine.vault.secret_store import Sealed
from nanovm_core.core import events, fsm
from nanovm_core.core.events import Event
from nanovm_core.core.fsm import transition
from nanovm_core.core.lifecycle import ACTIVE, GROUP, TERMINAL, WAITING
from nanovm_core.core.messages import Decision, Effect, Refusal, Slots, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import VerificationError

RENEW_MS = leases.TTL_MS // 2  # a lease with less than this left is renewed with the next commit


class TimeSlice(NamedTuple):
    """How long a thread stays with a run, and with its message."""

    until_ms: int  # later it takes up no other run
    left: int = turns.EFFECTS_MAX  # effects, this one included, before it looks whether others wait


class BegunEffect(NamedTuple):
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
    share: TimeSlice | None = None  # None: it is not driven in turn

    @property
    def slots(self) -> Slots:
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


class AfterAnswer(NamedTuple):
    """The outcome of an effect's answer, and the effect that was begun with it."""

    decision: Decision
    work: BegunEffect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseClaim:
    """The result of taking a run's lease: not ``free`` where it is another worker's to drive."""

    free: bool = True
    work: BegunEffect | None = None


@dataclass(frozen=True, slots=True)
class NextRun:
    """The run whose turn it is, None where nothing can be taken; and its effect, if one is due."""

    run: str | None = None
    work: BegunEffect | None = None


def _nothing_begins(_: Effect) -> bool:
    return False


def apply(
    commit: Commit,
    locked: LockedRun,
    events: Sequence[Event],
    sender: Sender = RUNTIME,
    secrets: Sequence[Sealed] = (),
    *,
    begins_next: Callable[[Effect], bool] = _nothing_begins,
) -> Decision:
    """Apply events to a run, one after the other, and record each decision.

    The stored chain and snapshot are recomputed first; damage is sealed, fails a live run, and
    the events are not looked at. ``begins_next``: whether the holder begins at once
    what the run owes next.
    """
    if locked.workspace.successor_id is not None:
        return _refused(commit, locked, events)
    by_holder = leases.is_holder(locked.run.holder, sender.holder)
    may_begin = begins_next if by_holder and not locked.run.pace_ms else _nothing_begins
    try:
        decision = _decided(commit, locked, events, sender, secrets, begins_next=may_begin)
    except VerificationError as damage:
        decision = quarantine(commit, locked, damage)
    commit.after.append(partial(announce, locked.run))
    return decision


def _refused(commit: Commit, locked: LockedRun, events: Sequence[Event]) -> Decision:
    """Refuse and count events of a run whose log a restore closed (LOG-009), and seal none.

    The log takes no envelope any more: another copy of it, longer than this one, was signed. The
    run keeps its value, and owes nothing to anybody.
    """
    for event in events:
        commit.count(locked, type(event).__name__)
    try:
        value = records.value_of(locked.run, locked.chain, locked.workspace.origin)
    except VerificationError:  # it is shown and not sealed: fsck names it
        value = records.trusted(locked.run, locked.chain.envelopes)
    no = logs.closed_error(locked.workspace)
    return Decision(value, refusal=Refusal(code=no.code, text=no.text))


def quarantine(commit: Commit, locked: LockedRun, damage: VerificationError) -> Decision:
    """Seal what was found damaged."""
    decision = fsm.quarantine(
        records.trusted(locked.run, locked.chain.envelopes), damage, at_ms=now_ms()
    )
    commit.record(locked, decision, None)
    return decision


def _decided(
    commit: Commit,
    locked: LockedRun,
    asked: Sequence[Event],
    sender: Sender,
    secrets: Sequence[Sealed],
    *,
    begins_next: Callable[[Effect], bool],
) -> Decision:
    snapshot = records.value_of(locked.run, locked.chain, locked.workspace.origin)
    locked.refs = locked.chain.refs
    program = own_program(locked, snapshot)
    decision = Decision(snapshot=snapshot)
    found = [*exchanged(locked), *reconciled(locked, snapshot)]
    for place, event in enumerate((*found, *asked) if found else asked):
        source = RUNTIME if place < len(found) else sender
        context = context_of(event, commit, locked, program, snapshot, source)
        with timings.spent(timings.GATE):
            decision = transition(program, snapshot, event, context)
        if secrets and isinstance(event, events.Approved | events.Declined):
            decision = with_words(decision, secrets)
        expect_end(locked, event, decision)
        begins = all(begins_next(each) for each in decision.effects)
        commit.record(locked, decision, program, secrets, begins=begins)
        snapshot = decision.snapshot
    return decision


def sound(commit: Commit, locked: LockedRun) -> Snapshot | None:
    """The value of a run that may go on, recomputed; None where its log is closed, or damage found.

    Damage is sealed then.
    """
    if locked.workspace.successor_id is not None:
        return None
    try:
        now = records.value_of(locked.run, locked.chain, locked.workspace.origin)
        own_program(locked, now)
    except VerificationError as damage:
        quarantine(commit, locked, damage)
        return None
    return now


def own_program(locked: LockedRun, snapshot: Snapshot) -> Program:
    """The run's program; a run that has ended absorbs, under whatever program.

    Raises:
        VerificationError: PRG-011, where it is lost, or its grants are not those of the genesis.
    """
    if snapshot.state in TERMINAL:
        return programs.shape_of(locked.run)
    program = locked.program = programs.program_of(locked.run)
    if locked.chain.granted != locked.run.narrowed_grants:
        records.expect_grants(locked.chain.envelopes, program)
        locked.chain.granted = locked.run.narrowed_grants
    return program


def reconciled(locked: LockedRun, now: Snapshot) -> list[Event]:
    """Make the run's row say what its snapshot owes, and say so where somebody forged another.

    A row that names nothing, or the right effect without a time for it, is only made whole.
    """
    run, owed = locked.run, now.owed
    if outbox.owes(run, owed):
        return []
    named = (run.owed_key, run.owed_tool)
    lost = [("", ""), (owed.key, owed.tool) if owed else ("", "")]
    outbox.owe(run, owed)
    return [] if named in lost else [events.ForeignIntent()]


# --- beginning effects -----------------------------------------------------------------------


def take_turn(commit: Commit, chosen: list[str], share: TimeSlice, named: str = "") -> NextRun:
    """Take the run whose turn it is, and begin what it owes.

    ``named``: a run that a message names; if it is another's turn, its delivery is counted as
    absorbed. ``chosen`` is told which run it is, whatever becomes of this commit.
    """
    commit.settle()
    run = turns.next_run(commit.runs)
    if named and run != named and not leases.absorb_now(named):
        commit.after.append(partial(leases.absorb, named))
    if run is None:
        return NextRun()
    chosen.append(run)
    locked = commit.join(run)
    if leases.is_held(locked.run.holder, locked.run.until_ms):
        return NextRun(run)  # between the statement and its locks another process took it
    turns.serve(locked.workspace.id)
    return NextRun(run, claim(commit, locked, share).work)


def claim(commit: Commit, locked: LockedRun, share: TimeSlice | None = None) -> LeaseClaim:
    """Begin what a running run owes, under a new lease, if its tool is this process's.

    Where its deadline is over, the kernel is fed TimePassed; but what it waits for is asked before.
    A delivery that finds nothing due, or the lease held, is absorbed. ``share``: taken in turn.
    """
    if leases.is_held(locked.run.holder, locked.run.until_ms):
        leases.absorb(locked.run.name)
        return LeaseClaim(free=False)
    if locked.workspace.successor_id is not None:
        _refused(commit, locked, [events.DeliveryReceived(program="")])
    if (snapshot := sound(commit, locked)) is None:
        return LeaseClaim()
    is_running = GROUP[snapshot.state] == "running"  # while it is suspended, its clock stands still
    deadline_ms = (snapshot.deadline_ms or None) if is_running else None
    locked.run.deadline_ms = deadline_ms  # the row says whom to look at, and not what is over
    outside = is_outside(locked, snapshot.owed)
    asks = snapshot.state == WAITING and not outside and _owes_now(commit, locked, snapshot)
    if deadline_ms is not None and deadline_ms <= now_ms() and not asks:
        snapshot = _over(commit, locked, snapshot)
    snapshot = unless_halted(commit, locked, snapshot)
    effect = snapshot.owed
    if effect is None or not _owes_now(commit, locked, snapshot):
        _leave(commit, locked, effect, share)
        return LeaseClaim()
    if outside or not actors.is_own(effect.tool):
        commit.after.append(partial(queue.call_worker, queue.of_tool(effect.tool)))
        return LeaseClaim(free=False)
    if share is not None and not turns.has_slot(locked.id, locked.workspace.id, effect.tool):
        return LeaseClaim()  # a passed deadline led to it: it has its turn when a slot is free
    leases.give(locked.run)
    if asks:
        work = _in_hand(locked, snapshot, effect, before=True, recorded=True, share=share)
        return LeaseClaim(work=work)
    return LeaseClaim(work=start(locked, snapshot, effect, share))


def _over(commit: Commit, locked: LockedRun, now: Snapshot) -> Snapshot:
    """The run's value after its deadline: a call that nobody took to make it has failed."""
    effect = now.owed
    if effect is None or not is_outside(locked, effect) or outbox.is_begun(locked.run, effect):
        return apply(commit, locked, [events.TimePassed()]).snapshot
    leases.give(locked.run)
    text = f"Nobody took the warrant of {effect.tool} in time, so the call was not made."
    failed = events.EffectFailed(key=effect.key, code="FSM-014", text=text)
    decision = apply(commit, locked, [failed], Sender(holder=locked.run.holder))
    leases.free(locked.run)
    return decision.snapshot


def is_outside(locked: LockedRun, effect: Effect | None) -> bool:
    """Whether whoever asked for this effect makes it, and no process here."""
    if effect is None:
        return False
    return application.is_outside(locked.program or programs.program_of(locked.run), effect.tool)


def _leave(
    commit: Commit, locked: LockedRun, effect: Effect | None, share: TimeSlice | None
) -> None:
    """Leave a run that owes nothing now: its row is made whole, or its delivery counted."""
    if not outbox.owes(locked.run, effect):
        apply(commit, locked, ())  # the row would have its turn again and again
    elif share is None:
        leases.absorb(locked.run.name)


def unless_halted(commit: Commit, locked: LockedRun, now: Snapshot) -> Snapshot:
    """The run's value, paused where it owes what its agent may not begin now (CAP-040)."""
    pause = Agents(commit.ledgers, locked.workspace).pause(locked.run, now)
    return apply(commit, locked, [pause]).snapshot if pause else now


def start(
    locked: LockedRun, now: Snapshot, effect: Effect, share: TimeSlice | None = None
) -> BegunEffect:
    """Mark an effect as begun, in the outbox and in the adapters' own record."""
    before = outbox.is_begun(locked.run, effect)
    recorded = outbox.begin(locked.run, effect)
    return _in_hand(locked, now, effect, before=before, recorded=recorded, share=share)


def keeps_turn(commit: Commit, locked: LockedRun, share: TimeSlice | None, effect: Effect) -> bool:
    """Whether a run's turn goes on with this effect: it has a slot, and need not give way."""
    if share is None or is_outside(locked, effect):
        return actors.is_own(effect.tool) and not is_outside(locked, effect)
    if not turns.has_slot(locked.id, locked.workspace.id, effect.tool):
        return False
    return share.left > 1 or not turns.others_wait(locked.workspace.id, commit.runs)


def continue_run(
    commit: Commit, locked: LockedRun, decision: Decision, share: TimeSlice | None = None
) -> BegunEffect | None:
    """The holder's next effect, begun with the decision; without one, the lease is freed."""
    now, owed = decision.snapshot, decision.snapshot.owed
    if owed is not None and owed in decision.effects and now.state == ACTIVE:
        if locked.run.begun_ms is not None:
            if locked.run.until_ms < now_ms() + RENEW_MS:
                leases.extend(locked.run)
            if share is not None:
                left = share.left - 1 or turns.EFFECTS_MAX  # nobody waited
                share = share._replace(left=left)
            recorded = owed.warrant is not None
            return _in_hand(locked, now, owed, before=False, recorded=recorded, share=share)
        if locked.run.pace_ms:
            _put_off(commit, locked)
        elif not actors.is_own(owed.tool):  # it is the other agent's turn
            commit.after.append(partial(queue.call_worker, queue.of_tool(owed.tool)))
    leases.free(locked.run)
    return None


def _owes_now(commit: Commit, locked: LockedRun, now: Snapshot) -> bool:
    """Whether its effect is to be done or asked after now.

    A paced run's fresh effect is put off for spectators.
    """
    effect, run = now.owed, locked.run
    due_ms = run.due_ms if outbox.owes(run, effect) else None
    if effect is None or due_ms is None or due_ms > now_ms():
        return False
    if now.state != ACTIVE:
        return now.state == WAITING
    if run.pace_ms and not due_ms and run.begun_ms is None:
        _put_off(commit, locked)
        return False
    return True


def _put_off(commit: Commit, locked: LockedRun) -> None:
    pace_ms = locked.run.pace_ms
    locked.run.due_ms = now_ms() + pace_ms
    commit.after.append(partial(queue.wake, locked.run.name, in_ms=pace_ms))


def _in_hand(
    locked: LockedRun,
    now: Snapshot,
    effect: Effect,
    *,
    before: bool,
    recorded: bool,
    share: TimeSlice | None,
) -> BegunEffect:
    run, program = locked.run, locked.program or programs.program_of(locked.run)
    return BegunEffect(
        run, program, now, effect, before=before, recorded=recorded, holder=run.holder, share=share
    )
