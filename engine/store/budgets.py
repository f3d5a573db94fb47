"""The shared accounts: what workspaces, agents and everybody together have left of each unit.

Those of a workspace and its agents are in the row of its log, whose lock is theirs too. Those that
all workspaces share have rows of their own.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db import connection

from engine.models import Budget, Workspace
from engine.store import sql
from nanovm_core.core.authority.budget import Budget as Limit
from nanovm_core.core.authority.budget import account_limits, is_currency
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Reservation, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import CanonicalError
from nanovm_core.ledger import GLOBAL, accounts, owner_of, values_of

log = logging.getLogger(__name__)

GLOBAL_TURN = 0x676C6F62616C  # "global": the name of that lock on a PostgreSQL server

_READ = 'SELECT "limit", reserved, spent FROM pipeline_budget WHERE account = %s'
_OPEN = (
    'INSERT INTO pipeline_budget (account, "limit", reserved, spent)'
    " VALUES (%s, %s, 0, 0) ON CONFLICT (account) DO NOTHING"
)
_NAMES = "SELECT account FROM pipeline_budget"
_LIMIT = 'UPDATE pipeline_budget SET "limit" = %s WHERE account = %s'
_BOOK = "UPDATE pipeline_budget SET reserved = reserved + %s, spent = spent + %s WHERE account = %s"


class Balance(NamedTuple):
    """An account as stored: its limit, and how much of it is reserved and spent."""

    limit: int
    reserved: int = 0
    spent: int = 0

    @property
    def used(self) -> int:
        """Reserved plus spent."""
        return self.reserved + self.spent

    def changed(self, reserved: int, spent: int) -> "Balance":
        """The account after a change."""
        return Balance(self.limit, self.reserved + reserved, self.spent + spent)


Accounts = dict[str, Balance]  # by ``name_of``
_KNOWN: dict[str, tuple[bytes, Accounts]] = {}  # what the accounts of a log's row were read as
KNOWN_MAX = 1_024
ANY = "*"  # in place of a currency: the limit with which money accounts are opened


class BudgetLedger:
    """The accounts of one commit: each is read once, and booked at the end."""

    def __init__(self) -> None:
        self.own: dict[str, Accounts | None] = {}  # by workspace; None: damaged
        self.shared: Accounts = {}
        self.booked: dict[str, tuple[int, int]] = {}  # of the shared ones
        self.changed: dict[str, Workspace] = {}  # whose accounts changed

    def left(
        self, workspace: Workspace, program: Program, snapshot: Snapshot, event: Event
    ) -> Mapping[str, int]:
        """What each account that bears on the run has left; shared ones are locked.

        The limits are those that are in force (``put_in_force``), or those of program and policy
        where there are none; the program's own maximum stays. Where a log's accounts cannot be
        read, nothing is left of them.
        """
        values = values_of(snapshot, event)
        found = accounts(program, workspace.name, snapshot.agent, values)
        left = {}
        for name, account in found.items():  # by name, so that shared ones are locked in order
            if account.owner == GLOBAL:
                now = self._shared(name, account.limit)
            else:
                now = self._own(workspace, name_of(name, snapshot.agent), account.limit)
            left[name] = account.left(now.limit, now.used)
        return left

    def put_in_force(self, workspace: Workspace, agent: str, budgets: Sequence[Limit]) -> None:
        """Set the limits of all accounts that these budgets of a new run bear on.

        They hold for the runs under way too. Accounts that no budget names keep their limits.
        """
        own = self._of(workspace) if budgets else None
        if own is None:
            return
        shared = GLOBAL in {each.scope for each in budgets}
        rows = [str(name) for (name,) in sql.execute(_NAMES)] if shared else []
        known = {name.partition("@")[0].partition("/")[2] for name in (*own, *rows)}
        limits = account_limits(budgets, {ANY, *filter(is_currency, known)})
        for name, limit in limits.items():
            if owner_of(name, workspace.name, agent) == GLOBAL:
                now = self._shared(name, limit)
                self.shared[name] = now._replace(limit=limit)
                if now.limit != limit:
                    sql.change(_LIMIT, (limit, name))
                continue
            key, now = name_of(name, agent), own.get(name_of(name, agent), Balance(-1))
            if now.limit != limit:
                own[key] = now._replace(limit=limit)
                self.changed[workspace.name] = workspace

    def _own(self, workspace: Workspace, name: str, limit: int) -> Balance:
        own = self._of(workspace)
        if own is None:
            return Balance(0)
        return own.setdefault(name, Balance(_any(own, name, limit)))

    def _of(self, workspace: Workspace) -> Accounts | None:
        if workspace.name not in self.own:
            self.own[workspace.name] = _copied(workspace)
        return self.own[workspace.name]

    def _shared(self, name: str, limit: int) -> Balance:
        if name not in self.shared:
            if not self.shared:
                _take_turn()
            self.shared[name] = _opened(name, limit)
        return self.shared[name]

    def settle(self, workspace: Workspace, agent: str, changes: Iterable[Reservation]) -> None:
        """Take the changes of a decision in; ``book`` stores them."""
        for change in changes:
            name, by = change.account, (change.reserved, change.spent)
            if owner_of(name, workspace.name, agent) == GLOBAL:
                reserved, spent = self.booked.get(name, (0, 0))
                self.booked[name] = (reserved + by[0], spent + by[1])
                if name in self.shared:
                    self.shared[name] = self.shared[name].changed(*by)
                continue
            own, key = self._of(workspace), name_of(name, agent)
            if own is not None and key in own:
                own[key] = own[key].changed(*by)
                self.changed[workspace.name] = workspace

    def book(self) -> None:
        """Store what was settled: in the rows of logs, which the caller stores, and of its own."""
        for key, workspace in self.changed.items():
            own = self.own[key]
            if own is not None:
                workspace.accounts = encoded(own)
                _remember(workspace, own)
        for name in sorted(self.booked):
            sql.later(_BOOK, (*self.booked[name], name))


def name_of(account: str, agent: str) -> str:
    """The name of an account in its log's row: an agent's has the agent behind it."""
    return account if account.startswith("workspace/") else f"{account}@{agent}"


def _any(own: Accounts, name: str, limit: int) -> int:
    """The limit with which an account is opened: the one in force, else the given one."""
    scope, unit = name.partition("@")[0].split("/")
    in_force = own.get(name.replace(f"{scope}/{unit}", f"{scope}/{ANY}", 1))
    return in_force.limit if in_force is not None and is_currency(unit) else limit


def accounts_of(workspace: Workspace) -> Accounts | None:
    """The accounts in a log's row, by ``name_of``; None where they cannot be read."""
    data = bytes(workspace.accounts)
    known = _KNOWN.get(workspace.name)
    if known is not None and known[0] == data:
        return known[1]
    try:
        value = decode(data) if data else {}
        if not isinstance(value, dict):
            return None
        found = {name: _account(each) for name, each in value.items()}
    except (CanonicalError, TypeError, ValueError):
        return None
    _remember(workspace, found)
    return found


