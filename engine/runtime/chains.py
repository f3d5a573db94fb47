"""What a log records that is no run's: sealed in a commit, on the chain of its owner."""

from collections.abc import Collection, Mapping
from uuid import UUID

from django.db import transaction

from engine.application import main
from engine.clock import now_ms
from engine.entropy import uuid7
from engine.models import Workspace
from engine.runtime.agent_moves import Agents
from engine.runtime.group_commit import Job, committed
from engine.runtime.ledgers import Ledgers, limits_set
from engine.runtime.transaction import Commit
from engine.store import logs, programs, sql
from nanovm_core.core.envelope import LOG_RUN, ZERO
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.core.program import Program
from nanovm_core.ledger.value import Ledger

OBSERVATION = "observation"  # what a comparison with the outside found


def seal(
    log: UUID, kind: str, body: Mapping[str, object], *, actor: str, owner: str = LOG_RUN
) -> int:
    """Seal an envelope in a log, in a commit of its own or the caller's; its ``n``.

    ``owner``: whose chain it continues: the log's own, or that of ``agent:<name>``.

    Raises:
        RefusedError: LOG-009, where a restore closed the log.
    """

    def sealing(commit: Commit) -> int:
        return commit.seal(commit.logs[sql.name(log)], kind, body, actor=actor, owner=owner)

    return committed(Job(sealing, logs=(log,)))


def create(given: Mapping[str, object] | None = None) -> Workspace:
    """Make a workspace: an empty log whose first envelope is its own genesis.

    ``given``: what the genesis says besides of where this log comes from.
    """
    program = programs.current(main())
    workspace_id, at_ms = uuid7(), now_ms()
    origin = f"{logs.ORIGIN_HOST}/{workspace_id.hex[-12:]}"
    with transaction.atomic():
        Workspace.objects.create(id=workspace_id, origin=origin, log_head=ZERO, created_ms=at_ms)
        body: dict[str, object] = {
            "program": program.hash,
            "policy": program.policy.hash,
            "capabilities": capabilities_hash(program),
        }
        if limits := limits_set(program, program.agent, Ledger()):
            body["limits"] = limits
        body |= {"in": dict(given)} if given else {}
        seal(workspace_id, "genesis", body, actor="runtime")
    return Workspace.objects.get(id=workspace_id)


def declare(ledgers: Ledgers, log: Workspace, program: Program) -> None:
    """Let the agents of a program begin that its log has not had yet. Errors as elsewhere.

    Raises:
        RefusedError: AGT-002, they would be too many for one log.
    """
    named = {program.agent, *(tool.agent for tool in program.tools.values() if tool.agent)}
    if not named <= ledgers.of(log).agents.keys():
        granted = {"in": {"capabilities": capabilities_hash(program)}}
        Agents(ledgers, log).declare(named, given=granted)


def revoke(log: UUID, tool: str, grant: str, *, actor: str) -> None:
    """Seal that a grant is revoked."""
    body = {"tool": tool, "outcome": "revoked", "in": {"grant": grant}}
    seal(log, "capability", body, actor=actor)


def house() -> UUID:
    """The open house log, made where it is not there yet."""
    return committed(Job(lambda commit: commit.ledgers.house().id))


def observe(
    log: UUID,
    body: Mapping[str, object],
    *,
    actor: str,
    agent: str = "",
    opens: str = "",
    closes: Collection[str] = (),
) -> int:
    """Seal an observation on a log's own chain; its ``n``. All of it is one commit.

    Args:
        log: an open log.
        body: what was observed; its ``rule`` is that of the alert.
        actor: who observed it.
        agent: whom it concerns; empty for the log itself.
        opens: why the agent is suspended, and an alert opened; empty for neither.
        closes: the rules whose alert is closed, unless the agent is suspended: a person resumes it.

    Raises:
        RefusedError: LOG-009, where a restore closed the log.
    """

    def sealing(commit: Commit) -> int:
        row = commit.logs[sql.name(log)]
        n = commit.seal(row, OBSERVATION, body, actor=actor)
        if opens:
            Agents(commit.ledgers, row).differ(agent, str(body["rule"]), opens)
        elif closes:
            Agents(commit.ledgers, row).agree(agent, closes, actor)
        return n

    return committed(Job(sealing, logs=(log,)))
