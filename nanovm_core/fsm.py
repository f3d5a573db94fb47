"""The transition function: what an event does to a run, decided and not done."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from nanovm_core import flow, steps
from nanovm_core import lifecycle as life
from nanovm_core.canonical import digest, encode
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from nanovm_core.messages import (
    Approved,
    Commitment,
    DamageFound,
    Decision,
    Declined,
    DeliveryReceived,
    Draft,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    ErasureDone,
    ErasureRequested,
    Event,
    ForeignIntent,
    KillRequested,
    PauseRequested,
    ProgramRefused,
    ProposalReceived,
    Refusal,
    ResumeRequested,
    RunId,
    RunStarted,
    Scalar,
    Snapshot,
    StepRequested,
)
from nanovm_core.program import Program


def begin(
    program: Program,
    run: RunId,
    slots: Mapping[str, Scalar],
    secrets: Sequence[Commitment],
    *,
    at_ms: int,
    actor: str,
    stepping: bool = False,
) -> Decision:
    """Decide the first value of a run: its genesis, under this program and its policy.

    Raises:
        ProgramError: PRG-002 where a slot is unknown.
        RefusedError: FSM-007 or PII-001 where a value does not fit its slot.
    """
    unknown = sorted(set(slots) - set(program.slots))
    if unknown:
        raise ProgramError("PRG-002", f"the program has no slots {unknown}")
    for name, value in slots.items():
        steps.check_slot(program, name, value, secrets)
    now = Snapshot(
        run=run,
        program=program.hash,
        policy=program.policy.hash,
        state=life.READY,
        step=program.first,
        slots=flow.frozen(slots),
        stepping=stepping,
    )
    body = {
        "state": {"from": life.NEGOTIATION, "event": "RunCreated", "to": life.READY},
        "capabilities": capabilities_hash(program),
        "in": dict(slots),
        "secrets": flow.listed(tuple(secrets)),
    }
    return Decision(
        snapshot=now,
        drafts=(Draft(kind="genesis", at_ms=at_ms, actor=actor, after=now, body=body),),
    )


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
    erasing = isinstance(event, ErasureRequested | ErasureDone)
    if now.state in life.TERMINAL and not erasing:
        return _absorbed(program, now, event)
    try:
        return _decided(program, now, event)
    except RefusedError as error:
        return _refused(program, now, event, error)


def quarantine(now: Snapshot, damage: VerificationError, *, at_ms: int) -> Decision:
    """Contain stored damage: name the place, start a new segment, fail a run that was live.

    ``now`` is the run's last value as far as it can be trusted. What was reserved for a
    payment that is under way stays reserved: nobody knows yet whether it was made.
    """
    live = now.state not in life.TERMINAL
    event = DamageFound(at_ms=at_ms)
    after = replace(now, reason=(damage.code, damage.text))
    body = {
        **flow.moved(now, event, now.state),
        "rule": damage.code,
        "at": damage.at,
        "expected": damage.expected,
        "found": damage.found,
    }
    sealed = flow.draft("integrity", event, after, body)
    if not live:
        return Decision(snapshot=after, drafts=(sealed,))
    if after.owed is not None and after.owed.warrant is not None:
        after = replace(after, reserved=None)
    return flow.join(sealed, flow.end(after, event, life.FAILED, damage.code, damage.text))


def replay(program: Program, now: Snapshot, events: Sequence[Event]) -> Snapshot:
    """The snapshot after these events, from ``now``: the same on every machine."""
    for event in events:
        now = transition(program, now, event).snapshot
    return now


def capabilities_hash(program: Program) -> str:
    """The hash of the capability snapshot: every grant with its constraints."""
    grants = [
        {
            "tool": grant.tool,
            "where": {
                name: {
                    "one_of": list(limit.one_of or ()),
                    "min": limit.min,
                    "max": limit.max,
                    "prefix": limit.prefix,
                    "equals_slot": limit.equals_slot,
                }
                for name, limit in grant.where.items()
            },
        }
        for grant in program.grants.values()
    ]
    return digest(b"nanovm/capabilities/v1\0", encode(grants))


def _decided(program: Program, now: Snapshot, event: Event) -> Decision:  # noqa: C901
    """Hand the event to the step rules; every kind of event is named here."""
    match event:
        case ErasureRequested() | ErasureDone():
            return _erasing(now, event)
        case ProgramRefused():
            raise RefusedError("PRG-011", "The stored program is not the one the run began under.")
        case ForeignIntent():
            raise RefusedError("FSM-001", "The outbox held an effect that no sealed intent bears.")
        case DeliveryReceived() | ResumeRequested() | StepRequested() if (
            event.program != now.program
        ):
            raise RefusedError("PRG-010", "The message names another program than the genesis.")
        case DeliveryReceived():  # a wake-up for a run that owes nothing now
            return Decision(snapshot=now, absorbed="DeliveryReceived")
        case ProposalReceived():
            return steps.proposed(program, now, event)
        case EffectDone():
            return steps.done(program, now, event)
        case EffectFailed():
            return steps.failed(program, now, event)
        case EffectUnknown():
            return steps.unknown(program, now, event)
        case RunStarted():
            return steps.started(program, now, event)
        case PauseRequested():
            return steps.paused(now, event)
        case ResumeRequested() | StepRequested():
            return steps.resumed(program, now, event)
        case Approved():
            return steps.approved(program, now, event)
        case Declined() | KillRequested():
            return steps.stopped(now, event)
        case DamageFound():
            raise RefusedError("FSM-002", "Damage is found in stored bytes, not told in an event.")
    raise TypeError(f"{type(event).__name__} is no event of the kernel")


def _absorbed(program: Program, now: Snapshot, event: Event) -> Decision:
    """δ(terminal, anything): no change, no effect; sealed once a kind.

    A result from the run's own worker is a kind of its own, so that nobody's forged one can
    use up its place.
    """
    from_worker = isinstance(event, EffectDone) and event.by_holder
    kind = type(event).__name__ + ("FromWorker" if from_worker else "")
    if kind in now.ignored:
        return Decision(snapshot=now, absorbed=kind)
    after = replace(now, ignored=tuple(sorted({*now.ignored, kind})))
    body = {
        **flow.moved(now, event, now.state),
        "rule": "FSM-003",
        "decision": {"verdict": "IGNORED", "rules": ["FSM-003"]},
        **_late(program, event),
    }
    draft = Draft(kind="ignored", at_ms=event.at_ms, actor=event.actor, after=after, body=body)
    return Decision(snapshot=after, drafts=(draft,), absorbed=kind)


def _refused(program: Program, now: Snapshot, event: Event, error: RefusedError) -> Decision:
    """Seal the refusal. A refused answer of the model counts against it; nothing else changes."""
    refusal = Refusal(code=error.code, text=error.text, where=_where(error.__traceback__))
    answers = isinstance(event, ProposalReceived) and steps.answers(program, now, event)
    after = replace(now, refused=now.refused + 1, owed=None) if answers else now
    body = {
        **flow.moved(now, event, now.state),
        "rule": error.code,
        "decision": {"verdict": "BLOCKED", "rules": [error.code]},
        **_carried(event),
    }
    sealed = Draft(kind="refused", at_ms=event.at_ms, actor=event.actor, after=after, body=body)
    then = steps.after_refusal(program, after, event) if answers else Decision(snapshot=after)
    return replace(then, drafts=(sealed, *then.drafts), refusal=refusal)


def _carried(event: Event) -> dict[str, object]:
    """What a refused event brought along, by ref."""
    if not isinstance(event, ProposalReceived) or event.secret is None:
        return {}
    return {
        "in": {event.secret.slot: event.secret.ref},
        "secrets": flow.listed((event.secret,)),
    }


def _late(program: Program, event: Event) -> dict[str, object]:
    """The clear part of a worker's result that came after the end: what happened outside, happened.

    Refs are left out, for nothing enters the vault of a run that has ended; so is whatever no
    step could have filled in.
    """
    if not isinstance(event, EffectDone) or not event.by_holder:
        return {}
    clear: dict[str, object] = {}
    for name, value in event.out.items():
        slot = program.slots.get(name)
        if slot is not None and slot.type != "ref":
            try:
                steps.check_slot(program, name, value, ())
            except RefusedError:
                continue  # it says nothing that could be sealed
            clear[name] = value
    return {"out": clear}


def _erasing(now: Snapshot, event: ErasureRequested | ErasureDone) -> Decision:
    """Erasure changes no state; it is sealed in a run that has ended."""
    if now.state not in life.TERMINAL:
        raise RefusedError("FSM-010", "The run has not ended; stop it first.")
    body: dict[str, object] = {"in": {"refs": sorted(event.refs), "reason": event.reason}}
    kind = "erasure_requested"
    if isinstance(event, ErasureDone):
        kind = "erasure_done"
        body["out"] = {"destroyed": dict(event.destroyed), "kept": list(event.kept)}
    draft = Draft(kind=kind, at_ms=event.at_ms, actor=event.actor, after=now, body=body)
    return Decision(snapshot=now, drafts=(draft,))


def _where(trace: TracebackType | None) -> str:
    """File, line and function of the frame that raised: the line that decided."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    file = "/".join(code.co_filename.replace("\\", "/").split("/")[-2:])
    return f"{file}:{trace.tb_lineno} {code.co_name}"