def encoded(own: Accounts) -> bytes:
    """The accounts as a log's row holds them."""
    return encode({name: [*account] for name, account in own.items()})


def remaining(workspace: Workspace, program: Program, snapshot: Snapshot) -> dict[str, int]:
    """What the accounts have left, for a page: nothing is opened and nothing locked."""
    found = accounts(program, workspace.name, snapshot.agent, values_of(snapshot, Event()))
    own = accounts_of(workspace)
    rows = {row.account: row for row in Budget.objects.filter(account__in=found)}
    left = {}
    for name, account in found.items():
        if account.owner == GLOBAL:
            row = rows.get(name)
            now = Balance(row.limit, row.reserved, row.spent) if row else Balance(account.limit)
        else:
            key = name_of(name, snapshot.agent)
            opened = Balance(_any(own or {}, key, account.limit))
            now = Balance(0) if own is None else own.get(key, opened)
        left[name] = account.left(now.limit, now.used)
    return left


def _copied(workspace: Workspace) -> Accounts | None:
    found = accounts_of(workspace)
    if found is None:
        log.error("the accounts of %s cannot be read: nothing is left of them", workspace.origin)
        return None
    return dict(found)


def _account(value: object) -> Balance:
    if not isinstance(value, list) or len(value) != len(Balance._fields):
        raise TypeError("expected limit, reserved and spent")
    if not all(type(each) is int for each in value):
        raise TypeError("expected integers")
    return Balance(*value)


def _remember(workspace: Workspace, found: Accounts) -> None:
    if len(_KNOWN) >= KNOWN_MAX:
        _KNOWN.clear()
    _KNOWN[workspace.name] = (bytes(workspace.accounts), found)


def _take_turn() -> None:
    """Be the only one at the shared accounts until the transaction's end.

    They are used by transactions that decide several runs each, in whatever order: locked one by
    one they could wait in a circle.
    """
    if connection.vendor == "postgresql":
        sql.execute("SELECT pg_advisory_xact_lock(%s)", (GLOBAL_TURN,))


def _opened(name: str, limit: int) -> Balance:
    """A shared account, locked; opened where it is new."""
    found = sql.execute(sql.locked(_READ, "pipeline_budget"), (name,))
    if not found:
        sql.change(_OPEN, (name, limit))
        found = sql.execute(sql.locked(_READ, "pipeline_budget"), (name,))
    return Balance(*(int(each) for each in found[0]))
