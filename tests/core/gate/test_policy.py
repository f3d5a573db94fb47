"""Policy: deny over hold over allow, errors deny, silence allows nothing, and windows over time."""

from collections.abc import Mapping

import pytest

from nanovm_core.core.authority.policy import PolicyRule, verdict
from nanovm_core.errors import RefusedError
from tests.core.gate.cashier import call, facts, gate, rule

CONTEXT: Mapping[str, object] = {"slots": {"n": 1, "s": "x"}, "proposal": {"amount_minor": 5}}
TRUE, FALSE, ERROR = "$slots.n == 1", "$slots.n == 2", "$slots.absent == 1"
ALLOW, DENY = rule("a", "allow", TRUE), rule("d", "deny", TRUE)
HELD = rule("h", "hold", TRUE, approvable=True)
SECOND = rule("h2", "hold", TRUE, approvable=True)
FIXED = rule("h", "hold", TRUE, approvable=False)


def judged(*rules: PolicyRule, approved: tuple[str, ...] = ()) -> str:
    """The code of the refusal, the rules that allow, or the rule that holds."""
    try:
        found = verdict(rules, CONTEXT, approved)
    except RefusedError as error:
        return error.code
    assert found.hold is None or found.rules == (found.hold.id,)
    return f"held by {found.hold.id}" if found.hold else " ".join(found.rules)


def test_a_missing_rule_is_named_with_its_stage() -> None:
    with pytest.raises(RefusedError, match='model to be asked: add a rule with at = "admission"'):
        gate(rules=()).admit(facts())
    with pytest.raises(RefusedError, match='this call: add a rule with at = "authorize"'):
        gate(rules=()).permit(call(), facts())


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
        verdict([DENY], CONTEXT)
    with pytest.raises(RefusedError, match=r"Rule e could not be evaluated \(CON-020\)"):
        verdict([rule("e", "allow", ERROR)], CONTEXT)


def test_every_rule_is_asked_though_one_before_it_errs() -> None:
    with pytest.raises(RefusedError, match=r"could not be evaluated") as refused:
        verdict([rule("e", "allow", ERROR), rule("s", "suspend", TRUE)], CONTEXT)
    assert [each.id for each in refused.value.fired] == ["s"]
