"""Agents as people and rules deal with them: each command is one commit, sealed in the log."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

from engine.clock import now_ms
from engine.models import Workspace
from engine.runtime import agent_moves
from engine.runtime.group_commit import Job, committed
from engine.runtime.ledgers import Ledgers
from engine.runtime.transaction import UnitOfWork
from engine.store import sql
from nanovm_core.agents import NAME, NOT_NOW, RESERVED, Agent, AgentEvent, Moved
from nanovm_core.errors import RefusedError
from nanovm_core.ledger.value import Ledger

T = TypeVar("T")


def suspend(log: UUID, name: str, *, by: str, why: str = "") -> Moved:
    """Suspend an agent: it begins no effect after this commit. What is under way is answered.

    As the other commands, it answers with AGT-001 where the agent's state forbids it; that is
    sealed too.

    Raises:
        RefusedError: AGT-003, the log has no such agent; LOG-009, a restore closed the log.
    """
    return _asked(log, name, "Suspended", by, why)


def resume(log: UUID, name: str, *, by: str) -> Moved:
    """Let a suspended agent go on, and the runs that it paused. Errors as for ``suspend``.

    One that used up a budget needs a higher limit first.
    """
    return _asked(log, name, "Resumed", by)


def kill(log: UUID, name: str, *, by: str, why: str = "") -> Moved:
    """Stop an agent for good, and end the runs that wait for it. Errors as for ``suspend``.

    A payment under way is not ended: its run waits until the agent is declared again.
    """
    return _asked(log, name, "Killed", by, why)


def declare(log: UUID, name: str, *, by: str) -> Moved:
    """Let an agent begin: a new one, or a terminated one as its next incarnation.

    Raises:
        RefusedError: AGT-002, the log has too many agents, or this is no agent's name; LOG-009.
    """
    if not NAME.fullmatch(name) or name in RESERVED:
        raise RefusedError("AGT-002", f"{name!r} is no agent's name: {NAME.pattern}")
    return _within(log, partial(_declared, name=name, by=by))


def acknowledge(log: UUID, alert_id: str, *, by: str) -> None:
    """Close an alert about the log itself; an agent's is closed by what is done to the agent.

    Raises:
        RefusedError: AGT-003, there is no such alert; LOG-009.
    """
    _within(log, partial(agent_moves.acknowledged, alert=alert_id, by=by))


def read(log: UUID) -> Ledger:
    """The ledger of a log, held to what the log seals."""
    return _within(log, lambda ledgers, found: ledgers.of(found))


def _asked(log: UUID, name: str, event: str, by: str, why: str = "") -> Moved:
    asked = AgentEvent(event, by, now_ms(), text=why)
    return _within(log, partial(_moved, name=name, event=asked))


def _moved(ledgers: Ledgers, log: Workspace, *, name: str, event: AgentEvent) -> Moved:
    now = ledgers.of(log)
    agent = now.agents.get(name, Agent())
    limit = now.limit(agent.account) or 0
    return agent_moves.moved(ledgers, log, name, event._replace(raised=limit > agent.limit))


def _declared(ledgers: Ledgers, log: Workspace, *, name: str, by: str) -> Moved:
    if name not in ledgers.of(log).agents:
        agent_moves.declare(ledgers, log, [name])
        return Moved(ledgers.of(log).agents[name])
    found = agent_moves.moved(ledgers, log, name, AgentEvent("Declared", by, now_ms()))
    if found.code == NOT_NOW:
        return found
    return agent_moves.begin(ledgers, log, name, by, found.agent)


def _within(log: UUID, work: Callable[[Ledgers, Workspace], T]) -> T:
    """Do something to a log in a commit, under its lock."""

    def on_log(commit: UnitOfWork) -> T:
        return work(commit.ledgers, commit.logs[sql.name(log)])

    return committed(Job(on_log, logs=(log,)))
