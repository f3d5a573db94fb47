"""The shared accounts: what workspaces, agents and everybody together have left of each unit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

from django.db import connection

from nanovm_core import ledger as books
from nanovm_core.core.budget import MONEY, account_limits
from nanovm_core.core.budget import Budget as Named
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Reservation, Snapshot
from nanovm_core.core.program import Program
from pipeline.models import Budget, Workspace
from pipeline.store import sql

GLOBAL = "global"
GLOBAL_TURN = 0x676C6F62616C  # "global": the name of that lock on a PostgreSQL server
Owned = tuple[str, str]  # owner and account

_READ = (
    'SELECT owner, account, "limit", reserved + spent FROM pipeline_budget'
    " WHERE owner = %s AND account = %s"
)
_OPEN = (
    'INSERT INTO pipeline_budget (workspace_id, owner, account, "limit", reserved, spent)'
    " VALUES (%s, %s, %s, %s, 0, 0) ON CONFLICT (owner, account) DO NOTHING"
)
_BOOK = (
    "UPDATE pipeline_budget SET reserved = reserved + %s, spent = spent + %s"
    " WHERE owner = %s AND account = %s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Whose accounts a run counts against."""

    workspace: str
    agent: str

    def of(self, account: str) -> str:
        """The owner of an account, by its scope."""
        scope = account.partition("/")[0]
        if scope == "workspace":
            return self.workspace
        return f"{self.workspace}/{self.agent}" if scope == "agent" else GLOBAL


@dataclass(frozen=True, slots=True)
class Till:
    """The accounts of one commit: each is locked and read once, and booked at the end."""

    read: dict[Owned, tuple[int, int]] = field(default_factory=dict)  # limit, and used of it
    booked: dict[Owned, tuple[int, int]] = field(default_factory=dict)  # reserved, and spent

    def ledger(
        self, workspace: UUID, program: Program, snapshot: Snapshot, event: Event
    ) -> Mapping[str, int]:
        """What each account that bears on the run has left; its rows are locked, global last.

        An account is opened with the limit of program and policy; the row may be narrowed or
        widened later, the program's own maximum stays.
        """
        limits, hard = _limits_of(program, snapshot, event)
        owners = Owners(workspace=str(workspace), agent=snapshot.agent)
        left = {}
        for account in sorted(limits, key=_order):
            owned = (owners.of(account), account)
            if owned not in self.read:
                if owned[0] == GLOBAL:
                    self._take_turn()
                self.read[owned] = _opened(workspace, owned, limits[account])
            limit, used = self.read[owned]
            left[account] = min(limit, hard.get(account, limit)) - used
        return left

    def _take_turn(self) -> None:
        """Be the only one at the global accounts until the transaction's end.

        Those of a workspace are behind its log's lock. These are shared by transactions that
        decide several runs each, in whatever order: locked one by one they could wait in a circle.
        """
        if connection.vendor == "postgresql" and all(owner != GLOBAL for owner, _ in self.read):
            sql.execute("SELECT pg_advisory_xact_lock(%s)", (GLOBAL_TURN,))

    def settle(self, workspace: UUID, agent: str, changes: Iterable[Reservation]) -> None:
        """Take the changes of a decision in; ``book`` stores them."""
        owners = Owners(workspace=str(workspace), agent=agent)
        for change in changes:
            owned = (owners.of(change.account), change.account)
            reserved, spent = self.booked.get(owned, (0, 0))
            self.booked[owned] = (reserved + change.reserved, spent + change.spent)
            if owned in self.read:
                limit, used = self.read[owned]
                self.read[owned] = (limit, used + change.reserved + change.spent)

    def book(self) -> None:
        """Store what was settled, in the order in which the rows are locked."""
        owned = sorted(self.booked, key=lambda each: (_order(each[1]), each[0]))
        sql.change_each(_BOOK, [(*self.booked[each], *each) for each in owned])


def shown(workspace: Workspace, program: Program, snapshot: Snapshot) -> dict[str, int]:
    """What the accounts have left, for a page: nothing is opened and nothing locked."""
    limits, _ = _limits_of(program, snapshot, Event())
    owners = Owners(workspace=workspace.name, agent=snapshot.agent)
    owned = {owners.of(account) for account in limits}
    rows = Budget.objects.filter(owner__in=owned, account__in=limits)
    return {**limits, **{row.account: row.limit - row.reserved - row.spent for row in rows}}


def _opened(workspace: UUID, owned: Owned, limit: int) -> tuple[int, int]:
    """The limit of an account and what is used of it; opened where it is new, and locked."""
    found = sql.execute(sql.locked(_READ, "pipeline_budget"), owned)
    if not found:
        owner = None if owned[0] == GLOBAL else sql.key(workspace)
        sql.change(_OPEN, (owner, *owned, limit))
        found = sql.execute(sql.locked(_READ, "pipeline_budget"), owned)
    return int(found[0][2]), int(found[0][3])


def _limits_of(
    program: Program, snapshot: Snapshot, event: Event
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """The accounts that bear on a run with their limits, and those that the program sets."""
    named = (*program.budgets, *program.policy.budgets)
    currencies: Sequence[str] = ()
    if any(each.unit == MONEY for each in named):
        currencies = books.currencies(program, books.values_of(snapshot, event))
    return _limits(named, (*currencies,)), _limits(program.budgets, (*currencies,))


@lru_cache(maxsize=256)
def _limits(named: tuple[Named, ...], currencies: tuple[str, ...]) -> Mapping[str, int]:
    return account_limits(named, currencies)


def _order(account: str) -> tuple[bool, str]:
    return (account.startswith(GLOBAL), account)
