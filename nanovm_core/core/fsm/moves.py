"""The parts of every transition: drafts, states with their effects, settling, ending."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority import budget
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from nanovm_core.core.events import Context
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import (
    NOTHING,
    Commitment,
    Counts,
    Decision,
    Draft,
    Effect,
    Reservations,
    Scalar,
    Slots,
    Snapshot,
    Suspension,
)
from nanovm_core.errors import RefusedError

Fields = dict[str, Any]


class Cause(NamedTuple):
    """The cause of a transition: the event's name, its context and its time."""

    event: str
    context: Context
    at_ms: int


def frozen(slots: Mapping[str, Scalar]) -> Slots:
    """An immutable copy of the slots."""
    return MappingProxyType(dict(slots))


def listed(secrets: tuple[Commitment, ...]) -> tuple[Mapping[str, str], ...]:
    """Commitments as an envelope holds them."""
    return tuple([MappingProxyType(each._asdict()) for each in secrets]) if secrets else ()


def verdict(word: str, *rules: str) -> Mapping[str, object]:
    """The ``decision`` field of an envelope."""
    return MappingProxyType({"verdict": word, "rules": rules})


def expect(now: Snapshot, cause: Cause) -> None:
    """Return if the table allows this event in the run's state (FSM-002)."""
    if (now.state, cause.event) not in life.TABLE:
        raise RefusedError("FSM-002", f"{cause.event} is not allowed in the state {now.state}.")


def expect_program(now: Snapshot, named: str) -> None:
    """Return if a message names the run's own program (PRG-010)."""
    if named != now.program:
        raise RefusedError("PRG-010", "The message names another program than the run's own.")


def moved(now: Snapshot, cause: Cause, to: str, **fields: object) -> dict[str, object]:
    """The ``step`` and ``state`` fields of an envelope, and these."""
    return {"step": now.step, "state": between(now.state, cause, to), **fields}


def between(left: str, cause: Cause, to: str) -> Mapping[str, str]:
    """The ``state`` field of an envelope."""
    return MappingProxyType({"from": left, "event": cause.event, "to": to})


def draft(kind: str, cause: Cause, after: Snapshot, body: dict[str, Any]) -> Draft:
    """A draft at the context's time, in its actor's name; it owns ``body``, and adds who decided.

    Values in ``body`` must be frozen: tests check every draft.
    """
    decision, rule = body.get("decision"), body.get("rule")
    rules = (decision and decision["rules"]) or (rule and (rule,))
    body["decided_by"] = f"rule {', '.join(rules)}" if rules else "table"
    return Draft(kind, cause.at_ms, cause.context.actor, after, MappingProxyType(body))


def join(first: Draft, then: Decision, budgets: Reservations = ()) -> Decision:
    """A decision with one more draft before its own; the last draft seals its snapshot."""
    if not then.drafts:
        first = first._replace(after=then.snapshot)
    drafts, paid = (first, *then.drafts), (*budgets, *then.budgets)
    return Decision(then.snapshot, drafts, then.effects, paid, *then[4:])


def from_where_it_stood(now: Snapshot, decision: Decision) -> Decision:
    """The decision, its first draft starting at the state before the event."""
    first = decision.drafts[0] if decision.drafts else None
    state: Any = first.body.get("state") if first is not None else None
    if first is None or state is None or state["from"] == now.state:
        return decision
    body = MappingProxyType({**first.body, "state": MappingProxyType({**state, "from": now.state})})
    return decision._replace(drafts=(first._replace(body=body), *decision.drafts[1:]))


def facts(now: Snapshot, cause: Cause) -> Facts:
    context = cause.context
    found = (now.slots, context.ledger, now.used, context.counts, now.agent, cause.at_ms)
    return Facts(*found, now.approved, context.revoked, now.refused, now.started_ms, now.origins)


def issued(owed: Effect) -> dict[str, object]:
    """The ``warrant`` field of an envelope."""
    if owed.warrant is None:
        return {}
    return {"warrant": MappingProxyType(owed.warrant._asdict())}


