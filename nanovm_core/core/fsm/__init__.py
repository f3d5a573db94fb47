"""The transition function: what an event does to a run, decided and not done."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.budget import name_of
from nanovm_core.core.authority.capabilities import grant_id
from nanovm_core.core.authority.origin import ORIGINS, labelled, meets, of
from nanovm_core.core.canonical import Json, digest, encode
from nanovm_core.core.events import Context, Event, ProposalReceived
from nanovm_core.core.fsm import advance, commands, moves, results, terminal
from nanovm_core.core.messages import (
    NOTHING,
    Commitment,
    Counts,
    Decision,
    Draft,
    Refusal,
    RunId,
    Scalar,
    Snapshot,
)
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError, RefusedError, VerificationError

EXCHANGED = "PRG-011"

# Any: each takes its own kind of event.
Handler = Callable[[Program, Snapshot, Any, moves.Cause], Decision]


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
    origins: Mapping[str, str] = NOTHING,
) -> Decision:
    """Decide the genesis of a run; with ``stepping``, the run pauses before each step.

    ``agent``: whose accounts it uses, else the program's own; ``origins``: of its ``slots``.

    Raises:
        ProgramError: PRG-002, a slot that the program does not have.
        RefusedError: FSM-007, PII-001, CAP-009 a value not for its slot, FSM-017 too large to seal.
    """
    _check_slots(program, slots, secrets, origins)
    now = Snapshot(
        run=run,
        program=program.hash,
        policy=program.policy.hash,
        state=life.READY,
        step=program.first,
        agent=agent or program.agent,
        slots=moves.frozen(slots),
        stepping=stepping,
        origins=MappingProxyType(labelled(origins)),
    )
    body = {
        "state": moves.frozen({"from": life.NEGOTIATION, "event": "RunCreated", "to": life.READY}),
        "capabilities": capabilities_hash(program),
        "in": now.slots,
        "origin": now.origins,
        "secrets": moves.listed(tuple(secrets)),
    }
    return Decision(now, (Draft("genesis", at_ms, actor, now, MappingProxyType(body)),))


def _check_slots(
    program: Program,
    slots: Mapping[str, Scalar],
    secrets: Sequence[Commitment],
    origins: Mapping[str, str],
) -> None:
    unknown = sorted(set(slots) - set(program.slots))
    if unknown:
        raise ProgramError("PRG-002", f"the program has no slots {unknown}")
    events.require_secrets(secrets)
    for name, value in slots.items():
        results.check_slot(program, name, value, secrets)
    events.require_slots(slots)
    if origins.keys() - slots.keys() or not set(origins.values()) <= set(ORIGINS):
        raise RefusedError("CAP-009", "An origin is unknown, or belongs to a slot without a value.")
    for name, least in program.declared(slots).items():
        found = of(origins, name)
        if not meets(found, least):
            text = f"The slot {name!r} requires the origin {least}; its value has {found}."
            raise RefusedError("CAP-009", text)


def transition(program: Program, now: Snapshot, event: Event, context: Context) -> Decision:
    """Decide what ``event`` does to a run, and touch nothing.

    The same arguments give the same Decision on any machine in any year: time and funds are in
    the context, and keys are derived, not drawn.

    An event that does not belong here is an attack or a late duplicate: it is refused in the
    Decision and audited, not raised. A terminal run absorbs everything but erasure: the first
    event of a kind is sealed as ignored, the others are only counted. Under another program or
    policy than its own, a run that has not ended refuses everything (PRG-011).

    Raises:
        TypeError: for what is no event: a fault of the caller.

    Returns:
        A Decision whose drafts are to be sealed in order. Its effects are requests: none
        has happened yet, and each may happen more than once under one key.
    """
    handler = HANDLERS.get(type(event))
    if handler is None:
        text = "an event of a kind in nanovm_core.core.events that has a line in fsm.HANDLERS"
        raise TypeError(f"a run takes {text}, not {type(event).__name__}; nothing was decided")
    cause = moves.Cause(type(event).__name__, context, context.at_ms)
    decision = _sealed(_decided(program, now, event, cause, handler), context.ledger)
    if not program.has_agents or decision.snapshot.step == now.step or not decision.drafts:
        return decision
    return advance.handed_over(program, now, decision, cause)


def _decided(
    program: Program, now: Snapshot, event: Event, cause: moves.Cause, handler: Handler
) -> Decision:
    has_ended = now.state in life.TERMINAL
    try:
        if not has_ended and (program.hash, program.policy.hash) != (now.program, now.policy):
            _exchanged()
        if has_ended and handler is not terminal.erasing:
            return terminal.absorbed(program, now, event, cause)
        return moves.from_where_it_stood(now, handler(program, now, event, cause))
    except RefusedError as error:
        return _refused(program, now, event, cause, error)


def quarantine(now: Snapshot, damage: VerificationError, *, at_ms: int) -> Decision:
    """Contain stored damage: record its place, start a new segment, fail a live run.

    ``now`` is the run's last trusted value. What is reserved for a payment under way stays so.
    """
    live = now.state not in life.TERMINAL
    cause = moves.Cause("DamageFound", Context(at_ms=at_ms), at_ms)
    after = now._replace(reason=(damage.code, damage.text))
    place = {"at": damage.at, "expected": damage.expected, "found": damage.found}
    body = moves.moved(now, cause, now.state, rule=damage.code, **place)
    found = moves.draft("integrity", cause, after, body)
    if not live:
        return _sealed(Decision(snapshot=after, drafts=(found,)))
    if after.owed is not None and after.owed.warrant is not None:
        after = after._replace(reserved=())
    ended = moves.end(after, cause, life.FAILED, damage.code, damage.text)
    return _sealed(moves.join(found, ended))


def capabilities_hash(program: Program) -> str:
    """The hash of every grant with its constraints, expiry and origins; only a genesis seals it.

    Programs of one hash have the grants of one file, or narrower ones (``Program.attenuated``).
    The runtime must not continue a run begun under narrowed grants under the file's.
    """
    grants: dict[str, Json] = {
        each.tool: [grant_id(each), *each.narrowed_from] if each.narrowed_from else grant_id(each)
        for each in program.grants.values()
    }
    return digest(b"nanovm/capabilities/v2\0", encode(grants))


def _sealed(decision: Decision, ledger: Counts = NOTHING) -> Decision:
    """The decision, its drafts saying what it does to the shared accounts.

    The first says what is spent and released of what was frozen; the last, what is taken, and
    what that leaves. An agent's account has the agent's name behind it, as in the log's ledger.
    """
    if not decision.drafts or not decision.budgets:
        return decision
    left: dict[str, int] = {}
    drafts = [*decision.drafts]
    for name, reserved, spent in decision.budgets:
        account, more = name_of(name, decision.snapshot.agent), reserved + spent
        parts = {"spent": spent, "reserved": more}  # a step is spent as it is taken
        if reserved < 0:  # what was used beyond a reservation is reserved as it is spent
            parts |= {"reserved": max(more, 0), "released": max(-more, 0)}
        if name in ledger and reserved and more > 0:
            left[name] = parts["left"] = left.get(name, ledger[name]) - more
        place = 0 if reserved < 0 else -1
        body: Any = drafts[place].body  # ``|`` is fast
        body = body | {"budget": _added(body.get("budget", NOTHING), account, parts)}
        drafts[place] = Draft(*drafts[place][:4], MappingProxyType(body))
    return Decision(decision[0], tuple(drafts), *decision[2:])


def _added(said: Any, account: str, parts: Counts) -> Mapping[str, object]:
    """The ``budget`` field of an envelope, with one more change of an account."""
    for part, amount in parts.items():
        known = said.get(part, NOTHING)
        if amount or part == "left":
            known = known | {account: known.get(account, 0) + amount}
            said = said | {part: MappingProxyType(known)}
    return MappingProxyType(said)


def _delivered(
    _: Program, now: Snapshot, event: events.DeliveryReceived, __: moves.Cause
) -> Decision:
    moves.expect_program(now, event.program)
    return Decision(now, absorbed="DeliveryReceived")


def _exchanged(*_: object) -> Decision:
    raise RefusedError(EXCHANGED, "The program or policy is not the run's own.")


def _foreign(*_: object) -> Decision:
    raise RefusedError("FSM-001", "The outbox contained an effect without a sealed intent.")


def _told_damage(*_: object) -> Decision:
    raise RefusedError("FSM-002", "An event cannot report damage; only stored bytes can show it.")


def _refused(
    program: Program, now: Snapshot, event: Event, cause: moves.Cause, error: RefusedError
) -> Decision:
    """Seal the refusal. A refused answer of the model counts against it."""
    refusal = Refusal(code=error.code, text=error.text)
    decision = moves.verdict("BLOCKED", error.code)
    body = moves.moved(now, cause, now.state, rule=error.code, decision=decision)
    if isinstance(event, ProposalReceived):
        body |= results.carried(event, "in")
        own = error.code != EXCHANGED  # under another program no step is the run's own
        if own and results.answers(program, now, event):
            after, spent = results.refused_answer(now, event, cause)
            sealed = moves.draft("refused", cause, after, body)
            then = results.paid(
                now, spent, cause, lambda at: results.after_refusal(program, after, at)
            )
            return moves.join(sealed, then, spent)._replace(refusal=refusal)
    return Decision(now, (moves.draft("refused", cause, now, body),), refusal=refusal)


HANDLERS: Mapping[type[Event], Handler] = MappingProxyType(
    {
        events.RunStarted: commands.started,
        events.EffectDone: results.done,
        events.EffectFailed: results.failed,
        events.EffectUnknown: results.unknown,
        events.EffectWaiting: results.waiting,
        events.AnswerArrived: results.answered,
        events.TimePassed: results.time_passed,
        events.ProposalReceived: results.proposed,
        events.PauseRequested: commands.paused,
        events.ResumeRequested: commands.resumed,
        events.StepRequested: commands.resumed,
        events.Approved: commands.approved,
        events.Declined: commands.declined,
        events.KillRequested: commands.stopped,
        events.DeliveryReceived: _delivered,
        events.ProgramRefused: _exchanged,
        events.ForeignIntent: _foreign,
        events.DamageFound: _told_damage,
        events.ErasureRequested: terminal.erasing,
        events.ErasureDone: terminal.erasing,
        events.ErasureRefused: terminal.erasing,
    }
)
