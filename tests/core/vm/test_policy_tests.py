"""Policy tests: the examples of a policy, evaluated by its rules."""

from dataclasses import replace
from itertools import product

import pytest

from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Recorded
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import Call
from nanovm_core.errors import ProgramError, RefusedError
from nanovm_core.loading import load_policy
from nanovm_core.policy_tests import ExampleResult, run_examples
from tests.core.kit.deployment import gate
from tests.core.kit.refund_desk import DESK, TOOL, args_of, desk_with, slots_of

SMALL = f'tool = "{TOOL}", slots = {{ age_days = 3 }}, proposal = {{ amount_minor = 100 }}'
LARGE = SMALL.replace("100", "40_001").replace("= 3", '= 3, signed_by = "ada"')
BARE = '\nv = "nanovm-policy/1"\nname = "bare"\n'


def example(given: str = SMALL, expect: str = "allow", more: str = "") -> str:
    """An example called ``mine``, as a policy file says it."""
    return f'[[examples]]\nname = "mine"\nexpect = "{expect}"\ngiven = {{ {given} }}\n{more}\n'


def rule(name: str, when: str, outcome: str = "deny", more: str = "") -> str:
    """A rule at authorize, as a policy file says it."""
    return (
        f'[[rules]]\nid = "{name}"\nat = "authorize"\noutcome = "{outcome}"\nwhen = "{when}"\n'
        f'why = "So it is."\n{more}\n'
    )


def mine(rules: Program) -> ExampleResult:
    """What came of the example called ``mine``."""
    return next(each for each in run_examples(rules) if each.name == "mine")


def said(rules: Program) -> tuple[str, str]:
    """Outcome and rule of the example called ``mine``."""
    return mine(rules)[1:3]


# --- good or not -----------------------------------------------------------------------------


def test_examples_come_in_the_order_of_the_file() -> None:
    found = list(run_examples(DESK))
    assert [each.name for each in found] == [each.name for each in DESK.policy.examples]
    assert all(each.good for each in found)
    assert found[0] == ("100.00 is refunded", "allow", "small-or-signed", "allow", True)


@pytest.mark.parametrize(
    ("expect", "more", "good"),
    [
        ("allow", "", True),
        ("deny", "", False),
        ("hold", "", False),
        ("allow", 'rule = "small-or-signed"', True),
        ("allow", 'rule = "also"', True),  # one of those that allow it
        ("allow", 'rule = "old-order"', False),
        ("allow", 'rule = "small"', False),
    ],
)
def test_an_example_is_good_where_outcome_and_rule_are(expect: str, more: str, good: bool) -> None:
    found = mine(desk_with(more=rule("also", "true", "allow") + example(SMALL, expect, more)))
    assert found == ("mine", "allow", "small-or-signed, also", expect, good)


@pytest.mark.parametrize("named", ["POL-003", "never"])
def test_a_denial_is_expected_by_its_rule_or_by_its_code(named: str) -> None:
    rules = desk_with(more=rule("never", "true") + example(SMALL, "deny", f'rule = "{named}"'))
    assert mine(rules) == ("mine", "deny", "never, POL-003", "deny", True)


# --- what the rules read ---------------------------------------------------------------------


def test_what_every_run_has_is_there() -> None:
    when = "$history.failing == 0 and $agent == 'desk' and $run.calls == 0 and $run.refused == 0"
    rules = desk_with(more=rule("fresh", when, "hold") + example())
    assert said(rules) == ("hold", "fresh")


def test_an_example_may_say_otherwise() -> None:
    when = "$history.failing == 2 and $history.refunds_1m == 0 and $agent == 'ann'"
    given = f'{SMALL}, history = {{ failing = 2 }}, agent = "ann"'
    assert said(desk_with(more=rule("r", when, "hold") + example(given))) == ("hold", "r")


def test_what_an_example_leaves_out_is_missing_and_an_error_denies() -> None:
    denies = rule("denies", "$proposal.amount_minor > 0")
    given = SMALL.replace("age_days = 3", "")
    assert said(desk_with(more=denies + example(given))) == ("deny", "old-order, POL-002")
    left = rule("left", "$workspace.left_minor < 0")
    assert said(desk_with(more=denies + left + example())) == ("deny", "left, POL-002")
    with_it = f"{SMALL}, workspace = {{ left_minor = -1 }}"
    assert said(desk_with(more=left + example(with_it))) == ("deny", "left, POL-003")


def test_the_first_rule_that_denies_is_the_one_that_is_named() -> None:
    more = rule("one", "false") + rule("two", "true") + rule("three", "true")
    assert said(desk_with(more=more + example())) == ("deny", "two, POL-003")
    assert said(desk_with(more=more + example(LARGE))) == ("deny", "desk-limit, POL-003")


def test_what_no_rule_allows_is_denied() -> None:
    rules = desk_with(policy=BARE, more=example(SMALL, "deny"))
    assert mine(rules) == ("mine", "deny", "POL-001", "deny", True)


def test_a_hold_stays_one_though_a_person_may_lift_it() -> None:
    old = SMALL.replace("age_days = 3", "age_days = 91")
    assert said(desk_with(more=example(old))) == ("hold", "old-order")


