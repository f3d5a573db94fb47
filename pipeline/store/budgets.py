"""The shared accounts: what workspaces, agents and everybody together have left of each unit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection

from nanovm_core.core.events import Event
from nanovm_core.core.messages import Reservation, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.ledger import GLOBAL, accounts, owner_of, values_of
from pipeline.models import Budget, Workspace
from pipeline.store import sql

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


@dataclass(frozen=True, slots=True)
class BudgetLedger:
    """The accounts of one commit: each is locked and read once, and booked at the end."""

    read: dict[Owned, tuple[int, int]] = field(default_factory=dict)  # limit, and used of it
    booked: dict[Owned, tuple[int, int]] = field(default_factory=dict)  # reserved, and spent

    def left(
        self, workspace: UUID, program: Program, snapshot: Snapshot, event: Event
    ) -> Mapping[str, int]:
        """What each account that bears on the run has left; its rows are locked, global last.

        An account is opened with the limit of program and policy; the row may be narrowed or
        widened later, the program's own maximum stays.
        """
        values = values_of(snapshot, event)
        found = accounts(program, str(workspace), snapshot.agent, values)
        left = {}
        for name in sorted(found, key=_order):
            owned = (found[name].owner, name)
            if owned not in self.read:
                if owned[0] == GLOBAL:
                    self._take_turn()
                self.read[owned] = _opened(workspace, owned, found[name].limit)
            left[name] = found[name].left(*self.read[owned])
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
        for change in changes:
            owned = (owner_of(change.account, str(workspace), agent), change.account)
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
    found = accounts(program, workspace.name, snapshot.agent, values_of(snapshot, Event()))
    owners = {account.owner for account in found.values()}
    rows = Budget.objects.filter(owner__in=owners, account__in=found)
    limits = {name: account.left(account.limit, 0) for name, account in found.items()}
    left = {
        row.account: found[row.account].left(row.limit, row.reserved + row.spent) for row in rows
    }
    return limits | left


def _opened(workspace: UUID, owned: Owned, limit: int) -> tuple[int, int]:
    """The limit of an account and what is used of it; opened where it is new, and locked."""
    found = sql.execute(sql.locked(_READ, "pipeline_budget"), owned)
    if not found:
        owner = None if owned[0] == GLOBAL else sql.key(workspace)
        sql.change(_OPEN, (owner, *owned, limit))
        found = sql.execute(sql.locked(_READ, "pipeline_budget"), owned)
    return int(found[0][2]), int(found[0][3])


def _order(account: str) -> tuple[bool, str]:
    return (account.startswith(GLOBAL), account)
