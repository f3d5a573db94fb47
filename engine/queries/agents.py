"""What pages show of a log's agents: read without a lock, and held to nothing."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import QuerySet

from engine.models import Envelope, Run, Workspace
from engine.queries.log import EventRow, LogEntry, entry_of
from engine.queries.runs import body_of, label_of
from engine.store import ledgers, programs, run_rows, sql
from nanovm_core.agents import CHAIN, RUNNING, SUSPENDED, TERMINATED, Agent
from nanovm_core.core import lifecycle as life
from nanovm_core.core.program import Program
from nanovm_core.ledger.value import Alert, Ledger

SHOWN_MAX = 20  # runs of an agent, and events of its chain
FAILED_MAX = 3  # that are shown of what failed before an agent was suspended
_OPEN = (
    "SELECT code, program_hash, step, state, CASE WHEN state = %s AND {} THEN 1 ELSE 0 END,"
    " snapshot FROM pipeline_run WHERE workspace_id = %s AND ended_ms IS NULL"
    " ORDER BY created_ms DESC"
)


class OpenRun(NamedTuple):
    """A run that has not ended. ``stopped``: it is paused because its agent does not run."""

    code: str
    step: str
    state: str
    stopped: bool

    @property
    def label(self) -> str:
        return label_of(self.state)


class AgentView(NamedTuple):
    """An agent and its open runs, newest first: those at a step whose tool it uses."""

    name: str
    agent: Agent
    runs: Sequence[OpenRun] = ()

    @property
    def is_foreign(self) -> bool:
        """Whether others wrote it: it is known by a token, and calls the gate."""
        return bool(self.agent.key)

    @property
    def doing(self) -> str:
        """active, waiting or idle: waiting where no run goes on, and one has begun."""
        begun = {each.state for each in self.runs if not each.state.startswith("initializing.")}
        return "active" if life.ACTIVE in begun else "waiting" if begun else "idle"

    @property
    def state(self) -> str:
        """Its state; of a running agent with what it does, as its runs say."""
        return f"{RUNNING}.{self.doing}" if self.agent.state == RUNNING else self.agent.state

    @property
    def stopped(self) -> int:
        """How many runs are paused with it."""
        return sum(each.stopped for each in self.runs)

    @property
    def listed(self) -> list[OpenRun]:
        """The newest open runs, those that are paused with it before those that go on."""
        return sorted(self.runs, key=lambda each: (not each.stopped, each.state))[:SHOWN_MAX]


class OpenAlert(NamedTuple):
    """An alert by its id. ``is_everyones``: it is of the house log, so about what all share."""

    id: str
    alert: Alert
    is_everyones: bool


def ledger_of(log: Workspace) -> Ledger:
    """The ledger of a log as it is stored; an empty one where it cannot be read."""
    return ledgers.stored(log) or Ledger()


def of_log(log: Workspace) -> tuple[AgentView, ...]:
    """The agents of a log by name, each with its open runs."""
    runs = _open_runs(log)
    known = sorted(ledger_of(log).agents.items())
    return tuple(AgentView(name, agent, runs.get(name, ())) for name, agent in known)


def alerts(log: Workspace | None) -> list[OpenAlert]:
    """The open alerts of a log and of the house log, newest first."""
    logs = ((log, False), (ledgers.house(), True))
    found = [
        OpenAlert(name, alert, is_everyones)
        for each, is_everyones in logs
        if each is not None
        for name, alert in ledger_of(each).alerts.items()
    ]
    return sorted(found, key=lambda each: -each.alert.at_ms)


def waiting(log: Workspace) -> tuple[list[AgentView], list[OpenAlert]]:
    """The suspended agents of a log, and its open alerts that are about none of them."""
    ledger = ledger_of(log)
    agents = sorted(ledger.agents.items())
    stopped = [AgentView(name, each) for name, each in agents if each.state in SUSPENDED]
    names = {each.name for each in stopped}
    own = (OpenAlert(name, alert, False) for name, alert in ledger.alerts.items())
    return stopped, [each for each in own if each.alert.agent not in names]


def events_of(log: Workspace, name: str) -> list[LogEntry]:
    """The newest events of an agent's chain, newest first."""
    return [entry_of(each) for each in _chain(log, name).order_by("-n")[:SHOWN_MAX]]


def failed_before(log: Workspace, seq: int) -> list[tuple[str, EventRow]]:
    """The newest failures before an event of a log, each with its run's code; newest first."""
    found = Envelope.objects.filter(workspace=log, kind="failed", seq__lt=seq).order_by("-seq")
    rows = [entry_of(each).row for each in found[:FAILED_MAX]]
    codes = {run.name: run.code for run in Run.objects.filter(id__in=[row.run for row in rows])}
    return [(codes[row.run], row) for row in rows if row.run in codes]


def event_bytes(log: Workspace, name: str, number: int) -> bytes | None:
    """The exact bytes of an event of an agent's chain, counted from 1."""
    found = _chain(log, name).filter(n=number - 1).first()
    return bytes(found.bytes) if found else None


def halting(run: Run) -> AgentView | None:
    """The agent with which a run is paused (CAP-040), while it does not run; else None."""
    if run.state != life.PAUSED or run_rows.FOR_AGENT not in bytes(run.snapshot):
        return None
    name = _acting(programs.shape_of(run), run.step, run.snapshot)
    found = ledger_of(run.workspace).agents.get(name)
    return AgentView(name, found) if found and found.state != RUNNING else None


def has_ended(run: Run, name: str) -> bool:
    """Whether the agent that asked for a call was killed since, or is another incarnation now."""
    known = ledger_of(run.workspace).agents.get(name, Agent())
    chain = _chain(run.workspace, name).order_by("-n") if known.incarnation > 1 else ()
    moves = (entry_of(each).row for each in chain)
    anew_ms = next((each.at_ms for each in moves if each.state_event == "Declared"), 0) or 0
    return known.state in TERMINATED or anew_ms > run.created_ms


def _chain(log: Workspace, name: str) -> "QuerySet[Envelope]":
    return Envelope.objects.filter(workspace=log, run=CHAIN + name)


def _open_runs(log: Workspace) -> Mapping[str, list[OpenRun]]:
    """The runs of a log that have not ended, by the agent at the step of each."""
    found: dict[str, list[OpenRun]] = {}
    shapes: dict[str, Program] = {}
    values = (life.PAUSED, run_rows.FOR_AGENT, sql.key(log.id))
    rows = sql.execute(_OPEN.format(run_rows.IS_FOR_AGENT), values)
    for code, program, step, state, stopped, snapshot in rows:
        if program not in shapes:
            shapes[program] = programs.shape_of(Run.objects.get(code=code))
        run = OpenRun(code, step, state, bool(stopped))
        found.setdefault(_acting(shapes[program], step, snapshot), []).append(run)
    return found


def _acting(program: Program, step: str, snapshot: bytes) -> str:
    """The agent at a step of a run: of its tool, or of the one tool that it may call."""
    own = program.agent
    if programs.is_gate(program):  # each call has an agent of its own
        own = str(body_of(snapshot).get("agent") or own)
    at = program.steps.get(step)
    calls = at is not None and (at.call or at.authorizes)
    tools = {tool for each in program.steps.values() for tool in each.accepts} if calls else ()
    users = {program.acting(tool, own) for tool in tools or (at.tool if at else "",)}
    return users.pop() if len(users) == 1 else own
