"""Agents: who acts in the runs of a log, in which state, and what may be done about it.

An agent is a name that steps bear and a state that the log's ledger keeps. It is no run: it has
no steps and no end of its own, and its chain in the log, ``agent:<name>``, has one envelope for
each move. Only a running agent begins effects. What its process does meanwhile (active, idle or
waiting) is not stored: it follows from its runs.

``TABLE`` is all there is. A pair that it does not have changes nothing; it is refused by AGT-001,
as a value and never as an exception, because a command that comes too late is no fault.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from nanovm_core.core.authority.budget import CLOCK, name_of
from nanovm_core.core.canonical import Json
from nanovm_core.core.lifecycle import (
    COMPLETED,
    EXHAUSTED,
    FAILED,
    KILLED,
    NEGOTIATION,
    PAUSED,
    READY,
)
from nanovm_core.core.messages import BY_RULE as BY_RULE
from nanovm_core.core.messages import Counts, Suspension
from nanovm_core.errors import VerificationError

AGENTS_MAX: Final = 64  # of one log
NAME: Final = re.compile("[a-z][a-z0-9-]{0,29}")
# Who else is named as the actor of an envelope.
RESERVED: Final = frozenset({"log", "model", "operator", "queue", "runtime", "visitor"})
CHAIN: Final = "agent:"  # before its name: the owner of its chain in a log
RUNNING = "running"
SUSPENDED: Final = (PAUSED, BY_RULE, EXHAUSTED)
TERMINATED: Final = (COMPLETED, FAILED, KILLED)
_TIGHTNESS: Final = ("running", "initializing", "suspended", "terminated")
STATES: Final = (NEGOTIATION, READY, RUNNING, *SUSPENDED, *TERMINATED)
NOT_NOW: Final = "AGT-001"
CLOCK_OVER: Final = "BUD-005"

# (state, event) → the states it may lead to: a suspension by a rule is another one than a person's.
TABLE: Final[Mapping[tuple[str, str], tuple[str, ...]]] = MappingProxyType(
    {
        (NEGOTIATION, "CapabilitiesGranted"): (READY,),
        (READY, "Started"): (RUNNING,),
        (RUNNING, "Suspended"): (PAUSED, BY_RULE),
        (RUNNING, "BudgetExceeded"): (EXHAUSTED,),
        (RUNNING, "Completed"): (COMPLETED,),
        (RUNNING, "Failed"): (FAILED,),
        (RUNNING, "Killed"): (KILLED,),
        **{(state, "Resumed"): (RUNNING,) for state in SUSPENDED},
        **{(state, "Killed"): (KILLED,) for state in SUSPENDED},
        **{(state, "Declared"): (NEGOTIATION,) for state in TERMINATED},
    }
)
EVENTS: Final = frozenset(event for _, event in TABLE)


class Agent(NamedTuple):
    """The state of an agent. Times are UTC milliseconds.

    ``code``: of the rule that decided its last move; empty where a person did. ``by``: who.
    ``until_ms``: of the format, 0. ``key``: a hash of the token or the public key that it is known
    by. ``account``: the account that it used up, and the ``limit`` that this had then; empty and 0
    without one.
    """

    state: str = NEGOTIATION
    code: str = ""
    text: str = ""
    by: str = ""
    since_ms: int = 0
    until_ms: int = 0
    incarnation: int = 1
    key: str = ""
    account: str = ""
    limit: int = 0


class AgentEvent(NamedTuple):
    """What is asked of an agent, or happened to it: one of ``EVENTS``.

    ``code``: of the rule that asks; empty for a person. ``account``, ``limit``: what was used up.
    ``raised``: whether that limit was raised since.
    """

    name: str
    by: str
    at_ms: int
    code: str = ""
    text: str = ""
    key: str = ""
    account: str = ""
    limit: int = 0
    raised: bool = False


class Moved(NamedTuple):
    """The agent after an event. ``code``: AGT-001 where the event does not fit its state."""

    agent: Agent
    code: str = ""


def move(agent: Agent, event: AgentEvent) -> Moved:
    """What an event makes of an agent; the same agent, and AGT-001, where it may not happen.

    A suspension for a used-up budget ends only once a limit was raised; one for its wall clock,
    which begins anew then, whenever a person resumes it. A terminated agent is declared again by a
    person: then it is another incarnation.
    """
    targets = TABLE.get((agent.state, event.name), ())
    waits = agent.state == EXHAUSTED and not agent.account.startswith(CLOCK)
    early = waits and event.name == "Resumed" and not event.raised
    if not targets or early:
        return Moved(agent, NOT_NOW)
    moved = agent._replace(
        state=targets[-1] if event.code else targets[0],
        code=event.code,
        text=event.text,
        by=event.by,
        since_ms=max(event.at_ms, agent.since_ms),
        account=event.account,
        limit=event.limit,
    )
    if event.name == "Declared":
        moved = moved._replace(incarnation=agent.incarnation + 1, key=event.key)
    return Moved(moved)


def over_time(agents: Mapping[str, Agent], limits: Counts, at_ms: int) -> tuple[Suspension, ...]:
    """A command for each running agent whose wall clock is over: it began ``limits`` ms before.

    It began when it was started, or resumed by a person; ``limits``: as in a ledger.
    """
    found = []
    for name, each in agents.items():
        most_ms = limits.get(name_of(CLOCK, name))
        if most_ms is not None and each.state == RUNNING and at_ms - each.since_ms >= most_ms:
            text = f"The agent {name} has run for {most_ms} ms, as long as its budget lets it."
            found.append(Suspension(name, CLOCK_OVER, text, CLOCK))
    return tuple(found)


def halted(agents: Mapping[str, Agent]) -> Mapping[str, str]:
    """The agents that begin no effect, each with the state that it is in."""
    return MappingProxyType({n: each.state for n, each in agents.items() if each.state != RUNNING})


def tighter(one: Agent, other: Agent) -> Agent:
    """Of two, neither known to be the true one, that which may do less; ``one`` if both may."""
    return max(one, other, key=lambda each: _TIGHTNESS.index(each.state.partition(".")[0]))


def json_of(agent: Agent) -> dict[str, Json]:
    """The agent as the ledger holds it."""
    return agent._asdict()


def agent_of(value: object) -> Agent:
    """The agent that ``json_of`` wrote.

    Raises:
        VerificationError: LOG-011, it is none.
    """
    fields = value if isinstance(value, Mapping) else {}
    types = {key: type(each) for key, each in Agent()._asdict().items()}
    if {key: type(each) for key, each in fields.items()} == types:
        found = Agent(**fields)
        if found.state in STATES and found.incarnation >= 1:
            return found
    raise VerificationError("LOG-011", "The stored value is no agent.", at=-1)
