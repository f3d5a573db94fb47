"""Policy: deny over hold over allow, errors deny, silence allows nothing, and windows over time."""

from collections.abc import Mapping
from typing import Any

import pytest

from nanovm_core.core.authority.policy import OUTCOMES, PolicyRule, Window, counted, verdict
from nanovm_core.core.messages import Recorded
from nanovm_core.errors import RefusedError
from tests.core.gate.cashier import rule

CONTEXT: Mapping[str, object] = {"slots": {"n": 1, "s": "x"}, "proposal": {"amount_minor": 5}}
TRUE, FALSE, ERROR = "$slots.n == 1", "$slots.n == 2", "$slots.absent == 1"
ALLOW, DENY = rule("a", "allow", TRUE), rule("d", "deny", TRUE)
HELD = rule("h", "hold", TRUE, approvable=True)
SECOND = rule("h2", "hold", TRUE, approvable=True)
FIXED = rule("h", "hold", TRUE, approvable=False)


def judged(*rules: PolicyRule, approved: tuple[str, ...] = ()) -> str:
    """The code of the refusal, the rules that allow, or the rule that holds."""
    try:
        found = verdict(rules)(CONTEXT, approved)
    except RefusedError as error:
        return error.code
    assert found.hold is None or found.rules == (found.hold.id,)
    return f"held by {found.hold.id}" if found.hold else " ".join(found.rules)


@pytest.mark.parametrize("turn", range(3))
def test_deny_wins_over_hold_and_hold_over_allow_in_any_order(turn: int) -> None:
    rules = [ALLOW, HELD, DENY]
    rules = [*rules[turn:], *rules[:turn]]
    assert judged(*rules, approved=("h", "d")) == "POL-003"
    assert judged(*rules[::-1], approved=("h", "d")) == "POL-003"
    silent = [each if each is not DENY else rule("d", "deny", FALSE) for each in rules]
    assert judged(*silent) == judged(*silent[::-1]) == "held by h"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_error_denies_in_every_kind_of_rule_and_at_any_place(outcome: str) -> None:
    rules = [rule("e", outcome, ERROR), ALLOW, DENY]
    assert judged(*rules) == judged(*rules[::-1]) == "POL-002"


@pytest.mark.parametrize(
    ("rules", "approved", "said"),
    [
        ((), (), "POL-001"),
        ((rule("a", "allow", FALSE), rule("d", "deny", FALSE)), (), "POL-001"),
        ((rule("b", "allow", TRUE), rule("n", "allow", FALSE), ALLOW), (), "b a"),
        ((ALLOW, rule("o", "permit", TRUE)), (), "POL-003"),
        ((ALLOW, HELD, SECOND), ("h",), "held by h2"),
        ((ALLOW, HELD, SECOND), ("h", "h2"), "a h h2"),
        ((ALLOW, FIXED), ("h",), "held by h"),
        ((HELD,), ("h",), "h"),
        ((rule("h", "hold", FALSE, approvable=True),), ("h",), "POL-001"),
    ],
)
def test_nothing_is_allowed_but_by_a_rule_or_an_approval_that_fires(
    rules: tuple[PolicyRule, ...], approved: tuple[str, ...], said: str
) -> None:
    assert judged(*rules, approved=approved) == said


def test_refusal_names_the_rule_and_no_value() -> None:
    with pytest.raises(RefusedError, match=r"Because\. \(rule d\)"):
        verdict([DENY])(CONTEXT, ())
    with pytest.raises(RefusedError, match=r"Rule e could not be evaluated \(CON-020\)"):
        verdict([rule("e", "allow", ERROR)])(CONTEXT, ())


NOW = 1_000_000


def record(age_ms: int, outcome: str = "called", agent: str = "me") -> Recorded:
    return Recorded(NOW - age_ms, "pay", outcome, agent)


def count(counts: str, *records: Recorded, at_ms: int = NOW, **changes: Any) -> int:
    window = Window(name="w", counts=counts, within_ms=changes.pop("within_ms", 100), **changes)
    return counted([window], records, "me", at_ms)["w"]


@pytest.mark.parametrize(
    ("counts", "outcome"), [("calls", "called"), ("failures", "failed"), ("refusals", "refused")]
)
def test_window_counts_one_outcome(counts: str, outcome: str) -> None:
    records = [record(5, each) for each in ("called", "done", "failed", "refused")]
    assert count(counts, *records) == 1
    assert count(counts, *[each for each in records if each.outcome != outcome]) == 0


@pytest.mark.parametrize(
    ("ages_ms", "at_ms", "expected"),
    [
        ((100,), NOW, 1),
        ((101,), NOW, 0),
        ((0,), NOW, 1),
        ((-1,), NOW, 1),
        ((50, -1), NOW - 10**9, 2),  # an event with an earlier time sees what was called before it
        ((100, 0), NOW, 2),
        ((100, -1), NOW, 1),  # the window ends at the newest record
        ((-1, 100), NOW - 5, 1),
    ],
)
def test_window_is_limited_at_the_millisecond(
    ages_ms: tuple[int, ...], at_ms: int, expected: int
) -> None:
    assert count("calls", *map(record, ages_ms), at_ms=at_ms) == expected


@pytest.mark.parametrize(("scope", "expected"), [("workspace", 2), ("agent", 1)])
def test_window_is_about_its_scope(scope: str, expected: int) -> None:
    records = [record(5, "failed"), record(5, "failed", agent="other")]
    assert count("failures", *records, scope=scope) == expected
    assert count("failures_in_a_row", *records, scope=scope) == expected


@pytest.mark.parametrize(
    ("expected", "rows"),
    [(0, ("", "d", "fd")), (1, ("f", "df")), (2, ("ffdff", "frf", "ffc", "ffr")), (3, ("fcfcf",))],
)
def test_row_of_failures_is_broken_by_success_alone(expected: int, rows: tuple[str, ...]) -> None:
    words = {"f": "failed", "d": "done", "c": "called", "r": "refused"}
    for outcomes in rows:
        records = [record(500_000, words[each]) for each in outcomes]
        assert count("failures_in_a_row", *records) == expected
