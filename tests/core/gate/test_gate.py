"""The gate: one decision over everything, and a second opinion on ten thousand proposals."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.budget import Limits
from nanovm_core.core.capabilities import ArgSpec, Constraint, Grant, Money, Tool, grant_id
from nanovm_core.core.gate import Facts, Gate
from nanovm_core.core.messages import Recorded
from nanovm_core.core.policy import Policy, Window
from nanovm_core.core.proposals import Call
from nanovm_core.errors import NanovmError, ProgramError, RefusedError
from tests.core.gate import gate_worlds as worlds
from tests.core.gate.cashier import NOW_MS, PAY, SMALL, call, facts, gate, rule
from tests.core.gate.gate_oracle import World, Yes, opinion
from tests.core.kit.builders import ref


def answer(of: Gate, proposed: Call, known: Facts, accepts: tuple[str, ...] | None = None) -> str:
    """What the gate says: the rules that allow, the rule that holds, or the code."""
    try:
        allowed = of.dry_run(proposed, known, accepts)
    except RefusedError as error:
        return error.code
    return f"held by {allowed.hold.id}" if allowed.hold else " ".join(allowed.rules)


# --- a second opinion ------------------------------------------------------------------------

BATCHES, WORLDS, CALLS = 11, 100, 10  # over 10,000 proposals for granted tools
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, BATCHES))]


def judged(of: World, gate: Gate, proposed: worlds.Proposed, known: Facts, accepts: Any) -> Any:
    """The gate's answer in the oracle's words."""
    try:
        found = gate.dry_run(Call(proposed.tool, proposed.args), known, accepts)
    except RefusedError as error:
        return error.code
    return Yes(dict(found.args), found.rules, found.hold.id if found.hold else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_gate_and_oracle_agree_on_every_proposal(seed: int) -> None:
    dice = Random(seed)  # noqa: S311  # it chooses examples
    granted, said = 0, Counter[str]()
    for _ in range(WORLDS):
        of = worlds.world(dice)
        compiled = worlds.compiled(of)
        for _ in range(CALLS):
            known = worlds.facts(dice, of)
            proposed = worlds.proposal(dice, of, known)
            accepts = ("pay", "mail") if dice.random() < 0.95 else ("mail",)
            expected = opinion(of, proposed.tool, proposed.args, known, accepts)
            found = judged(of, compiled, proposed, known, accepts)
            assert found == expected, (of, proposed, known)
            granted += proposed.tool in of.grants
            said["yes" if isinstance(found, Yes) else found] += 1
    assert granted >= 10_000 / BATCHES
    assert said["yes"] >= 100
    assert len(said) >= 15  # fifteen codes at least, in every batch


# --- by hand, at each boundary ---------------------------------------------------------------


def test_good_call_is_allowed_with_its_arguments_and_the_rule() -> None:
    found = gate().dry_run(call(payee="{{payee}}"), facts(), ("pay",))
    assert dict(found.args) == {**call().args}
    assert (found.rules, found.hold) == (("small",), None)


@pytest.mark.parametrize(
    ("proposed", "code"),
    [
        (call("wire"), "CAP-001"),
        (call(extra=1), "CAP-003"),
        (call(amount=None), "CAP-004"),
        (call(amount="500"), "CAP-005"),
        (call(memo=["x"]), "CAP-005"),
        (call(amount=10_001), "CAP-006"),
        (call(amount=5_001), "CAP-006"),
        (call(amount=1_001), "POL-001"),
        (call(amount=499), "POL-010"),
        (call(payee=ref(2)), "POL-010"),
    ],
)
def test_call_is_refused_with_its_code(proposed: Call, code: str) -> None:
    assert answer(gate(), proposed, facts()) == code


@pytest.mark.parametrize(
    ("memo", "code"),
    [("{{iban}}", "CAP-005"), ("{{open}}", "CAP-005"), ("{{absent}}", "CAP-005"), ("{{ a }}", "")],
)
def test_placeholder_opens_nothing_that_the_model_was_not_shown(memo: str, code: str) -> None:
    assert answer(gate(), call(memo=memo), facts()) == (code or "small")


@pytest.mark.parametrize(
    ("known", "code"),
    [
        ({"ledger": {"workspace/EUR": 499, "agent/calls": 5}}, "BUD-001"),
        ({"ledger": {"workspace/EUR": 500, "agent/calls": 1}}, "small"),
        ({"ledger": {"agent/calls": 5}}, "BUD-006"),
        ({"ledger": {"workspace/EUR": 500, "agent/calls": 0}}, "BUD-002"),
        ({"ledger": {"workspace/EUR": 500}}, "BUD-002"),
        ({"used": {"EUR": 1_500, "calls": 2}}, "small"),
        ({"used": {"EUR": 1_501}}, "BUD-001"),
        ({"used": {"calls": 3}}, "BUD-002"),
        ({"started_ms": NOW_MS - 86_399_999}, "small"),
        ({"started_ms": NOW_MS - 86_400_000}, "BUD-005"),
    ],
)
def test_budget_is_asked_before_a_call_is_allowed(known: dict[str, Any], code: str) -> None:
    assert answer(gate(), call(), facts(**known)) == code


@pytest.mark.parametrize("currency", ["calls", "tokens", "steps", "eur", "", "EURO", "ЕUR"])
def test_free_currency_pays_with_no_other_account(currency: str) -> None:
    args = {**PAY.args, "currency": ArgSpec(type="string")}
    critical = {"amount": PAY.critical["amount"], "payee": PAY.critical["payee"]}
    tool = Tool(name="pay", args=args, critical=critical, money=PAY.money)
    rich = {f"{scope}/{currency}": 10**6 for scope in ("agent", "workspace", "global")}
    known = facts(ledger={**rich, "agent/calls": 10**6}, slots={"amount": 1})
    of = gate(tools={"pay": tool, "note": Tool(name="note")}, limits=Limits(money_minor_max=9))
    assert answer(of, call(currency=currency, amount=1), known) == "BUD-006"
    with pytest.raises(RefusedError, match="BUD-006"):
        of.reserve(of.need("pay", {"currency": currency, "amount": 1}), known)
    assert any(each.holds is False for each in of.explain(call(currency=currency, amount=1), known))


def test_no_budget_is_asked_where_only_permission_is() -> None:
    poor = facts(ledger={}, used={"calls": 3}, started_ms=1)
    assert gate().permit(call(), poor).rules == ("small",)
    assert answer(gate(), call(), poor) == "BUD-002"


def test_call_that_belongs_elsewhere_is_refused_last() -> None:
    assert answer(gate(), call(), facts(), ("note",)) == "CAP-002"
    assert answer(gate(), call(), facts(), ()) == "CAP-002"
    assert answer(gate(), call(amount=499), facts(), ()) == "POL-010"
    with pytest.raises(RefusedError, match="CAP-002"):
        gate().permit(call(), facts(), ("note",))


def test_grant_ends_at_its_time_and_with_the_grant_it_came_from() -> None:
    outer = Grant(tool="pay")
    inner = Grant(tool="pay", expires_ms=NOW_MS + 1, narrowed_from=(grant_id(outer),))
    of = gate(grants={"pay": inner})
    assert answer(of, call(), facts()) == "small"
    assert answer(of, call(), facts(at_ms=NOW_MS + 1)) == "CAP-007"
    for name in (grant_id(inner), grant_id(outer)):
        assert answer(of, call(), facts(revoked=frozenset({name}))) == "CAP-008"
    other = grant_id(Grant(tool="note"))
    assert answer(of, call(), facts(revoked=frozenset({other}))) == "small"


def test_hold_is_told_only_of_a_call_that_is_right_in_all_else() -> None:
    of = gate(rule("wait", "hold", "$proposal.amount > 400", approvable=True))
    assert answer(of, call(), facts()) == "held by wait"
    assert answer(of, call(payee=ref(3)), facts()) == "POL-010"
    assert answer(of, call(), facts(used={"calls": 3})) == "BUD-002"
    assert answer(of, call(), facts(), ()) == "CAP-002"
    assert answer(of, call(), facts(approved=("wait",))) == "small wait"


def test_rule_is_about_its_tools_alone() -> None:
    notes = rule("notes", "deny", "$proposal.text == 'no'", tools=frozenset({"note"}))
    of = gate(notes, rule("any", "allow", "true"))
    assert answer(of, call(), facts()) == "small any"
    assert answer(of, call("note", text="no"), facts()) == "POL-003"
    assert answer(of, call("note", text="yes"), facts()) == "any"


def test_error_in_any_rule_denies_even_beside_a_deny() -> None:
    of = gate(rule("odd", "deny", "$slots.absent"), rule("no", "deny", "true"))
    assert answer(of, call(), facts()) == "POL-002"


def test_history_is_counted_at_the_moment_of_the_call() -> None:
    window = Window(name="calls", counts="calls", within_ms=60_000)
    of = gate(rule("often", "deny", "$history.calls > 1"), windows=(window,))
    past = [Recorded(NOW_MS - age, "pay", "called", "x") for age in (70_000, 60_000, 0)]
    assert answer(of, call(), facts(history=tuple(past[:2]))) == "small"
    assert answer(of, call(), facts(history=tuple(past))) == "POL-003"
    assert answer(of, call(), facts(history=tuple(past), at_ms=NOW_MS - 1)) == "POL-003"
    assert answer(of, call(), facts(history=tuple(past), at_ms=NOW_MS + 1)) == "small"


def test_what_the_workspace_has_left_is_that_of_the_currency() -> None:
    of = gate(rule("poor", "deny", "$workspace.left_minor < 100000"))
    assert answer(of, call(), facts()) == "small"
    assert (
        answer(of, call(), facts(ledger={"workspace/EUR": 99_999, "agent/calls": 1})) == "POL-003"
    )
    assert answer(of, call(), facts(ledger={"workspace/USD": 1})) == "POL-002"


def test_operator_lifts_soft_rules_and_never_hard_ones() -> None:
    no = {level: rule(level, "deny", "true", level=level) for level in ("hard", "soft")}
    lifting = Policy(name="p", hash="0", lifts=("hard", "soft"))
    assert answer(gate(no["soft"]), call(), facts()) == "POL-003"
    assert answer(gate(no["soft"], policy=lifting), call(), facts()) == "small"
    assert answer(gate(no["hard"], policy=lifting), call(), facts()) == "POL-003"


def test_operators_rules_are_judged_beside_the_programs() -> None:
    theirs = Policy(name="p", hash="0", rules=(rule("no", "deny", "$proposal.amount == 500"),))
    assert answer(gate(policy=theirs), call(), facts()) == "POL-003"


def uncountable(amount: str = "amount", currency: str = "currency") -> Tool:
    """A tool that does not say how much money it moves."""
    return Tool(name="pay", args=PAY.args, money=Money(amount=amount, currency=currency))


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": (SMALL, SMALL)},
        {"rules": (rule("unknown-outcome", "hold", "true"),)},
        {"rules": (SMALL,), "policy": Policy(name="p", hash="0", rules=(SMALL,))},
        {"windows": (Window(name="w", counts="calls"), Window(name="w", counts="failures"))},
        {"grants": {"absent": Grant(tool="absent")}},
        {"grants": {"pay": Grant(tool="note")}},
        {"grants": {"pay": Grant(tool="pay", where={"absent": Constraint(min=1)})}},
        {"tools": {"pay": Tool(name="pay"), "note": Tool(name="note")}},
        {"tools": {"pay": uncountable(amount="memo")}, "grants": {"pay": Grant(tool="pay")}},
        {"tools": {"pay": uncountable(currency="amount")}, "grants": {"pay": Grant(tool="pay")}},
        {"tools": {"pay": uncountable(currency="")}, "grants": {"pay": Grant(tool="pay")}},
    ],
)
def test_gate_of_a_program_that_contradicts_itself_is_not_compiled(changes: dict[str, Any]) -> None:
    with pytest.raises(ProgramError):
        gate(**changes)


# --- the program's own use -------------------------------------------------------------------


def test_own_use_is_held_to_grant_schema_and_provenance_but_to_no_rule() -> None:
    of, known = gate(rule("no", "deny", "true")), facts(ledger={})
    assert dict(of.permit_own(call(), known)) == dict(call().args)
    for bad, code in (
        (call("wire"), "CAP-001"),
        (call(extra=1), "CAP-003"),
        (call(amount=5_001), "CAP-006"),
        (call(amount=499), "POL-010"),
        (call(payee="{{payee}}"), "CAP-005"),
    ):
        with pytest.raises(RefusedError, match=code):
            of.permit_own(bad, known)


def test_own_use_ends_with_the_grant() -> None:
    of = gate(grants={"pay": Grant(tool="pay", expires_ms=NOW_MS)})
    with pytest.raises(RefusedError, match="CAP-007"):
        of.permit_own(call(), facts())


def test_own_text_that_looks_like_a_placeholder_stays_text() -> None:
    assert gate().permit_own(call(memo="{{payee}}"), facts())["memo"] == "{{payee}}"


# --- admission, and what may not escape ------------------------------------------------------


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


@settings(derandomize=True, max_examples=200)
@given(st.dictionaries(st.text(max_size=9), st.none() | st.integers() | st.text() | st.booleans()))
def test_any_arguments_are_judged_without_another_error(args: dict[str, Any]) -> None:
    with pytest.raises(NanovmError) as caught:
        gate().dry_run(Call("pay", args), facts())
    assert isinstance(caught.value, RefusedError)


def test_limits_deny_where_nobody_set_them() -> None:
    assert answer(gate(limits=Limits()), call(), facts()) == "BUD-001"
