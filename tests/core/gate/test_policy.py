"""Policy: deny over hold over allow, errors deny, silence allows nothing, and windows over time."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.messages import Recorded
from nanovm_core.core.policy import (
    COUNTS,
    OUTCOMES,
    RECORDS_MAX,
    Outcome,
    PolicyRule,
    Window,
    counted,
    verdict,
)
from nanovm_core.errors import RefusedError
from tests.core.gate.cashier import rule

CONTEXT: Mapping[str, object] = {"slots": {"n": 1, "s": "x"}, "proposal": {"amount_minor": 5}}
TRUE, FALSE, ERROR = "$slots.n == 1", "$slots.n == 2", "$slots.absent == 1"
HELD = rule("h", "hold", TRUE, approvable=True)


def judge(
    rules: Sequence[PolicyRule], context: Mapping[str, object], approved: tuple[str, ...] = ()
) -> Outcome:
    return verdict(rules)(context, approved)


def code_of(*rules: PolicyRule, approved: tuple[str, ...] = ()) -> str:
    """The code that the rules refuse with."""
    with pytest.raises(RefusedError) as caught:
        judge(rules, CONTEXT, approved)
    return caught.value.code


@settings(derandomize=True)
@given(st.permutations([rule("a", "allow", TRUE), HELD, rule("d", "deny", TRUE)]))
def test_deny_wins_in_any_order(rules: list[PolicyRule]) -> None:
    assert code_of(*rules, approved=("h", "d")) == "POL-003"


@settings(derandomize=True)
@given(st.permutations([rule("a", "allow", TRUE), HELD, rule("d", "deny", FALSE)]))
def test_hold_wins_over_allow_in_any_order(rules: list[PolicyRule]) -> None:
    outcome = judge(rules, CONTEXT)
    assert (outcome.rules, outcome.hold) == (("h",), HELD)


def test_what_no_rule_allows_is_denied() -> None:
    assert code_of() == "POL-001"
    assert code_of(rule("a", "allow", FALSE), rule("d", "deny", FALSE)) == "POL-001"


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("first", [True, False])
def test_error_denies_in_every_kind_of_rule_and_at_any_place(outcome: str, first: bool) -> None:
    rules = [rule("e", outcome, ERROR), rule("a", "allow", TRUE), rule("d", "deny", TRUE)]
    assert code_of(*(rules if first else rules[::-1])) == "POL-002"


def test_refusal_names_the_rule_and_no_value() -> None:
    with pytest.raises(RefusedError, match=r"Because\. \(rule d\)"):
        judge([rule("d", "deny", TRUE)], CONTEXT)
    with pytest.raises(RefusedError, match=r"Rule e could not be evaluated \(CON-020\)"):
        judge([rule("e", "allow", ERROR)], CONTEXT)


def test_all_that_allow_are_named_in_order() -> None:
    rules = [rule("b", "allow", TRUE), rule("n", "allow", FALSE), rule("a", "allow", TRUE)]
    assert judge(rules, CONTEXT).rules == ("b", "a")


def test_approval_lifts_the_hold_it_names_and_no_other() -> None:
    second = rule("h2", "hold", TRUE, approvable=True)
    rules = [rule("a", "allow", TRUE), HELD, second]
    assert judge(rules, CONTEXT, ("h",)).hold == second
    assert judge(rules, CONTEXT, ("h", "h2")).rules == ("a", "h", "h2")


def test_approval_lifts_nothing_that_no_person_may_lift() -> None:
    fixed = rule("h", "hold", TRUE, approvable=False)
    assert judge([rule("a", "allow", TRUE), fixed], CONTEXT, ("h",)).hold == fixed


def test_approved_hold_is_an_allow_and_one_that_did_not_fire_is_none() -> None:
    assert judge([HELD], CONTEXT, ("h",)).rules == ("h",)
    assert code_of(rule("h", "hold", FALSE, approvable=True), approved=("h",)) == "POL-001"


def test_outcome_that_nobody_knows_denies() -> None:
    assert code_of(rule("a", "allow", TRUE), rule("o", "permit", TRUE)) == "POL-003"


# --- windows ---------------------------------------------------------------------------------

NOW = 1_000_000


def record(age_ms: int, outcome: str = "called", agent: str = "me") -> Recorded:
    """One remembered call, so old."""
    return Recorded(NOW - age_ms, "pay", outcome, agent)


def count(counts: str, *records: Recorded, at_ms: int = NOW, **changes: Any) -> int:
    """What one window counts."""
    window = Window(name="w", counts=counts, within_ms=changes.pop("within_ms", 100), **changes)
    return counted([window], records, "me", at_ms)["w"]


@pytest.mark.parametrize(
    ("counts", "outcome"), [("calls", "called"), ("failures", "failed"), ("refusals", "refused")]
)
def test_window_counts_one_outcome(counts: str, outcome: str) -> None:
    records = [record(5, each) for each in ("called", "done", "failed", "refused")]
    assert count(counts, *records) == 1
    assert count(counts, *[each for each in records if each.outcome != outcome]) == 0


def test_window_is_limited_at_the_millisecond() -> None:
    assert count("calls", record(100)) == 1
    assert count("calls", record(101)) == 0
    assert count("calls", record(0)) == 1


def test_event_with_an_earlier_time_sees_what_was_called_before_it() -> None:
    assert count("calls", record(-1)) == 1
    assert count("calls", record(50), record(-1), at_ms=NOW - 10**9) == 2
    failures = [record(5, "failed"), record(-5, "done")]
    assert count("failures_in_a_row", *failures) == 0


def test_window_ends_at_the_newest_record() -> None:
    assert count("calls", record(100), record(0)) == 2
    assert count("calls", record(100), record(-1)) == 1
    assert count("calls", record(-1), record(100), at_ms=NOW - 5) == 1


@pytest.mark.parametrize(("scope", "expected"), [("workspace", 2), ("agent", 1)])
def test_window_is_about_its_scope(scope: str, expected: int) -> None:
    records = [record(5, "failed"), record(5, "failed", agent="other")]
    assert count("failures", *records, scope=scope) == expected
    assert count("failures_in_a_row", *records, scope=scope) == expected


def test_count_saturates_at_the_newest_records() -> None:
    records = [record(9)] * (RECORDS_MAX + 1)
    assert count("calls", *records) == RECORDS_MAX
    assert count("calls", *records[:-1]) == RECORDS_MAX
    assert count("calls", *records[:-2]) == RECORDS_MAX - 1
    done = [record(5, "done")] * RECORDS_MAX
    assert count("calls", record(5), *done) == 0


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ("", 0),
        ("f", 1),
        ("d", 0),
        ("fd", 0),
        ("df", 1),
        ("ffdff", 2),
        ("fcfcf", 3),
        ("frf", 2),
        ("ffc", 2),
        ("ffr", 2),
    ],
)
def test_row_of_failures_is_broken_by_success_alone(outcomes: str, expected: int) -> None:
    words = {"f": "failed", "d": "done", "c": "called", "r": "refused"}
    records = [record(500_000, words[each]) for each in outcomes]
    assert count("failures_in_a_row", *records) == expected


@given(
    st.lists(
        st.tuples(st.integers(-50, 250), st.sampled_from(("called", "done", "failed", "refused")))
    ),
    st.integers(0, 200),
)
@settings(derandomize=True, max_examples=200)
def test_no_earlier_time_counts_less_than_the_newest_records_own(
    found: list[tuple[int, str]], within_ms: int
) -> None:
    records = sorted((record(*each) for each in found), key=lambda each: each.at_ms)
    newest = max((each.at_ms for each in records), default=NOW)
    for counts in COUNTS:
        then = count(counts, *records, within_ms=within_ms, at_ms=newest)
        for at_ms in (0, NOW - 1_000, newest - 1):
            assert count(counts, *records, within_ms=within_ms, at_ms=at_ms) == then