def suspend(
    now: Snapshot, cause: Cause, to: str, code: str, text: str, *rules: str, account: str = ""
) -> Decision:
    """Suspend the run, with the reason, and the rules that hold it or suspend its agent.

    ``account``: the one that is used up; where it is its agent's own, the agent is suspended too.
    """
    is_held = to == life.APPROVAL
    after = to_state(now, cause, to, held_by=rules[0] if is_held else "", reason=(code, text))
    body = moved(now, cause, to, rule=code, outcome=to.partition(".")[2])
    if rules:
        body["decision"] = verdict("HELD" if is_held else "SUSPENDED", *rules)
    is_own = account.startswith(f"{budget.AGENT}/")
    commands = (Suspension(now.agent, code, text, account),) if is_own else ()
    return Decision(after, (draft("suspended", cause, after, body),), commands=commands)


def end(now: Snapshot, cause: Cause, to: str, code: str, text: str) -> Decision:
    """End the run and release reservations, unless it is unknown whether they were spent."""
    given_back = () if now.held_by == UNKNOWN_OUTCOME else release(now)[1]
    after = to_state(now, cause, to, held_by="", reason=(code, text) if code else None)
    body = moved(now, cause, to, rule=code, outcome=to.partition(".")[2])
    return Decision(after, (draft("terminal", cause, after, body),), (), given_back)


def release(now: Snapshot) -> tuple[Snapshot, Reservations]:
    """The snapshot with nothing frozen, and what the shared accounts get back."""
    return _settled(now, budget.release(now.reserved))


def settle(now: Snapshot, actual: Counts = NOTHING) -> tuple[Snapshot, Reservations]:
    """The snapshot with what was frozen spent: ``actual`` of a unit, where known."""
    return _settled(now, budget.settle(now.reserved, actual)) if now.reserved else (now, ())


def _settled(now: Snapshot, changes: Reservations) -> tuple[Snapshot, Reservations]:
    if not changes:
        return now, ()
    after = now._replace(reserved=(), used=budget.own_use(now.used, changes))
    return after, tuple(each for each in changes if not each.account.startswith(budget.OWN))


def to_state(now: Snapshot, cause: Cause, to: str, **changes: Any) -> Snapshot:
    """The snapshot in state ``to``, with the exit and entry effects of the lifecycle.

    ``changes``: further fields to change.
    """
    left, entered = life.GROUP[now.state], life.GROUP[to]
    if left != entered:
        for name in (*life.EXIT.get(left, ()), *life.ENTRY.get(entered, ())):
            changes |= STATE_EFFECTS[name](now, cause)
    return now._replace(state=to, **changes)


# Entry and exit effects: the fields that each changes; of two changes of one, the later counts.


def _go_on_with_clock(now: Snapshot, cause: Cause) -> Fields:
    """A suspension counts neither for the run's limit nor for a deadline."""
    lost_ms = max(0, cause.at_ms - now.suspended_ms)
    deadline_ms = now.deadline_ms + lost_ms if now.deadline_ms else 0
    started_ms = now.started_ms + lost_ms
    return {"suspended_ms": 0, "started_ms": started_ms, "deadline_ms": deadline_ms}


def _drop_warrant(now: Snapshot, _: Cause) -> Fields:
    """What was authorized before a suspension must be authorized anew after it."""
    if now.owed is None or now.owed.warrant is None:
        return {}
    return {"owed": now.owed._replace(warrant=None)}


def _release_budgets(now: Snapshot, _: Cause) -> Fields:
    after = now if now.held_by == UNKNOWN_OUTCOME else release(now)[0]
    return {"reserved": (), "used": after.used}


STATE_EFFECTS: Mapping[str, Callable[[Snapshot, Cause], Fields]] = MappingProxyType(
    {
        "start_clock": lambda _, cause: {"started_ms": cause.at_ms},
        "stop_clock": lambda _, cause: {"suspended_ms": cause.at_ms},
        "go_on_with_clock": _go_on_with_clock,
        "drop_warrant": _drop_warrant,
        "revoke_authority": lambda _, __: {"owed": None, "awaits": "", "deadline_ms": 0},
        "release_budgets": _release_budgets,
    }
)
