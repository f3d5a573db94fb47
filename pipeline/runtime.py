"""The runtime: lock, read, decide, write, commit, then act. The only writer of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.db import IntegrityError, transaction

from nanovm_core.errors import VerificationError
from nanovm_core.events import (
    Approved,
    Declined,
    Event,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ProposalReceived,
    ResumeRequested,
    RunStarted,
    StepRequested,
)
from nanovm_core.fsm import begin, quarantine, transition
from nanovm_core.lifecycle import ACTIVE, TERMINAL
from nanovm_core.messages import Args, Decision, Effect, RunId, Scalar
from nanovm_core.program import Program
from pipeline import authority, leases, outbox, programs, queue, records, vaultstore
from pipeline.models import Outbox, Run, Workspace
from pipeline.signals import announce
from pipeline.surroundings import informed
from pipeline.vaultstore import Sealed
from pipeline.world import now_ms, run_code, uuid7

CODE_TRIES = 20  # a code is drawn from 81 million; a clash is drawn again


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An effect taken in hand: the sealed intent itself, not the outbox row that pointed to it.

    ``before``: somebody had begun it already, so its outcome may be unknown.
    """

    run: Run
    program: Program
    slots: Args
    effect: Effect
    before: bool
    token: bytes  # the signed warrant of a granted call; else empty


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
) -> Run:
    """Make a run over a document: READY, its genesis sealed, nothing begun.

    ``proposal`` is what a compromised model will say; it lies in the vault like all a model
    says. A bad document is no error here: step ``receive`` says what is wrong with it.
    """
    run = _new_run(workspace, model, pace_ms, policy)
    given = {"file_name": file_name.encode("utf-8", "replace")}
    if proposal:
        given["planted"] = proposal
    sealed = vaultstore.seal_values(str(run.id), workspace.origin, given)
    sealed["document"] = vaultstore.seal_document(
        str(run.id), workspace.origin, "document", document
    )
    slots: dict[str, Scalar] = {slot: each.ref for slot, each in sealed.items()}
    decision = begin(
        programs.program_of(run),
        RunId(str(run.id)),
        {**slots, "payment_method": payment_method},
        [each.commitment for each in sealed.values()],
        at_ms=run.created_ms,
        actor="visitor",
        stepping=stepping,
    )
    return _stored_run(run, decision, list(sealed.values()))


def submit(
    run_id: str, events: Sequence[Event], *, secrets: Sequence[Sealed] = (), holder: str = ""
) -> Decision:
    """Feed events to a run: the only way its state ever changes.

    The stored chain and snapshot are recomputed first; damage is sealed, fails a live run,
    and the events are not looked at. The result of an effect is taken from the ``holder`` of
    the run's lease alone. Returns the last event's decision.
    """
    with transaction.atomic():
        workspace, run = records.lock(run_id)
        try:
            by_holder = leases.holds(run_id, holder)
            given = [replace(event, by_holder=by_holder) for event in events]
            decision = _decided(workspace, run, given, secrets)
        except VerificationError as damage:
            decision = quarantine(records.trusted(run), damage, at_ms=now_ms())
            records.record(workspace, run, decision)
        transaction.on_commit(partial(announce, run))
    return decision


def check(run_id: str) -> Decision | None:
    """Recompute what is stored of a run: chain, snapshot, program.

    None when it is whole, else the decision that sealed what was found.
    """
    run = Run.objects.get(id=run_id)
    try:
        records.verified(run)
    except VerificationError:
        return submit(run_id, ())
    exchanged = programs.found_hash(run) != run.program_hash
    return submit(run_id, ()) if exchanged else None


def begin_effect(run_id: str) -> Begun | None:
    """Take the effect that a running run owes; None where there is none, or damage was sealed."""
    try:
        with transaction.atomic():
            return _taken(run_id)
    except VerificationError:  # nothing was begun
        submit(run_id, ())
        return None


def propose(run_id: str, raw: bytes, actor: str = "visitor") -> Decision:
    """Put a tool call before the kernel, through the door that the model's answer takes.

    Where the run waits for its model, this is its answer; elsewhere it is out of turn. A run
    that has ended keeps no words of it: nothing comes into the vault that an erasure missed.
    """
    run = Run.objects.select_related("workspace").get(id=run_id)
    owed = Outbox.objects.filter(run=run, done_ms=None, tool="model.propose").first()
    sealed: list[Sealed] = []
    if run.state not in TERMINAL:
        sealed.extend(
            vaultstore.seal_values(str(run.id), run.workspace.origin, {"proposal": raw}).values()
        )
    event = ProposalReceived(
        at_ms=now_ms(),
        actor=actor,
        raw=raw,
        secret=sealed[0].commitment if sealed else None,
        key=owed.key if owed else "",
    )
    decision = submit(run_id, [event], secrets=sealed)
    if decision.effects:
        queue.wake(run_id)
    return decision


