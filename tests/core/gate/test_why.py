"""The why of a decision: every check told, in agreement with the decision, and no secret in it."""

import pytest

from nanovm_core.core.authority.budget import Limits
from nanovm_core.core.authority.windows import Window
from nanovm_core.core.gate import Facts, Finding, Gate
from nanovm_core.core.gate.why import five
from nanovm_core.core.proposals import Call
from tests.core.gate.cashier import call, facts, gate, rule
from tests.core.kit.builders import ref


def told(of: Gate, proposed: Call, known: Facts, *accepts: str) -> dict[tuple[str, str], Finding]:
    """The findings by check and subject; none is told twice."""
    found = of.explain(proposed, known, accepts or None)
    by = {(each.check, each.subject): each for each in found}
    assert len(by) == len(found)
    return by


def test_accepted_call_is_explained_check_by_check() -> None:
    found = told(gate(), call(), facts(), "pay")
    assert {each.holds for each in found.values()} == {True}
    assert [*found] == [
        *(("tool", "pay"), ("grant", "pay"), ("schema", "")),
        *(("schema", name) for name in ("amount", "currency", "payee", "memo")),
        *(("constraint", "amount"), ("policy", ""), ("rule", "small")),
        *(("provenance", name) for name in ("amount", "currency", "payee")),
        *(("budget", f"{account}/calls") for account in ("run", "agent")),
        *(("budget", name) for name in ("run/EUR", "workspace/EUR", "run/time")),
        ("step", "pay"),
    ]
    assert all(each.text for each in found.values())
    assert "'payee'" in found["provenance", "payee"].text
    assert found["budget", "workspace/EUR"].text == "100000 left, 500 needed."
    parts = found["rule", "small"].parts
    assert [(each.text, each.value) for each in parts] == [
        ("$proposal.amount <= 1000", True),
        ("$proposal.amount", 500),
        ("1000", 1000),
    ]


def test_what_cannot_be_reached_says_neither_yes_nor_no() -> None:
    found = told(gate(), call(amount=None), facts())
    for key in (("schema", "amount"), ("constraint", "amount"), ("provenance", "amount")):
        assert found[key].holds is None
    assert found["policy", ""].holds is None
    assert ("rule", "small") not in found
    assert ("step", "pay") not in found


def test_each_rule_tells_what_it_did() -> None:
    rules = [
        rule("no", "deny", "$proposal.amount == 500"),
        rule("not-now", "deny", "$proposal.amount == 501"),
        rule("wait", "hold", "$slots.open", approvable=True),
        rule("odd", "allow", "$slots.absent"),
    ]
    found = told(gate(*rules), call(), facts())
    holds = [found["rule", name].holds for name in ("no", "not-now", "wait", "odd")]
    assert holds == [False, None, None, False]
    assert "A person must approve" in found["rule", "wait"].text
    assert found["policy", ""].holds is False
    lifted = told(gate(rules[2]), call(), facts(approved=("wait",)))["rule", "wait"]
    assert (lifted.holds, lifted.text) == (True, "Approved by a person.")


WAITS = rule("wait", "hold", "true", check="anomaly")
ASKS = rule("new", "hold", "$slots.open", at="admission", check="anomaly")


@pytest.mark.parametrize(("of", "proposed", "states"), [
    (gate(), call(), ("passed", "passed", "passed", "not reached")),
    (gate(), call("wire"), ("not reached", "refused", "not reached", "not reached")),
    (gate(), call(amount="5"), ("refused", "not reached", "passed", "not reached")),
    (gate(), call(amount=501), ("passed", "refused", "passed", "not reached")),
    (gate(limits=Limits()), call(), ("passed", "passed", "refused", "not reached")),
    (gate(WAITS), call(), ("passed", "passed", "passed", "held")),
    (gate(ASKS), call(), ("passed", "passed", "passed", "held")),
])  # fmt: skip
def test_each_finding_is_of_one_of_five_checks(
    of: Gate, proposed: Call, states: tuple[str, ...]
) -> None:
    found = five(of.explain(proposed, facts()))
    assert tuple(each.state for each in found) == (*states, "not reached")
    assert [each.name for each in found] == ["schema", "permission", "rate", "anomaly", "audit"]


def test_a_rule_that_counts_calls_is_of_the_rate() -> None:
    often = rule("often", "deny", "$history.lately > 0")
    lately = Window(name="lately", counts="calls", within_ms=1_000)
    _, permission, rate, *_ = five(
        gate(often, windows=(lately,)).explain(call(), facts(counts={"lately": 1}))
    )
    assert (permission.state, rate.state) == ("passed", "refused")


def test_no_ref_and_no_unclear_value_is_shown() -> None:
    secret = rule("odd", "deny", f"$slots.iban == $proposal.payee or $slots.payee == '{ref(8)}'")
    found = gate(secret).explain(call(memo="Shoes"), facts())
    shown = "".join(f"{each.text}{[part.value for part in each.parts]}" for each in found)
    assert ref(1) not in shown
    assert ref(2) not in shown
    assert "Shoes" not in shown
    assert "(a vault ref)" in shown


def test_name_that_the_model_made_up_is_not_repeated() -> None:
    for proposed in (call("IBAN DE89"), Call("pay", {"IBAN DE89": 1})):
        assert "DE89" not in str(gate().explain(proposed, facts()))