# --- which rules are asked -------------------------------------------------------------------


def test_rules_are_asked_at_their_stage() -> None:
    more = rule("denies", "true")
    admitted = example("slots = { paid_minor = 1, refunded = false }", more='at = "admission"')
    assert said(desk_with(more=more + admitted)) == ("allow", "paid")
    assert said(desk_with(more=more + example())) == ("deny", "denies, POL-003")


def test_a_rule_about_another_tool_is_not_asked() -> None:
    policy = """
v = "nanovm-policy/1"
name = "p"
[[examples]]
name = "mine"
expect = "allow"
rule = "taking-back"
[examples.given]
tool = "cluster.rollback"
slots = { artifact = "v1", tests_failed = 0, frozen = false, risk = 1 }
"""
    program = gate()
    found = mine(program.under(load_policy(policy.encode(), program)))
    assert found.good, found


def test_a_soft_rule_that_the_policy_lifts_is_not_asked() -> None:
    old = SMALL.replace("age_days = 3", "age_days = 91")
    lifts = ('name = "refund-desk"', 'name = "refund-desk"\nlifts = ["old-order"]')
    assert said(desk_with(lifts, more=example(old))) == ("allow", "small-or-signed")


def test_a_hard_rule_is_asked_whatever_a_policy_claims_to_lift() -> None:
    rules = desk_with(more=example(LARGE))
    lifting = replace(rules.policy, lifts=("desk-limit", "old-order"))
    assert said(replace(rules, policy=lifting)) == ("deny", "desk-limit, POL-003")


def test_a_tool_that_is_not_granted_is_denied_before_any_rule() -> None:
    for tool in ("mail.apologise", "wire.transfer"):
        rules = desk_with(more=rule("all", "true", "allow") + example(f'tool = "{tool}"'))
        assert said(rules) == ("deny", "CAP-001")


# --- slips of the pen ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("slots = { age_days = 3 }", "says of no tool that it is proposed"),
        (SMALL.replace("age_days", "age_day"), "gives slots.age_day, but there is no such"),
        (SMALL.replace("amount_minor", "amount"), "gives proposal.amount, but there is no such"),
        (f"{SMALL}, history = {{ refund_1m = 6 }}", "gives history.refund_1m, but there is no"),
        (f"{SMALL}, workspace = {{ left = 6 }}", "gives workspace.left, but there is no such"),
        (SMALL.replace("= 3", "= '3'"), "gives slots.age_days, but it is no integer"),
        (SMALL.replace("= 3", "= true"), "gives slots.age_days, but it is no integer"),
        (SMALL.replace("age_days = 3", "refunded = 1"), "slots.refunded, but it is no boolean"),
        (SMALL.replace("age_days = 3", "order = 1"), "gives slots.order, but it is no string"),
    ],
)
def test_an_example_that_gives_what_there_is_not_is_an_error(given: str, text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        list(run_examples(desk_with(more=example(given))))
    assert caught.value.code == "PRG-004"
    assert caught.value.text.startswith("policy refund-desk: example 'mine' ")
    assert text in caught.value.text


# --- the gate --------------------------------------------------------------------------------


def facts(amount: int, age: int, failing: int, signed: bool) -> Facts:
    """What the gate may know where this many of six calls failed last."""
    more = {"signed_by": "ada"} if signed else {}
    ends = ["done"] * (6 - failing) + ["failed"] * failing
    calls = [(n, outcome) for n, end in enumerate(ends) for outcome in ("called", end)]
    return Facts(
        slots=slots_of(paid_minor=amount, age_days=age, **more),
        ledger=dict.fromkeys(("workspace/EUR", "global/EUR", "agent/calls"), 10**9),
        history=tuple(Recorded(n, TOOL, outcome) for n, outcome in calls),
        agent="desk",
        at_ms=10,
    )


def judged(known: Facts) -> tuple[str, str]:
    """What the gate itself says of the faithful proposal."""
    args = args_of(amount_minor=known.slots["paid_minor"])
    try:
        allowed = DESK.gate.permit(Call(TOOL, args), known)  # type: ignore[arg-type]
    except RefusedError as error:
        return "deny", error.code
    return "hold" if allowed.hold else "allow", ", ".join(allowed.rules)


def test_an_example_has_the_outcome_that_the_gate_gives() -> None:
    corners = product((100, 10_000, 10_001, 40_000, 40_001), (90, 91), (0, 2, 3), (False, True))
    outcomes = set()
    for amount, age, failing, signed in corners:
        sign = ', signed_by = "ada"' if signed else ""
        given = (
            f'tool = "{TOOL}", slots = {{ age_days = {age}{sign} }}, '
            f"proposal = {{ amount_minor = {amount} }}, "
            f"history = {{ refunds_1m = 6, failing = {failing} }}"
        )
        outcome, name = judged(facts(amount, age, failing, signed))
        found = mine(desk_with(more=example(given)))
        assert (found.outcome, found.rule.split(", ")[-1]) == (outcome, name)
        outcomes.add(name)
    assert outcomes == {"small-or-signed", "old-order", "something-is-wrong", "POL-002", "POL-003"}
