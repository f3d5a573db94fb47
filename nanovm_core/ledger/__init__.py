"""Shared accounts: the rules that every ledger keeps."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from nanovm_core.core.authority.budget import (
    AGENT,
    CLOCK,
    MONEY,
    WORKSPACE,
    Budget,
    account_limits,
    is_currency,
)
from nanovm_core.core.authority.capabilities import Constraint, Source, Tool
from nanovm_core.core.events import Event, ProposalReceived
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import read_proposal
from nanovm_core.errors import RefusedError

GLOBAL = "global"  # the owner of the accounts that all workspaces share


class Account(NamedTuple):
    """A shared account of a run: whose it is, and the limits that program and policy set."""

    owner: str
    limit: int
    hard: int | None = None  # the program's own limit, that no row and no policy widens

    def left(self, limit: int, used: int) -> int:
        """The effective limit minus what is reserved or spent."""
        return (limit if self.hard is None else min(limit, self.hard)) - used


def accounts(
    program: Program, workspace: str, agent: str, values: Iterable[object]
) -> Mapping[str, Account]:
    """The shared accounts that a run of this agent counts against, by name.

    ``values`` may name currencies: money accounts are opened for those.
    """
    own, more = program.budgets, program.policy.budgets
    asked = currencies(program, values) if any(each.unit == MONEY for each in own + more) else ()
    return _accounts(own, more, workspace, agent, asked)


@lru_cache(maxsize=1024)
def _accounts(
    own: tuple[Budget, ...],
    more: tuple[Budget, ...],
    workspace: str,
    agent: str,
    asked: tuple[str, ...],
) -> Mapping[str, Account]:
    hard, limits = account_limits(own, asked), account_limits((*own, *more), asked)
    found = {
        name: Account(owner_of(name, workspace, agent), limits[name], hard.get(name))
        for name in sorted(limits)
        if name != CLOCK
    }
    return MappingProxyType(found)


def owner_of(account: str, workspace: str, agent: str) -> str:
    """Whose an account is, by its scope: the run's workspace, its agent in it, or everybody's."""
    owners = {WORKSPACE: workspace, AGENT: f"{workspace}/{agent}"}
    return owners.get(account.partition("/")[0], GLOBAL)


# --- currencies ------------------------------------------------------------------------------


def currencies(program: Program, values: Iterable[object]) -> tuple[str, ...]:
    """The currencies a run may be about: those the program lays down, and those among values."""
    fixed = (each for tool in program.tools.values() for each in _laid_down(program, tool))
    found = {each for each in (*fixed, *values) if isinstance(each, str) and is_currency(each)}
    return tuple(sorted(found))


def values_of(now: Snapshot, event: Event) -> Iterator[object]:
    """What may name a currency: the run's slots, its judged call, and the call of a proposal."""
    yield from now.slots.values()
    yield from now.call[1].values() if now.call else ()
    if isinstance(event, ProposalReceived):
        try:
            yield from read_proposal(event.raw).args.values()
        except RefusedError:
            return  # it is no call, so it is about no money: the transition says so


def _laid_down(program: Program, tool: Tool) -> Iterator[object]:
    """The currencies that a tool, its schema or its grant fixes."""
    if tool.money is None:
        return
    name, grant = tool.money.currency, program.grants.get(tool.name)
    yield tool.money.currency_is
    yield tool.critical.get(name, Source()).constant
    yield from (tool.args[name].one_of or ()) if name else ()
    yield tool.args[name].default if name else ""
    yield from (grant.where.get(name, Constraint()).one_of or ()) if grant else ()
