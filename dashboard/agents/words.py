"""An agent in words: what it does, the tools that it may use, and what its budgets have left."""

from collections.abc import Iterator
from typing import NamedTuple

from dashboard.templatetags.show import length
from engine.clock import now_ms
from engine.queries.agents import AgentView
from nanovm_core import agents
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.budget import AGENT, ANY, COUNTED, WALL, WORKSPACE
from nanovm_core.core.program import Program
from nanovm_core.ledger.value import Ledger
from reader.currencies import shown as amount

CHARS_MAX = 200  # of a reason that a person gives
# A state as a chip: its word and its tone; and the command that is offered in it.
CHIPS = {
    life.ACTIVE: ("active", "ok", "suspend"),
    life.WAITING: ("waiting", "info", "suspend"),
    life.IDLE: ("idle", "", "suspend"),
    life.PAUSED: ("suspended by a person", "warn", "resume"),
    agents.BY_RULE: ("suspended by a rule", "warn", "resume"),
    life.EXHAUSTED: ("budget used up", "warn", "resume"),
    life.COMPLETED: ("completed", "", "declare"),
    life.FAILED: ("failed", "failed", "declare"),
    life.KILLED: ("killed", "failed", "declare"),
}
STARTING = ("starting", "", "")


class ShownAgent(NamedTuple):
    """An agent with the word for its state. ``command``: what a button does that is offered."""

    view: AgentView
    word: str
    tone: str
    command: str  # empty while it is started

    @property
    def press(self) -> str:
        """The button's word."""
        return {"declare": "Declare again"}.get(self.command, self.command.capitalize())

    @property
    def kills(self) -> bool:
        """Whether it may be killed."""
        return self.command in ("suspend", "resume")


class BudgetLine(NamedTuple):
    """A limit in force. ``whose``: this agent's alone, or that of all agents of the workspace.

    ``left`` is empty for the currencies that are not used yet, and the clock of who does not run.
    """

    account: str
    whose: str
    unit: str
    limit: str
    left: str


def shown(view: AgentView) -> ShownAgent:
    """The agent as a page shows it."""
    return ShownAgent(view, *CHIPS.get(view.state, STARTING))


def tools_of(program: Program, name: str) -> tuple[tuple[str, bool], ...]:
    """The tools that an agent uses under a program, and whether each call needs its grant."""
    called = {step.tool for step in program.steps.values()} | {*program.grants}
    mine = [tool for tool in program.tools if program.acting(tool, program.agent) == name]
    return tuple((tool, tool in program.grants) for tool in mine if tool in called)


def budgets_of(ledger: Ledger, name: str) -> Iterator[BudgetLine]:
    """The limits in force for an agent, and what is left of each."""
    for account in sorted({*ledger.limits, *ledger.accounts}):
        scope, _, rest = account.partition("/")
        unit, _, owner = rest.partition("@")
        limit = ledger.limit(account)
        if limit is None or (scope, owner) not in ((AGENT, name), (WORKSPACE, "")):
            continue
        whose = "this agent" if scope == AGENT else "all agents together"
        left = limit - ledger.used(account)
        if unit == ANY:
            said = f"{limit:,} in cents, or its smallest unit"
            yield BudgetLine(account, whose, "any other currency", said, "")
        elif unit == WALL:
            agent = ledger.agents.get(name, agents.Agent())
            rest = f"{length(agent.since_ms + limit - now_ms())} of"
            runs = agent.state == agents.RUNNING
            most = f"{length(limit)} left" if runs else length(limit)
            yield BudgetLine(account, whose, "running time", most, rest if runs else "")
        else:
            both = [f"{n:,}" if unit in COUNTED else amount(n, unit) for n in (limit, abs(left))]
            most = both[0] if left < 0 else f"{both[0]} left"
            said = f"overdrawn by {both[1]}, limit" if left < 0 else f"{both[1]} of"
            yield BudgetLine(account, whose, unit, most, said)
