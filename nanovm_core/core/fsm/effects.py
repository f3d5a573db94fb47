"""Owed effects: key, need, warrant, and sealed intent."""

from collections.abc import Mapping
from types import MappingProxyType

from nanovm_core.core.authority.budget import OWN
from nanovm_core.core.canonical import digest
from nanovm_core.core.fsm import moves
from nanovm_core.core.fsm.moves import Cause
from nanovm_core.core.messages import (
    NOTHING,
    Args,
    Counts,
    Decision,
    Effect,
    Reservations,
    Snapshot,
)
from nanovm_core.core.program import MODEL, Program, Step
from nanovm_core.core.warrants import binding, mint
from nanovm_core.errors import RefusedError


def effect_key(now: Snapshot, step: str, tool: str, attempt: int) -> str:
    """The idempotency key: hash(run, step, tool, attempt), 64 lower-case hex digits.

    As unique as the run's id, which must be unique in the world.
    """
    parts = "\0".join((now.run, step, tool, str(attempt)))
    return digest(b"nanovm/effect/v1\0", parts.encode())


def judged_call(now: Snapshot) -> tuple[str, Args]:
    """The judged call; FSM-004 without one."""
    if now.call is None:
        raise RefusedError("FSM-004", "There is no authorized call at this point of the run.")
    return now.call


def needed(program: Program, now: Snapshot, step: Step, granted: str, args: Args) -> Counts:
    """What to freeze; another attempt keeps what the first one froze."""
    if now.reserved:
        return {}
    tokens = {"tokens": step.tokens_max} if step.kind == MODEL else {}
    return {**tokens, **program.gate.need(granted, args)} if granted else tokens


def owe(
    before: Snapshot,
    now: Snapshot,
    owed: Effect,
    step: Step,
    cause: Cause,
    budgets: Reservations,
    authority: Mapping[str, object] = NOTHING,
) -> Decision:
    """Seal the intent and hand the effect out."""
    deadline_ms = cause.at_ms + step.timeout_ms
    refused = now.refused if now.step == owed.step else 0
    after = now._replace(
        step=owed.step,
        attempt=owed.attempt,
        refused=refused,
        owed=owed,
        deadline_ms=deadline_ms,
        begun=now.begun + 1,
    )
    body = {
        "step": owed.step,
        "state": moves.between(before.state, cause, after.state),
        "tool": owed.tool,
        "idempotency_key": owed.key,
        "in": owed.args,
        **authority,
    }
    return Decision(after, (moves.draft("intent", cause, after, body),), (owed,), budgets)


def authority(rules: tuple[str, ...], taken: Reservations, owed: Effect) -> Mapping[str, object]:
    """The decision, warrant and own reservation that a granted call is sealed with.

    ``transition`` adds what it reserves in shared accounts.
    """
    reserved = {name: amount for name, amount, _ in taken if name.startswith(OWN)}
    return {
        "decision": moves.verdict("ACCEPTED", *rules),
        "budget": MappingProxyType({"reserved": moves.frozen(reserved)}),
        **moves.issued(owed),
    }


def warranted(program: Program, now: Snapshot, owed: Effect, cause: Cause) -> Effect:
    """The effect under a new warrant for exactly this call, no longer than its grant."""
    bound = binding(now.run, program.hash, owed)
    ttl_ms = program.limits.warrant_ttl_ms
    grant = program.grants.get(owed.tool)
    expires_ms = grant.expires_ms if grant else cause.at_ms  # taken away: for a late answer only
    if expires_ms:
        ttl_ms = min(ttl_ms, expires_ms - cause.at_ms)
    return owed._replace(warrant=mint(bound, at_ms=cause.at_ms, ttl_ms=ttl_ms))
