"""The gate: one decision over everything, and a second opinion on ten thousand proposals."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from nanovm_core.core.authority.budget import Limits
from nanovm_core.core.authority.capabilities import Constraint, Grant, Money, Tool
from nanovm_core.core.authority.policy import Policy, Window
from nanovm_core.core.gate import Facts, Gate, compile_gate
from nanovm_core.core.gate.why import five
from nanovm_core.core.proposals import Call
from nanovm_core.errors import ProgramError, RefusedError
from tests.core.gate import gate_worlds as worlds
from tests.core.gate.cashier import NOW_MS, PAY, SMALL, call, facts, gate, rule
from tests.core.gate.gate_oracle import Yes, opinion


def answer(of: Gate, proposed: Call, known: Facts, accepts: tuple[str, ...] | None = None) -> str:
    """What the gate says: the rules that allow, the rule that holds, or the code."""
    try:
        allowed = of.dry_run(proposed, known, accepts)
    except RefusedError as error:
        return error.code
    return f"held by {allowed.hold.id}" if allowed.hold else " ".join(allowed.rules)


BATCHES, WORLDS, CALLS = 11, 100, 10  # over 10,000 proposals for granted tools
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, BATCHES))]


def judged(of: Gate, proposed: Call, known: Facts, accepts: tuple[str, ...]) -> Yes | str:
    """The gate's answer in the oracle's words; its explanation must end in the same answer."""
    findings = of.explain(proposed, known, accepts)
    refused = [(each.code, each.refusal) for each in findings if each.code]
    assert {each.holds for each in findings if each.code} <= {False}
    states = {each.state for each in five(findings)}
    try:
        found = of.dry_run(proposed, known, accepts)
    except RefusedError as error:
        assert "refused" in states
        return error.code if refused[0] == (error.code, error.text) else "explained otherwise"
    assert {each.holds for each in findings} <= {True, None}
    policy = [each.holds for each in findings if each.check == "policy"]
    assert policy == [None if found.hold else True]
    assert ("held" in states, "refused" in states) == (found.hold is not None, False)
    return Yes(dict(found.args), found.rules, found.hold.id if found.hold else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_gate_explanation_and_oracle_agree_on_every_proposal(seed: int) -> None:
    dice = Random(seed)  # noqa: S311  # it chooses examples
    granted, said = 0, Counter[str]()
    for _ in range(WORLDS):
        of = worlds.world(dice)
        compiled = compile_gate(**of._asdict())
        for _ in range(CALLS):
            known = worlds.facts(dice, of)
            proposed = worlds.proposal(dice, of, known)
            accepts = ("pay", "mail") if dice.random() < 0.95 else ("mail",)
            expected = opinion(of, proposed.tool, proposed.args, known, accepts)
            found = judged(compiled, proposed, known, accepts)
            assert found == expected, (of, proposed, known)
            granted += proposed.tool in of.grants
            said["yes" if isinstance(found, Yes) else found] += 1
    assert granted >= 10_000 / BATCHES
    assert said["yes"] >= 100
    assert len(said) >= 15  # fifteen codes at least, in every batch


def test_good_call_is_allowed_with_its_arguments_and_the_rule() -> None:
    found = gate().dry_run(call(payee="{{payee}}"), facts(), ("pay",))
    assert dict(found.args) == {**call().args}
    assert (found.rules, found.hold) == (("small",), None)


def test_limit_is_zero_where_nobody_set_it_and_not_asked_where_only_permission_is() -> None:
    assert answer(gate(limits=Limits()), call(), facts()) == "BUD-001"
    poor = facts(ledger={}, used={"calls": 3}, started_ms=1)
    assert gate().permit(call(), poor).rules == ("small",)
    assert answer(gate(), call(), poor) == "BUD-002"


def test_call_that_belongs_elsewhere_is_refused_last() -> None:
    assert answer(gate(), call(), facts(), ("note",)) == "CAP-002"
    assert answer(gate(), call(), facts(), ()) == "CAP-002"
    assert answer(gate(), call(amount=499), facts(), ()) == "POL-010"
    with pytest.raises(RefusedError, match="CAP-002"):
        gate().permit(call(), facts(), ("note",))


def uncountable(amount: str = "amount", currency: str = "currency") -> dict[str, Any]:
    """A tool that does not say how much money it moves."""
    tool = Tool(name="pay", args=PAY.args, money=Money(amount=amount, currency=currency))
    return {"tools": {"pay": tool}, "grants": {"pay": Grant(tool="pay")}}


@pytest.mark.parametrize("changes", [
    {"rules": (SMALL, SMALL)},
    {"rules": (rule("unknown-outcome", "hold", "true"),)},
    {"rules": (SMALL,), "policy": Policy(name="p", hash="0", rules=(SMALL,))},
    {"windows": (Window(name="w", counts="calls"), Window(name="w", counts="failures"))},
    {"grants": {"absent": Grant(tool="absent")}},
    {"grants": {"pay": Grant(tool="note")}},
    {"grants": {"pay": Grant(tool="pay", where={"absent": Constraint(min=1)})}},
    {"tools": {"pay": Tool(name="pay"), "note": Tool(name="note")}},
    uncountable(amount="memo"),
    uncountable(currency="amount"),
    uncountable(currency=""),
])  # fmt: skip
def test_gate_of_a_program_that_contradicts_itself_is_not_compiled(changes: dict[str, Any]) -> None:
    with pytest.raises(ProgramError):
        gate(**changes)


@pytest.mark.parametrize(("bad", "code"), [
    (call("wire"), "CAP-001"),
    (call(extra=1), "CAP-003"),
    (call(amount=5_001), "CAP-006"),
    (call(amount=499), "POL-010"),
    (call(payee="{{payee}}"), "CAP-005"),
])  # fmt: skip
def test_own_use_is_held_to_grant_schema_and_provenance(bad: Call, code: str) -> None:
    with pytest.raises(RefusedError, match=code):
        gate().permit_own(bad, facts())


def test_own_use_ends_with_the_grant_is_held_to_no_rule_and_fills_no_placeholder() -> None:
    of = gate(grants={"pay": Grant(tool="pay", expires_ms=NOW_MS)})
    with pytest.raises(RefusedError, match="CAP-007"):
        of.permit_own(call(), facts())
    own = call(memo="{{payee}}")
    found = gate(rule("no", "deny", "true")).permit_own(own, facts(ledger={}))
    assert dict(found) == dict(own.args)


def test_model_is_asked_only_where_admission_allows() -> None:
    assert gate().admit(facts()).rules == ("open",)
    for slots, code in (({"open": False}, "POL-001"), ({"open": None}, "POL-002")):
        with pytest.raises(RefusedError, match=code):
            gate().admit(facts(slots=slots))


def test_answer_cannot_be_changed_and_does_not_follow_its_argument() -> None:
    args = dict(call().args)
    allowed = gate().dry_run(Call("pay", args), facts())
    args["amount"] = 1
    assert allowed.args["amount"] == 500
    with pytest.raises(TypeError):
        allowed.args["amount"] = 1  # type: ignore[index]
