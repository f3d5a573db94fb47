"""The shared accounts: what workspaces, agents and everybody together have left of each unit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from nanovm_core.budget import account_limits
from nanovm_core.messages import Reservation, Snapshot
from nanovm_core.program import Program
from pipeline.models import Budget, Workspace

GLOBAL = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Whose accounts a run counts against."""

    workspace: Workspace
    agent: str

    def of(self, account: str) -> str:
        """The owner of an account, by its scope."""
        scope = account.partition("/")[0]
        own = str(self.workspace.id)
        return {"workspace": own, "agent": f"{own}/{self.agent}"}.get(scope, GLOBAL)


def ledger(workspace: Workspace, program: Program, snapshot: Snapshot) -> dict[str, int]:
    """What each account that bears on the run has left; its rows are locked, global last.

    An account is opened with the limit of program and policy; the row may be narrowed or
    widened later, the program's own maximum stays.
    """
    limits = account_limits((*program.budgets, *program.policy.budgets), _currencies(snapshot))
    hard = account_limits(program.budgets, _currencies(snapshot))
    owners = Owners(workspace=workspace, agent=snapshot.agent)
    return {
        account: min(row.limit, hard.get(account, row.limit)) - row.reserved - row.spent
        for account, row in _opened(owners, limits)
    }


def shown(workspace: Workspace, program: Program, snapshot: Snapshot) -> dict[str, int]:
    """What the accounts have left, for a page: nothing is opened and nothing locked."""
    limits = account_limits((*program.budgets, *program.policy.budgets), _currencies(snapshot))
    owners = Owners(workspace=workspace, agent=snapshot.agent)
    owned = {owners.of(account) for account in limits}
    rows = Budget.objects.filter(owner__in=owned, account__in=limits)
    return {**limits, **{row.account: row.limit - row.reserved - row.spent for row in rows}}


def settle(workspace: Workspace, agent: str, changes: Iterable[Reservation]) -> None:
    """Book the changes of a decision, in the order in which the rows are locked."""
    owners = Owners(workspace=workspace, agent=agent)
    for change in sorted(changes, key=lambda each: _order(each.account)):
        Budget.objects.filter(owner=owners.of(change.account), account=change.account).update(
            reserved=F("reserved") + change.reserved, spent=F("spent") + change.spent
        )


def _opened(owners: Owners, limits: Mapping[str, int]) -> Sequence[tuple[str, Budget]]:
    """The rows of these accounts, opened where they are new, locked in one order for all."""
    rows: list[tuple[str, Budget]] = []
    for account in sorted(limits, key=_order):
        owner = owners.of(account)
        Budget.objects.get_or_create(
            owner=owner,
            account=account,
            defaults={
                "limit": limits[account],
                "workspace": None if owner == GLOBAL else owners.workspace,
            },
        )
        row = Budget.objects.select_for_update().get(owner=owner, account=account)
        rows.append((account, row))
    return rows


def _order(account: str) -> tuple[bool, str]:
    return (account.startswith(GLOBAL), account)


def _currencies(snapshot: Snapshot) -> tuple[str, ...]:
    """The currencies that the run may be about: its own slot's, or its judged call's."""
    call = dict(snapshot.call[1]) if snapshot.call else {}
    found = (snapshot.slots.get("currency"), call.get("currency"))
    return tuple(sorted({each for each in found if isinstance(each, str)}))