def start(run_id: str, actor: str) -> Decision:
    """Begin a run."""
    return _ask(run_id, RunStarted(at_ms=now_ms(), actor=actor))


def pause(run_id: str, actor: str) -> Decision:
    """Hold a run still; an answer under way is still taken."""
    return _ask(run_id, PauseRequested(at_ms=now_ms(), actor=actor))


def resume(run_id: str, actor: str, program: str | None = None) -> Decision:
    """Let a paused run go on, under the program it began with unless another is named."""
    named = program if program is not None else _program_hash(run_id)
    return _ask(run_id, ResumeRequested(at_ms=now_ms(), actor=actor, program=named))


def step(run_id: str, actor: str) -> Decision:
    """Let a paused run take one step."""
    event = StepRequested(at_ms=now_ms(), actor=actor, program=_program_hash(run_id))
    return _ask(run_id, event)


def approve(run_id: str, actor: str) -> Decision:
    """Lift the hold that a run waits for."""
    return _ask(run_id, Approved(at_ms=now_ms(), actor=actor))


def decline(run_id: str, actor: str) -> Decision:
    """Refuse a held payment for good."""
    return _ask(run_id, Declined(at_ms=now_ms(), actor=actor))


def kill(run_id: str, actor: str) -> Decision:
    """Stop a run for good, unless an effect that moves money is under way."""
    return _ask(run_id, KillRequested(at_ms=now_ms(), actor=actor))


def _ask(run_id: str, event: Event) -> Decision:
    """Submit somebody's request, and wake the run where that makes it owe something."""
    decision = submit(run_id, [event])
    if decision.effects:
        queue.wake(run_id)
    return decision


def _decided(
    workspace: Workspace, run: Run, events: Sequence[Event], secrets: Sequence[Sealed]
) -> Decision:
    """Decide the events one after the other, and record each decision."""
    snapshot = records.verified(run).snapshot
    ended = snapshot.state in TERMINAL  # it absorbs, under whatever program
    program = programs.current() if ended else programs.program_of(run)
    decision = Decision(snapshot=snapshot)
    for event in (*_exchanged(run), *outbox.reconcile(run, snapshot), *events):
        event = informed(event, workspace, program, snapshot)
        decision = transition(program, snapshot, event)
        records.record(workspace, run, decision, secrets)
        snapshot = decision.snapshot
    return decision


def _exchanged(run: Run) -> list[Event]:
    """The event that a foreign program beside the run is; the true copy is put back."""
    found = programs.found_hash(run)
    if found == run.program_hash:
        return []
    run.program_source = programs.shipped_program()
    return [ProgramRefused(at_ms=now_ms(), found=found)]


def _taken(run_id: str) -> Begun | None:
    _, run = records.lock(run_id)
    snapshot = records.verified(run).snapshot
    program, effect = programs.program_of(run), snapshot.owed
    if effect is None or snapshot.state != ACTIVE:
        return None
    before = outbox.begun(effect)
    outbox.begin(run, effect)
    return Begun(
        run=run,
        program=program,
        slots=snapshot.slots,
        effect=effect,
        before=before,
        token=authority.token(program, snapshot, effect),
    )


def _new_run(workspace: Workspace, model: str, pace_ms: int, policy: str) -> Run:
    source, rules = programs.shipped_program(), programs.policy_source(policy)
    program = programs.ruled(source, rules)
    return Run(
        id=uuid7(),
        workspace=workspace,
        program_hash=program.hash,
        program_source=source,
        policy_hash=program.policy.hash,
        policy_source=rules,
        model=model,
        pace_ms=pace_ms,
        created_ms=now_ms(),
    )


def _stored_run(run: Run, decision: Decision, sealed: Sequence[Sealed]) -> Run:
    """Store a new run with its genesis, under a code that nobody else has."""
    store: Callable[[], None] = partial(_store, run, decision, sealed)
    for _ in range(CODE_TRIES):
        run.code = run_code()
        try:
            store()
        except IntegrityError:
            if not Run.objects.filter(code=run.code).exists():
                raise
            continue
        return run
    raise RuntimeError("No free run code was found; erase or archive old runs.")


def _store(run: Run, decision: Decision, sealed: Sequence[Sealed]) -> None:
    run.head, run.length = "", 0
    with transaction.atomic():
        workspace = records.lock_log(str(run.workspace_id))
        run.snapshot = b""
        run.save(force_insert=True)
        records.record(workspace, run, decision, sealed)
        transaction.on_commit(partial(announce, run))


def _program_hash(run_id: str) -> str:
    return Run.objects.values_list("program_hash", flat=True).get(id=run_id)
