"""Policy: deny over hold over allow, errors deny, and nothing is allowed by silence."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanovm_core.canonical import INTEGER_MAX
from nanovm_core.errors import ProgramError, RefusedError
from nanovm_core.policy import (
    ADMISSION,
    AUTHORIZE,
    OUTCOMES,
    SOURCE_BYTES_MAX,
    Policy,
    judge,
    load_policy,
)
from tests.core.builders import POLICY

HEAD = 'v = "nanovm-policy/1"\nname = "test"\n[budget]\nworkspace_minor = 1\n'
CONTEXT: Mapping[str, object] = {"slots": {"n": 1, "s": "x"}, "proposal": {"amount_minor": 5}}
TRUE, FALSE, ERROR = "$slots.n == 1", "$slots.n == 2", "$slots.absent == 1"


def rule(name: str, outcome: str, when: str = TRUE, *, at: str = AUTHORIZE, extra: str = "") -> str:
    """One rule of a policy."""
    return (
        f'[[rules]]\nid = "{name}"\nat = "{at}"\noutcome = "{outcome}"\n'
        f'when = "{when}"\nwhy = "because"\n{extra}\n'
    )


def policy(*rules: str) -> Policy:
    """A policy of these rules."""
    return load_policy((HEAD + "".join(rules)).encode())


def code_of(rules: Policy, approved: tuple[str, ...] = ()) -> str:
    """The code that the policy refuses with."""
    with pytest.raises(RefusedError) as caught:
        judge(rules, AUTHORIZE, CONTEXT, approved)
    return caught.value.code


def said(rules: Policy, context: Mapping[str, object]) -> str:
    """The rule that decided, or the code of the refusal."""
    try:
        return judge(rules, AUTHORIZE, context).rules[0]
    except RefusedError as error:
        return error.code


@given(st.permutations([rule("a", "allow"), rule("h", "hold"), rule("d", "deny")]))
def test_deny_wins_in_any_order(rules: list[str]) -> None:
    assert code_of(policy(*rules), approved=("h", "d")) == "POL-003"


@given(st.permutations([rule("a", "allow"), rule("h", "hold"), rule("d", "deny", FALSE)]))
def test_hold_wins_over_allow_in_any_order(rules: list[str]) -> None:
    outcome = judge(policy(*rules), AUTHORIZE, CONTEXT)
    assert outcome.hold is not None
    assert outcome.hold.id == "h"


def test_what_no_rule_allows_is_denied() -> None:
    assert code_of(policy()) == "POL-001"
    assert code_of(policy(rule("a", "allow", FALSE))) == "POL-001"
    assert code_of(policy(rule("a", "allow", at=ADMISSION))) == "POL-001"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_error_denies_in_every_kind_of_rule(outcome: str) -> None:
    assert code_of(policy(rule("a", "allow"), rule("e", outcome, ERROR))) == "POL-002"


def test_error_in_a_rule_of_the_other_stage_is_not_reached() -> None:
    rules = policy(rule("a", "allow"), rule("e", "deny", ERROR, at=ADMISSION))
    assert judge(rules, AUTHORIZE, CONTEXT).rules == ("a",)


def test_approval_lifts_the_hold_it_names_and_no_other() -> None:
    rules = policy(rule("a", "allow"), rule("h1", "hold"), rule("h2", "hold"))
    first = judge(rules, AUTHORIZE, CONTEXT, approved=("h1",))
    assert first.hold is not None
    assert first.hold.id == "h2"
    assert judge(rules, AUTHORIZE, CONTEXT, approved=("h1", "h2")).hold is None


def test_approval_of_a_hold_that_did_not_fire_allows_nothing() -> None:
    assert code_of(policy(rule("h", "hold", FALSE)), approved=("h",)) == "POL-001"


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [
        (1, "EUR", "within-limit"),
        (1_000_000, "EUR", "within-limit"),
        (1_000_001, "EUR", "over-limit"),
        (1, "JPY", "currency-not-allowed"),
        (0, "EUR", "POL-001"),
        (-1, "EUR", "POL-001"),
        ("1", "EUR", "POL-002"),
        (True, "EUR", "POL-002"),
        (1, 1, "POL-002"),
    ],
)
def test_shipped_policy_at_its_limits(amount: object, currency: object, expected: str) -> None:
    context = {"slots": {"currency": currency}, "proposal": {"amount_minor": amount}}
    assert said(load_policy(POLICY), context) == expected


@pytest.mark.parametrize("status", ["paid", "ambiguous", "hybrid_mismatch", "", "OPEN"])
def test_shipped_policy_holds_what_is_not_open_and_nobody_can_lift_it(status: str) -> None:
    context = {"slots": {"pay_status": status, "amount_minor": 5}}
    held = judge(load_policy(POLICY), ADMISSION, context).hold
    assert held is not None
    assert not held.approvable


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "expected v"),
        ("\x00", "not TOML"),
        (HEAD + "x = " + "1" * 5000, "not TOML"),
        (HEAD.replace("[budget]", "colour = 1\n[budget]"), "colour"),
        (HEAD.replace("= 1", "= -1"), "workspace_minor"),
        (HEAD.replace("= 1", "= true"), "workspace_minor"),
        (HEAD.replace("= 1", f"= {INTEGER_MAX + 1}"), "workspace_minor"),
        (HEAD.replace("= 1", "= 1\nother = 2"), "workspace_minor"),
        (HEAD + rule("a", "permit"), "'a'"),
        (HEAD + rule("a", "allow", at="later"), "'a'"),
        (HEAD + rule("a", "allow", extra="aproved = true"), "aproved"),
        (HEAD + rule("a", "allow", extra='approvable = "yes"'), "'a'"),
        (HEAD + rule("a", "allow", "$slots.n = 1"), "'a'"),
        (HEAD + rule("a", "allow") + rule("a", "deny"), "same id"),
        (HEAD + rule("unknown-outcome", "hold"), "runtime's own"),
        (HEAD + '[[rules]]\nid = "a"\n', "rule 1 needs"),
        (HEAD.replace("[budget]", "rules = 5\n[budget]"), "rules must be"),
        (HEAD + "#" * SOURCE_BYTES_MAX, "over 65536 bytes"),
    ],
)
def test_policy_that_is_half_understood_does_not_load(text: str, named: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load_policy(text.encode())
    assert caught.value.code == "PRG-003"
    assert named in caught.value.text


def test_condition_that_does_not_parse_is_shown_with_a_caret() -> None:
    with pytest.raises(ProgramError, match=r"\^"):
        policy(rule("a", "allow", "$slots.n =! 1"))
