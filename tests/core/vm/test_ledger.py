"""InMemoryLedger: accounts and revocations; whose accounts are, test_judge.py shows."""

from types import MappingProxyType

import pytest

from examples.refund_desk.desk import desk
from nanovm_core.core.authority.budget import release, settle
from nanovm_core.core.events import EffectDone, ProposalReceived
from nanovm_core.core.messages import Reservation, RunId, Snapshot
from nanovm_core.ledger import Account, currencies, values_of
from nanovm_core.ledger.memory import InMemoryLedger
from tests.core.kit.refund_desk import TOOL, call_of, desk_with

EUR = ("EUR",)
NOW = Snapshot(run=RunId("r"), program="p", policy="q", state="running.active", step="issue")


def left(ledger: InMemoryLedger, account: str = "workspace/EUR", agent: str = "ann") -> int:
    """What an account has left, as the desk sees it."""
    return ledger.left(desk(), agent, EUR)[account]


def test_an_account_opens_with_the_limit_of_program_and_policy() -> None:
    opened = InMemoryLedger().left(desk(), "ann", EUR)
    assert dict(opened) == {
        "workspace/EUR": 25_000,
        "workspace/USD": 25_000,  # the two that are granted
        "global/EUR": 10_000_000,
        "global/USD": 10_000_000,
        "agent/calls": 100,
    }
    with pytest.raises(TypeError):
        opened["workspace/EUR"] = 1  # type: ignore[index]


def test_what_is_reserved_is_not_left_and_comes_back_when_released() -> None:
    ledger, taken = InMemoryLedger(), (Reservation("workspace/EUR", 9_000),)
    ledger.settle("ann", taken)
    narrow = desk_with(("max = 25_000", "max = 10_000"))  # each program sees its own maximum
    assert (left(ledger), ledger.left(narrow, "ann", EUR)["workspace/EUR"]) == (16_000, 1_000)
    ledger.settle("ann", release(taken))
    assert left(ledger) == 25_000
    ledger.settle("ann", taken)
    ledger.settle("ann", settle(taken, {"EUR": 4_000}))
    assert left(ledger) == 21_000


def test_a_grant_that_was_taken_back_stays_so() -> None:
    ledger = InMemoryLedger()
    ledger.revoke("a" * 64)
    ledger.revoke("b" * 64)
    assert ledger.revoked == {"a" * 64, "b" * 64}
    assert InMemoryLedger(beside=ledger).revoked == set()


def test_currencies_are_laid_down_by_the_program_or_named_by_values() -> None:
    assert currencies(desk(), ()) == ("EUR", "USD")
    found = currencies(desk(), ["CHF", "eur", "calls", "EURO", 4_500, True, None, "ÄÖÜ"])
    assert found == ("CHF", "EUR", "USD")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{}", '{ one_of = ["USD"] }'),
        ('{ slot = "currency", origin = "register" }', '{ constant = "USD" }'),
        ('"string", length_max = 3 }', '"string", length_max = 3, one_of = ["USD"] }'),
        ('"amount_minor", currency = "currency" }', '"amount_minor", currency_is = "USD" }'),
    ],
    ids=["grant", "constant", "schema", "tool"],
)
def test_a_fixed_currency_has_an_account_before_any_value_names_it(old: str, new: str) -> None:
    anything = ('{ one_of = ["EUR", "USD"] }', "{}")
    assert currencies(desk_with(anything), ()) == ()
    assert currencies(desk_with(anything, (old, new)), ()) == ("USD",)


def test_values_of_a_run_are_its_slots_its_call_and_what_is_proposed() -> None:
    now = NOW._replace(slots=MappingProxyType({"currency": "EUR"}))
    called = now._replace(call=(TOOL, MappingProxyType({"currency": "USD"})))
    good = ProposalReceived(raw=call_of(currency="CHF"))
    assert set(values_of(called, good)) == {"EUR", "USD", "A-1", 4_500, "CHF"}
    assert list(values_of(called, ProposalReceived(raw=b"{"))) == ["EUR", "USD"]
    assert list(values_of(now, EffectDone(key="k"))) == ["EUR"]


def test_no_row_and_no_policy_widens_the_programs_own_limit() -> None:
    capped = Account("w", 100, hard=70)
    assert (capped.left(100, 10), capped.left(1_000, 10), capped.left(50, 10)) == (60, 60, 40)
    assert Account("w", 100).left(1_000, 10) == 990
