"""Budgets: reserved before, settled or given back after, and never together over an account."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.authority import budget
from nanovm_core.core.authority.budget import (
    Accounts,
    Budget,
    Limits,
    account_limits,
    own_use,
    settle,
)
from nanovm_core.core.messages import Reservation
from nanovm_core.errors import RefusedError
from tests.core.gate.cashier import facts, gate

LIMITS = Limits(money_minor_max=1_000, calls_max=3, steps_max=9, tokens_max=40, wall_ms_max=100)


def accounts(*budgets: Budget) -> Accounts:
    return Accounts(LIMITS, budgets)


def money(scope: str, currency: str = "") -> Budget:
    return Budget(scope=scope, unit="money", max=900, currency=currency)


def refusal(of: Accounts, unit: str, amount: int, ledger: Mapping[str, int], used: int = 0) -> str:
    try:
        of.reserve({unit: amount}, ledger, {unit: used})
    except RefusedError as error:
        return error.code
    return ""


@pytest.mark.parametrize(("unit", "limit", "code"), [
    ("EUR", 1_000, "BUD-001"),
    ("XTS", 1_000, "BUD-001"),
    ("calls", 3, "BUD-002"),
    ("steps", 9, "BUD-003"),
    ("tokens", 40, "BUD-004"),
])  # fmt: skip
def test_run_has_its_own_limit_of_each_unit(unit: str, limit: int, code: str) -> None:
    of, rich = accounts(money("workspace")), {f"workspace/{unit}": 10**6}
    assert refusal(of, unit, limit, rich) == ""
    assert refusal(of, unit, limit + 1, rich) == code
    assert refusal(of, unit, limit, rich, used=1) == code
    assert refusal(of, unit, 1, rich, used=limit - 1) == ""


@pytest.mark.parametrize(("unit", "code", "unopened"), [
    ("calls", "BUD-002", "BUD-002"),
    ("tokens", "BUD-004", "BUD-004"),
    ("EUR", "BUD-001", "BUD-006"),
])  # fmt: skip
@pytest.mark.parametrize("scope", ["agent", "workspace", "global"])
def test_shared_account_binds_beside_it(unit: str, code: str, unopened: str, scope: str) -> None:
    kind = "money" if unit == "EUR" else unit
    of = accounts(Budget(scope=scope, unit=kind, max=2))
    assert refusal(of, unit, 2, {f"{scope}/{unit}": 2}) == ""
    assert refusal(of, unit, 2, {f"{scope}/{unit}": 1}) == code
    assert refusal(of, unit, 1, {f"{scope}/USD": 5}) == unopened


@pytest.mark.parametrize("unit", ["EUR", "eur", "EU", "EURO", "", "EÜR", "E1R", "money", "𝐄𝐔𝐑"])
def test_money_is_spent_only_in_a_currency_that_an_account_counts(unit: str) -> None:
    for of in (accounts(), accounts(Budget(scope="workspace", unit="calls", max=9))):
        assert refusal(of, unit, 1, {f"workspace/{unit}": 9}) == "BUD-006"
    counted = refusal(accounts(money("workspace")), unit, 1, {f"workspace/{unit}": 9})
    assert counted == ("" if unit == "EUR" else "BUD-006")


@pytest.mark.parametrize(("unit", "code"), [("EUR", "BUD-001"), ("calls", "BUD-002")])
def test_nothing_and_less_cannot_be_reserved(unit: str, code: str) -> None:
    for amount in (0, -1, -(2**53)):
        assert refusal(accounts(money("workspace")), unit, amount, {f"workspace/{unit}": 9}) == code


def test_clock_of_the_run_is_a_budget_too() -> None:
    of = accounts()
    of.require_time(1_000, 1_099)
    of.require_time(0, 10**15)
    with pytest.raises(RefusedError, match="BUD-005"):
        of.require_time(1_000, 1_100)


def test_step_is_spent_when_it_begins() -> None:
    of = accounts(Budget(scope="agent", unit="steps", max=5))
    assert of.begin_step(8, {"agent/steps": 1}, 0, 0) == (Reservation("agent/steps", 0, 1),)
    for begun, left, started_ms, code in ((9, 1, 0, "3"), (0, 0, 0, "3"), (0, 1, 1, "5")):
        with pytest.raises(RefusedError, match=f"BUD-00{code}"):
            of.begin_step(begun, {"agent/steps": left}, started_ms, 101)
    assert accounts().begin_step(0, {}, 0, 0) == ()


def test_need_of_a_call_is_its_count_and_its_money() -> None:
    assert gate().need("pay", {"amount": 500, "currency": "EUR"}) == {"calls": 1, "EUR": 500}
    assert gate().need("note", {"text": "x"}) == {"calls": 1}
    with pytest.raises(RefusedError, match="CAP-001"):
        gate().origins("wire", facts())
    with pytest.raises(RefusedError, match="CAP-001"):
        gate().need("wire", {})


@settings(derandomize=True, max_examples=50)
@given(st.integers(1, 10**15), st.none() | st.integers(-(10**16), 10**16))
def test_settling_spends_no_more_than_was_reserved(amount: int, actual: int | None) -> None:
    taken = (Reservation("run/EUR", amount), Reservation("workspace/EUR", amount))
    ended = settle(taken, {} if actual is None else {"EUR": actual, "USD": 1})
    spent = amount if actual is None else min(max(actual, 0), amount)
    assert ended == tuple(Reservation(each.account, -amount, spent) for each in taken)


def test_release_gives_back_everything_but_begun_steps() -> None:
    taken = (Reservation("run/EUR", 5), Reservation("run/steps", 1), Reservation("agent/calls", 1))
    assert budget.release(taken) == (
        Reservation("run/EUR", -5, 0),
        Reservation("run/steps", -1, 1),
        Reservation("agent/calls", -1, 0),
    )


def test_own_use_counts_what_is_frozen_and_what_is_spent() -> None:
    taken = gate().reserve({"calls": 1, "EUR": 500}, facts())
    used = own_use({"steps": 2}, taken)
    assert used == {"steps": 2, "calls": 1, "EUR": 500}
    assert own_use(used, budget.release(taken)) == {"steps": 2}
    assert own_use({}, [Reservation("workspace/EUR", 5)]) == {}
    assert own_use(used, settle(taken, {"EUR": 200})) == {"steps": 2, "calls": 1, "EUR": 200}
    with pytest.raises(TypeError):
        used["EUR"] = 0  # type: ignore[index]


def test_accounts_are_opened_with_the_smallest_limit_that_applies() -> None:
    budgets = (
        money("workspace"),
        Budget(scope="workspace", unit="money", max=500, currency="EUR"),
        Budget(scope="global", unit="money", max=700, currency="USD"),
        *(Budget(scope="agent", unit="calls", max=most) for most in (9, 5, 7)),
    )
    assert account_limits(budgets, ["SEK"]) == {
        "workspace/EUR": 500,
        "workspace/SEK": 900,
        "workspace/USD": 900,
        "global/USD": 700,
        "agent/calls": 5,
    }
    assert account_limits((), ["EUR"]) == {}
