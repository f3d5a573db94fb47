"""Accounts in the row of a log: what cannot be read leaves nothing, and is not written over."""

import pytest

from engine.models import Workspace
from engine.store import budgets
from engine.store.budgets import Balance, BudgetLedger
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Reservation
from nanovm_core.core.program import Program
from pipeline.application import current
from tests.kit.house import House, snapshot

MONEY = "workspace/EUR"
BAD = [
    b"{",
    b"[]",
    b'{"workspace/EUR":7}',
    b'{"workspace/EUR":[1,2]}',
    b'{"workspace/EUR":[1,2,3,4]}',
    b'{"workspace/EUR":[1,2,"3"]}',
    b'{"workspace/EUR":[1,2,true]}',
]


def program() -> Program:
    return current()


@pytest.mark.parametrize("data", BAD, ids=bytes.decode)
def test_of_accounts_that_cannot_be_read_nothing_is_left(house: House, data: bytes) -> None:
    run = house.once(House.paused)
    now = snapshot(run)
    before = BudgetLedger().left(run.workspace, program(), now, Event())
    assert before[MONEY] > 0
    Workspace.objects.filter(id=run.workspace_id).update(accounts=data)
    log = Workspace.objects.get(id=run.workspace_id)
    ledger = BudgetLedger()
    left = ledger.left(log, program(), now, Event())
    own = [name for name in left if not name.startswith("global/")]
    assert {left[name] for name in own} == {0}
    assert budgets.remaining(log, program(), now)[MONEY] == 0
    ledger.settle(log, now.agent, [Reservation(MONEY, -1, 1)])
    ledger.book()
    assert bytes(log.accounts) == data


@pytest.mark.postgres
def test_what_is_settled_is_added_and_kept_by_the_agent_behind_it(house: House) -> None:
    run = house.once(House.paused)
    now, log = snapshot(run), Workspace.objects.get(id=run.workspace_id)
    ledger = BudgetLedger()
    limit = ledger.left(log, program(), now, Event())[MONEY]
    for change in (Reservation(MONEY, 12_000), Reservation(MONEY, -12_000, 12_000)):
        ledger.settle(log, now.agent, [change])
    ledger.settle(log, now.agent, [Reservation(MONEY, 5)])
    assert ledger.left(log, program(), now, Event())[MONEY] == limit - 12_005
    ledger.book()
    after = budgets.accounts_of(log)
    assert after is not None
    assert after[MONEY] == Balance(limit, 5, 12_000)
    assert after == budgets.accounts_of(Workspace(id=log.id, accounts=budgets.encoded(after)))
    assert budgets.name_of("agent/EUR", "clerk") == "agent/EUR@clerk"
    assert budgets.name_of(MONEY, "clerk") == MONEY
