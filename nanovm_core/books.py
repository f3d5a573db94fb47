"""The books in memory: what runs share, for a runtime without a database and for dry verdicts."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nanovm_core.budget import account_limits, is_currency
from nanovm_core.messages import Recorded, Reservation, Snapshot
from nanovm_core.policy import RECORDS_MAX
from nanovm_core.program import Program

AGENT, GLOBAL = "agent/", "global/"


def currencies(program: Program, values: Iterable[object]) -> tuple[str, ...]:
    """The currencies that a run may be about: fixed ones of its tools, and those among values."""
    fixed = {tool.money.currency_is for tool in program.tools.values() if tool.money is not None}
    named = {each for each in values if isinstance(each, str) and is_currency(each)}
    return tuple(sorted((fixed | named) - {""}))


def values_of(now: Snapshot) -> tuple[object, ...]:
    """The values of a run that may name a currency: its slots', and its judged call's."""
    return (*now.slots.values(), *(now.call[1].values() if now.call else ()))


class Books:
    """Shared accounts and recorded calls of one workspace; nothing in them is anybody's own.

    They are for one thread. An account opens with the limit of program and policy.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], int] = {}
        self._calls: list[Recorded] = []
        self._revoked: set[str] = set()

    def ledger(self, program: Program, agent: str, values: Iterable[object]) -> Mapping[str, int]:
        """What each account that bears on the run has left."""
        budgets = (*program.budgets, *program.policy.budgets)
        limits = account_limits(budgets, currencies(program, values))
        return MappingProxyType(
            {name: self._left.setdefault(_row(name, agent), top) for name, top in limits.items()}
        )

    def settle(self, agent: str, changes: Iterable[Reservation]) -> None:
        """Book what a decision changed: what is neither frozen nor spent is left."""
        for change in changes:
            self._left[_row(change.account, agent)] -= change.reserved + change.spent

    def record(self, call: Recorded) -> None:
        """Remember a call, for windows of time."""
        self._calls = [*self._calls[-RECORDS_MAX + 1 :], call]

    def revoke(self, grant: str) -> None:
        """Take a grant back, by its id, from every run."""
        self._revoked.add(grant)

    @property
    def history(self) -> tuple[Recorded, ...]:
        """The newest calls, oldest first."""
        return tuple(self._calls)

    @property
    def revoked(self) -> frozenset[str]:
        """The ids of the grants that were taken back."""
        return frozenset(self._revoked)


def _row(account: str, agent: str) -> tuple[str, str]:
    """An agent's account is its own; the others are everybody's here."""
    return (agent if account.startswith(AGENT) else "", account)
