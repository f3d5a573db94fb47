"""Agents as people deal with them: each command is one commit, sealed in the log."""

from collections.abc import Callable, Mapping
from typing import TypeVar
from uuid import UUID

from engine.clock import now_ms
from engine.models import Run
from engine.runtime import api
from engine.runtime.agent_moves import RUNTIME, Agents, halted_error
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit
from engine.store import ledgers, programs, run_rows, sql
from nanovm_core.agents import RUNNING, TERMINATED, Agent, AgentEvent, Moved, halted
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.fsm.advance import actor
from nanovm_core.core.messages import NOTHING
from nanovm_core.errors import RefusedError, VerificationError
from nanovm_core.ledger.value import Alert, Ledger

T = TypeVar("T")
RUNS_MAX = 100  # that are looked at in one sweep
KNOWN_MAX = 1_024
NOBODY = UUID(int=0)
_LOOKED: list[UUID] = [NOBODY]  # the last run that a sweep looked at
_REFUSED: dict[UUID, Agent] = {}  # by run: its agent as it was then


def suspend(log: UUID, name: str, *, by: str, why: str = "") -> Moved:
    """Suspend an agent: it begins no effect after this commit. What is under way is answered.

    As the other commands, it answers with AGT-001 where the agent's state forbids it, sealed too.

    Raises:
        RefusedError: AGT-001, the house log's agents are processes; AGT-003, the log has no such
            agent; LOG-009, a restore closed the log.
    """
    return _asked(log, name, AgentEvent("Suspended", by, now_ms(), text=why))


def resume(log: UUID, name: str, *, by: str) -> Moved:
    """Let a suspended agent go on, and its runs; one that used up a budget: after a higher limit.

    Errors as for ``suspend``.
    """
    return _asked(log, name, AgentEvent("Resumed", by, now_ms()))


def kill(log: UUID, name: str, *, by: str, why: str = "") -> Moved:
    """Stop an agent for good, and end the runs that wait for it. Errors as for ``suspend``.

    A payment under way is not ended: its run waits until the agent is declared again.
    """
    return _asked(log, name, AgentEvent("Killed", by, now_ms(), text=why))


def declare(
    log: UUID, name: str, *, by: str, key: str = "", given: Mapping[str, object] = NOTHING
) -> Moved:
    """Let an agent begin: a new one, or a terminated one as its next incarnation.

    ``key``: what it is known by from now on, as the ledger keeps it; one that runs keeps its own
    (AGT-001). ``given``: what its chain says that it may do.

    Raises:
        RefusedError: AGT-002, the log has too many agents, or this is no agent's name; AGT-001,
            LOG-009 as for ``suspend``.
    """

    def declared(found: Agents) -> Moved:
        if name not in found.ledgers.of(found.log).agents:
            found.declare([name], by, given, key)
            return Moved(found.ledgers.of(found.log).agents[name])
        again = found.moved(name, AgentEvent("Declared", by, now_ms(), key=key))
        return again if again.code else found.begin(name, by, again.agent, given)

    return _commanded(log, declared)


def acknowledge(log: UUID, alert_id: str, *, by: str) -> None:
    """Close an alert about the log itself, as ``Agents.acknowledge``; RefusedError too: LOG-009."""
    _within(log, lambda found: found.acknowledge(alert_id, by))


def told(log: UUID, alert_id: str, alert: Alert) -> None:
    """Keep that the operator's receiver took this alert; another one under its id stays untold."""
    _within(log, lambda found: found.told(alert_id, alert))


def read(log: UUID) -> Ledger:
    """The ledger of a log, held to what the log seals; agents whose time is over are suspended."""

    def now(found: Agents) -> Ledger:
        found.halted(now_ms())
        return found.ledgers.of(found.log)

    return _within(log, now)


def require_running(log: UUID, name: str) -> None:
    """Return if an agent may begin effects, by the log's ledger now; else RefusedError CAP-040."""
    state = halted(read(log).agents).get(name)
    if state is not None:
        raise halted_error(name, state)


def _asked(log: UUID, name: str, event: AgentEvent) -> Moved:
    return _commanded(log, lambda found: found.moved(name, event))


def _commanded(log: UUID, work: Callable[[Agents], Moved]) -> Moved:
    if ledgers.is_of_house(log):
        text = "The house log's agents follow the processes: end or start nanovm instead."
        raise RefusedError("AGT-001", text)
    moved = _within(log, work)
    go_on(log)
    return moved


def _within(log: UUID, work: Callable[[Agents], T]) -> T:
    """Do something to the agents of a log in a commit, under its lock."""

    def on_log(commit: Commit) -> T:
        return work(Agents(commit.ledgers, commit.logs[sql.name(log)]))

    return committed(Job(on_log, logs=(log,)))


# --- the runs that wait for an agent ---------------------------------------------------------


def go_on(log: UUID | None = None) -> None:
    """Let runs go on whose agent runs again, and end those whose agent was stopped for good.

    Of one log, or of all: RUNS_MAX of those that wait for an agent, and the next ones at the next
    call.
    """
    found = run_rows.waiting_for_agent(NOBODY if log else _LOOKED[-1], RUNS_MAX, log)
    if log is None:
        _LOOKED[:] = found[RUNS_MAX - 1 :] or [NOBODY]
    open_ones = Run.objects.filter(id__in=found, workspace__successor=None)
    for run in open_ones.select_related("workspace").order_by("id"):
        try:
            _went_on(run)
        except (VerificationError, KeyError):  # its bytes were damaged: no other run waits for it
            api.check(run.name)


def _went_on(run: Run) -> None:
    """Ask the kernel about a run that waits; the ledger is only looked at here, and checked there.

    A run whose agent nobody declared goes on, as it would without any agents; one that a person
    steps through takes the step that was asked for, and no more.
    """
    now, ledger = decode_snapshot(bytes(run.snapshot)), ledgers.stored(run.workspace)
    program = programs.program_of(run)
    name = actor(program, now, program.steps[now.step])
    agent = ledger.agents.get(name, Agent(RUNNING)) if ledger else Agent()
    going = api.step if now.stepping else api.resume
    asked = {RUNNING: going, **dict.fromkeys(TERMINATED, api.kill)}.get(agent.state)
    if asked is None or _REFUSED.get(run.id) == agent:
        return
    if asked(run.name, RUNTIME).refusal is not None:
        if len(_REFUSED) >= KNOWN_MAX:
            _REFUSED.clear()
        _REFUSED[run.id] = agent
