"""Policy tests: the examples of a policy, evaluated by its rules."""

from dataclasses import replace

import pytest

from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_policy, load_program
from nanovm_core.policy_tests import ExampleResult, run_examples
from tests.core.kit.builders import ROOT
from tests.core.kit.refund_desk import DESK, TOOL, desk_with

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
    return next(each for each in run_examples(rules) if each.name == "mine")


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


ALL = rule("all", "true", "allow")
DENIES = rule("denies", "$proposal.amount_minor > 0")
LEFT = rule("left", "$workspace.left_minor < 0")
ROW = rule("one", "false") + rule("two", "true") + rule("three", "true")
NEVER = rule("never", "true")
AGED = SMALL.replace("age_days = 3", "age_days = 91")
FRESH = "$history.failing == 0 and $agent == 'desk' and $run.calls == 0 and $run.refused == 0"
OTHER = "$history.failing == 2 and $history.refunds_1m == 0 and $agent == 'ann'"
ADMITTED = example("slots = { paid_minor = 1, refunded = false }", more='at = "admission"')
YOUNG = '[[facts]]\nname = "young"\nwhen = "$slots.age_days < 9"\n'
AFTER = YOUNG + rule("after", "$result.failed and $fact.young", "suspend").replace(
    '"authorize"', '"outcome"'
)
FAILED = example(f"{SMALL}, result = {{ failed = true }}", more='at = "outcome"')
CASES = {
    "a suspension outweighs a hold": (
        rule("h", "true", "hold") + rule("s", "true", "suspend") + example(),
        *("suspend", "s"),
    ),
    "after the call only a suspension is left": (AFTER + FAILED, "suspend", "after"),
    "a rule without an answer suspends there": (
        AFTER + FAILED.replace("age_days = 3", ""),
        *("suspend", "after"),
    ),
    "a call is no failure unless it says so": (
        AFTER + example(more='at = "outcome"'),
        *("allow", ""),
    ),
    "what every run has is there": (rule("fresh", FRESH, "hold") + example(), "hold", "fresh"),
    "an example may say otherwise": (
        rule("r", OTHER, "hold") + example(f'{SMALL}, history = {{ failing = 2 }}, agent = "ann"'),
        *("hold", "r"),
    ),
    "an error denies, also behind a rule that denies": (
        DENIES + example(SMALL.replace("age_days = 3", "")),
        *("deny", "old-order, POL-002"),
    ),
    "what an example leaves out is missing": (
        DENIES + LEFT + example(),
        *("deny", "left, POL-002"),
    ),
    "what it gives is there": (
        LEFT + example(f"{SMALL}, workspace = {{ left_minor = -1 }}"),
        *("deny", "left, POL-003"),
    ),
    "the first rule that denies is named": (ROW + example(), "deny", "two, POL-003"),
    "the program's rules come first": (ROW + example(LARGE), "deny", "desk-limit, POL-003"),
    "a hold that a person may lift is one": (example(AGED), "hold", "old-order"),
    "rules at authorize say nothing of admission": (NEVER + ADMITTED, "allow", "paid"),
    "rules at authorize are asked there": (NEVER + example(), "deny", "never, POL-003"),
    "the program's own tool is not granted": (
        ALL + example('tool = "mail.apologise"'),
        *("deny", "CAP-001"),
    ),
    "no tool of that name is granted": (ALL + example('tool = "wire.transfer"'), "deny", "CAP-001"),
}


@pytest.mark.parametrize(("more", "outcome", "name"), CASES.values(), ids=CASES)
def test_the_rules_decide_as_in_the_gate(more: str, outcome: str, name: str) -> None:
    assert mine(desk_with(more=more))[1:3] == (outcome, name)


def test_what_no_rule_allows_is_denied() -> None:
    rules = desk_with(policy=BARE, more=example(SMALL, "deny"))
    assert mine(rules) == ("mine", "deny", "POL-001", "deny", True)


def test_a_rule_about_another_tool_is_not_asked() -> None:
    given = (
        'tool = "cluster.rollback", '
        'slots = { artifact = "v1", tests_failed = 0, frozen = false, risk = 1 }'
    )
    program = load_program((ROOT / "tests/vectors/gate.toml").read_bytes())
    policy = load_policy((BARE + example(given, more='rule = "taking-back"')).encode(), program)
    assert mine(program.under(policy)).good


def test_a_soft_rule_is_lifted_and_a_hard_one_is_not() -> None:
    lifts = ('name = "refund-desk"', 'name = "refund-desk"\nlifts = ["old-order"]')
    assert mine(desk_with(lifts, more=example(AGED)))[1:3] == ("allow", "small-or-signed")
    rules = desk_with(more=example(LARGE))  # a policy that was put together without its checks
    lifting = replace(rules.policy, lifts=("desk-limit", "old-order"))
    assert mine(replace(rules, policy=lifting))[1:3] == ("deny", "desk-limit, POL-003")


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
