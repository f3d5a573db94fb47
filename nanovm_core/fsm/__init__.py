"""The transition function: what an event does to a run, decided and not done."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any

from nanovm_core import lifecycle as life
from nanovm_core.canonical import digest, encode
from nanovm_core.capabilities import grant_id
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from nanovm_core.events import (
    AnswerArrived,
    Approved,
    DamageFound,
    Declined,
    DeliveryReceived,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    ErasureDone,
    ErasureRequested,
    Event,
    ForeignIntent,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ProposalReceived,
    ResumeRequested,
    RunStarted,
    StepRequested,
    TimePassed,
)
from nanovm_core.fsm import moves, requests, steps
from nanovm_core.messages import (
    Commitment,
    Decision,
    Draft,
    Refusal,
    Reservation,
    RunId,
    Scalar,
    Snapshot,
)
from nanovm_core.program import Program

PACKAGE = "nanovm_core/"  # where a refusal's place begins, wherever the package lies

Rule = Callable[[Program, Snapshot, Any], Decision]  # Any: each takes its own kind of event


def begin(
    program: Program,
    run: RunId,
    slots: Mapping[str, Scalar],
    secrets: Sequence[Commitment],
    *,
    at_ms: int,
    actor: str,
    agent: str = "",
    stepping: bool = False,
) -> Decision:
    """Decide the first value of a run: its genesis, under this program and its policy.

    ``agent`` is whose shared budgets and windows the run counts against; the program's
    own unless another is named.

    Raises:
        ProgramError: PRG-002 where a slot is unknown.
        RefusedError: FSM-007 or PII-001 where a value does not fit its slot.
    """
    _check_slots(program, slots, secrets)
    now = Snapshot(
        run=run,
        program=program.hash,
        policy=program.policy.hash,
        state=life.READY,
        step=program.first,
        agent=agent or program.agent,
        slots=moves.frozen(slots),
        stepping=stepping,
    )
    body = {
        "state": moves.frozen({"from": life.NEGOTIATION, "event": "RunCreated", "to": now.state}),
        "capabilities": capabilities_hash(program),
        "in": now.slots,
        "secrets": moves.listed(tuple(secrets)),
    }
    return Decision(now, (Draft("genesis", at_ms, actor, now, MappingProxyType(body)),))


def _check_slots(
    program: Program, slots: Mapping[str, Scalar], secrets: Sequence[Commitment]
) -> None:
    unknown = sorted(set(slots) - set(program.slots))
    if unknown:
        raise ProgramError("PRG-002", f"the program has no slots {unknown}")
    for name, value in slots.items():
        steps.check_slot(program, name, value, secrets)


def transition(program: Program, now: Snapshot, event: Event) -> Decision:
    """Decide what ``event`` does to a run, and touch nothing.

    The same arguments give the same Decision on any machine in any year: time and funds
    come in on the event, and keys are derived, not drawn.

    An event that does not belong here is an attack or a late duplicate: it is refused in
    the Decision and audited, not raised. A terminal run absorbs everything but erasure:
    the first event of a kind is sealed as ignored, the others are only counted.

    Returns:
        A Decision whose drafts are to be sealed in order. Its effects are requests: none
        has happened yet, and each may happen more than once under one key.
    """
    rule = RULES[type(event)]  # every kind of event is there: a test holds it
    if now.state in life.TERMINAL and rule is not _erasing:
        return _absorbed(program, now, event)
    try:
        return moves.from_where_it_stood(now, rule(program, now, event))
    except RefusedError as error:
        return _refused(program, now, event, error)


def quarantine(now: Snapshot, damage: VerificationError, *, at_ms: int) -> Decision:
    """Contain stored damage: name the place, start a new segment, fail a run that was live.

    ``now`` is the run's last value as far as it can be trusted. What was reserved for a
    payment that is under way stays reserved: nobody knows yet whether it was made.
    """
    live = now.state not in life.TERMINAL
    event = DamageFound(at_ms=at_ms)
    after = now._replace(reason=(damage.code, damage.text))
    body = {
        **moves.moved(now, event, now.state),
        "rule": damage.code,
        "at": damage.at,
        "expected": damage.expected,
        "found": damage.found,
    }
    sealed = moves.draft("integrity", event, after, body)
    if not live:
        return Decision(snapshot=after, drafts=(sealed,))
    if after.owed is not None and after.owed.warrant is not None:
        after = after._replace(reserved=())
    return moves.join(sealed, moves.end(after, event, life.FAILED, damage.code, damage.text))


def replay(program: Program, now: Snapshot, events: Sequence[Event]) -> Snapshot:
    """The snapshot after these events, from ``now``: the same on every machine."""
    for event in events:
        now = transition(program, now, event).snapshot
    return now


def capabilities_hash(program: Program) -> str:
    """The hash of the capability snapshot: every grant with its constraints and its expiry."""
    grants = {grant.tool: grant_id(grant) for grant in program.grants.values()}
    return digest(b"nanovm/capabilities/v2\0", encode(grants))


# --- events that are about no step -----------------------------------------------------------


def _delivered(_: Program, now: Snapshot, event: DeliveryReceived) -> Decision:
    """A queue message: a wake-up for a run that owes nothing now."""
    moves.expect_program(now, event.program)
    return Decision(now, absorbed="DeliveryReceived")


def _exchanged(*_: object) -> Decision:
    raise RefusedError("PRG-011", "The stored program is not the one the run began under.")


def _foreign(*_: object) -> Decision:
    raise RefusedError("FSM-001", "The outbox held an effect that no sealed intent bears.")


def _told_damage(*_: object) -> Decision:
    raise RefusedError("FSM-002", "Damage is found in stored bytes, not told in an event.")


def _absorbed(program: Program, now: Snapshot, event: Event) -> Decision:
    """δ(terminal, anything): no change, no effect; sealed once a kind.

    A result from the run's own worker is a kind of its own, so that nobody's forged one can
    use up its place.
    """
    from_worker = isinstance(event, EffectDone) and event.by_holder
    kind = type(event).__name__ + ("FromWorker" if from_worker else "")
    if kind in now.ignored:
        return Decision(snapshot=now, absorbed=kind)
    after = now._replace(ignored=tuple(sorted({*now.ignored, kind})))
    body = {
        **moves.moved(now, event, now.state),
        "rule": "FSM-003",
        "decision": moves.verdict("IGNORED", "FSM-003"),
        **_late(program, event),
    }
    return Decision(after, (moves.draft("ignored", event, after, body),), absorbed=kind)


def _refused(program: Program, now: Snapshot, event: Event, error: RefusedError) -> Decision:
    """Seal the refusal. A refused answer of the model counts against it; nothing else changes."""
    refusal = Refusal(code=error.code, text=error.text, where=_where(error.__traceback__))
    answers, after = False, now
    spent: tuple[Reservation, ...] = ()
    if isinstance(event, ProposalReceived) and steps.answers(program, now, event):
        answers = True
        after, spent = steps.refused_answer(now, event)
    body = {
        **moves.moved(now, event, now.state),
        "rule": error.code,
        "decision": moves.verdict("BLOCKED", error.code),
        **_carried(event),
    }
    sealed = moves.draft("refused", event, after, body)
    then = steps.after_refusal(program, after, event) if answers else Decision(after)
    return moves.join(sealed, then, spent)._replace(refusal=refusal)


def _carried(event: Event) -> dict[str, object]:
    """What a refused event brought along, by ref."""
    if not isinstance(event, ProposalReceived) or event.secret is None:
        return {}
    return {
        "in": moves.frozen({event.secret.slot: event.secret.ref}),
        "secrets": moves.listed((event.secret,)),
    }


def _late(program: Program, event: Event) -> dict[str, object]:
    """The clear part of a worker's result that came after the end: what happened outside, happened.

    Refs are left out, for nothing enters the vault of a run that has ended; so is whatever no
    step could have filled in.
    """
    if not isinstance(event, EffectDone) or not event.by_holder:
        return {}
    clear: dict[str, Scalar] = {}
    for name, value in event.out.items():
        slot = program.slots.get(name)
        if slot is not None and slot.type != "ref":
            try:
                steps.check_slot(program, name, value, ())
            except RefusedError:
                continue  # it says nothing that could be sealed
            clear[name] = value
    return {"out": moves.frozen(clear)}


def _erasing(_: Program, now: Snapshot, event: ErasureRequested | ErasureDone) -> Decision:
    """Erasure changes no state; it is sealed in a run that has ended."""
    if now.state not in life.TERMINAL:
        raise RefusedError("FSM-010", "The run has not ended; stop it first.")
    asked = {"refs": tuple(sorted(event.refs)), "reason": event.reason}
    body: dict[str, object] = {"in": MappingProxyType(asked)}
    kind = "erasure_requested"
    if isinstance(event, ErasureDone):
        kind = "erasure_done"
        gone = {"destroyed": moves.frozen(event.destroyed), "kept": event.kept}
        body["out"] = MappingProxyType(gone)
    return Decision(now, (moves.draft(kind, event, now, body),))


def _where(trace: TracebackType | None) -> str:
    """File, line and function of the frame that raised: the line that decided."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    file = PACKAGE + code.co_filename.replace("\\", "/").rpartition(PACKAGE)[2]
    return f"{file}:{trace.tb_lineno} {code.co_name}"


RULES: Mapping[type[Event], Rule] = MappingProxyType(
    {
        RunStarted: requests.started,
        EffectDone: steps.done,
        EffectFailed: steps.failed,
        EffectUnknown: steps.unknown,
        EffectWaiting: steps.waiting,
        AnswerArrived: steps.answered,
        TimePassed: steps.time_passed,
        ProposalReceived: steps.proposed,
        PauseRequested: requests.paused,
        ResumeRequested: requests.resumed,
        StepRequested: requests.resumed,
        Approved: requests.approved,
        Declined: requests.declined,
        KillRequested: requests.stopped,
        DeliveryReceived: _delivered,
        ProgramRefused: _exchanged,
        ForeignIntent: _foreign,
        DamageFound: _told_damage,
        ErasureRequested: _erasing,
        ErasureDone: _erasing,
    }
)
