"""The why of a decision: every check told, in agreement with the decision, and no secret in it."""

from collections import Counter
from random import Random

from nanovm_core.core.gate import Facts, Finding, Gate
from nanovm_core.core.proposals import Call
from nanovm_core.errors import RefusedError
from tests.core.gate import gate_worlds as worlds
from tests.core.gate.cashier import NOW_MS, call, facts, gate, rule
from tests.core.kit.builders import ref


def told(of: Gate, proposed: Call, known: Facts, *accepts: str) -> dict[tuple[str, str], Finding]:
    """The findings by check and subject; none is told twice."""
    found = of.explain(proposed, known, accepts or None)
    by = {(each.check, each.subject): each for each in found}
    assert len(by) == len(found)
    return by


def test_accepted_call_is_explained_check_by_check() -> None:
    found = told(gate(), call(), facts(), "pay")
    assert {key: each.holds for key, each in found.items()} == {
        ("tool", "pay"): True,
        ("grant", "pay"): True,
        ("schema", ""): True,
        **{("schema", name): True for name in ("amount", "currency", "payee", "memo")},
        ("constraint", "amount"): True,
        ("policy", ""): True,
        ("rule", "small"): True,
        **{("provenance", name): True for name in ("amount", "currency", "payee")},
        ("budget", "run/calls"): True,
        ("budget", "agent/calls"): True,
        ("budget", "run/EUR"): True,
        ("budget", "workspace/EUR"): True,
        ("budget", "run/time"): True,
        ("step", "pay"): True,
    }
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
    told_of = {name: found["rule", name] for name in ("no", "not-now", "wait", "odd")}
    assert {name: each.holds for name, each in told_of.items()} == {
        "no": False,
        "not-now": None,
        "wait": None,
        "odd": False,
    }
    assert "A person must look" in told_of["wait"].text
    assert found["policy", ""].holds is False
    lifted = told(gate(rules[2]), call(), facts(approved=("wait",)))["rule", "wait"]
    assert (lifted.holds, lifted.text) == (True, "A person lifted it.")


def test_held_call_is_neither_refused_nor_allowed() -> None:
    found = told(gate(rule("wait", "hold", "true")), call(), facts())
    assert found["policy", ""] == Finding("policy", "", None, "Held by wait.")
    assert not any(each.holds is False for each in found.values())


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


def test_explanation_and_decision_agree_in_every_world() -> None:
    dice, said = Random(5), Counter[str]()  # noqa: S311  # it chooses examples
    for _ in range(150):
        of = worlds.world(dice)
        compiled = worlds.compiled(of)
        for _ in range(10):
            known = worlds.facts(dice, of)
            proposed = worlds.proposal(dice, of, known)
            accepts = ("pay", "mail") if dice.random() < 0.95 else ("mail",)
            given = Call(proposed.tool, proposed.args)
            found = compiled.explain(given, known, accepts)
            verdict = {(each.check, each.subject): each.holds for each in found}
            refused = [(each.code, each.refusal) for each in found if each.code]
            assert {each.holds for each in found if each.code} <= {False}
            allowed, no = None, None
            try:
                allowed = compiled.dry_run(given, known, accepts)
            except RefusedError as error:
                no = (error.code, error.text)
            assert next(iter(refused), None) == no, (given, known)
            if allowed is not None:
                assert False not in verdict.values(), (given, known)
                assert verdict["policy", ""] is (None if allowed.hold else True)
            said["no" if no else "yes"] += 1
    assert min(said.values()) > 150


def test_asking_why_spends_nothing_and_raises_nothing() -> None:
    odd = Call("pay", {"amount": None, "x": {"y": [1]}})
    assert gate().explain(odd, Facts()) == gate().explain(odd, Facts())
    assert told(gate(), call(), facts(at_ms=NOW_MS)) == told(gate(), call(), facts())
