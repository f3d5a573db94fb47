"""Budgets: reserved before, settled or given back after, never below nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanovm_core.budget import release, reserve, settle
from nanovm_core.errors import RefusedError


def test_all_that_is_left_can_be_reserved_and_not_one_more() -> None:
    assert reserve({"EUR": 100}, "EUR", 100).reserved_minor == 100
    with pytest.raises(RefusedError, match="BUD-001"):
        reserve({"EUR": 100}, "EUR", 101)


@pytest.mark.parametrize("amount", [0, -1, -(2**53)])
def test_nothing_and_less_cannot_be_reserved(amount: int) -> None:
    with pytest.raises(RefusedError, match="BUD-001"):
        reserve({"EUR": 100}, "EUR", amount)


def test_funds_of_another_currency_do_not_count() -> None:
    with pytest.raises(RefusedError, match="BUD-001"):
        reserve({"USD": 100, "eur": 100}, "EUR", 1)


@given(st.integers(1, 10**15), st.booleans())
def test_reservation_is_undone_exactly_by_what_ends_it(amount: int, paid: bool) -> None:
    first = reserve({"EUR": amount}, "EUR", amount)
    last = settle("EUR", amount) if paid else release("EUR", amount)
    assert first.reserved_minor + last.reserved_minor == 0
    assert first.spent_minor + last.spent_minor == (amount if paid else 0)
