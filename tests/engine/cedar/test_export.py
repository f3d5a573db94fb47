"""A policy exported as Cedar decides generated calls as ours does, and says what does not map."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from engine.cedar.export import exported
from engine.cedar.port import CedarDecider
from nanovm_core.conditions import parse
from nanovm_core.core.authority.capabilities import ArgSpec, Grant, Tool
from nanovm_core.core.authority.policy import DENY_ALL, OUTCOME, PolicyRule
from nanovm_core.core.gate import Facts
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import Call
from nanovm_core.errors import RefusedError
from tests.core.gate import cashier
from tests.core.kit.builders import program
from tests.engine.cedar.calls import ALLOW, DENY, GOOD, Case, cases, cedars, drawn, ours

SEED = 36


def shipped() -> Program:
    """The shipped program under its policy, but for rules that Cedar does not have."""
    of = program()
    out = [each for each in exported(of).unmapped if "it is left out" in each]

    def kept(rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
        return tuple(r for r in rules if not any(each.startswith(f"rule {r.id}:") for each in out))

    return replace(of, rules=kept(of.rules), policy=replace(of.policy, rules=kept(of.policy.rules)))


def decider_of(of: Program) -> CedarDecider:
    found = exported(of)
    return CedarDecider(found.policies, found.schema)


def agree(of: Program, dice: Random, count: int) -> Counter[str]:
    """Compare on this many calls; how often each verdict came."""
    decider, met = decider_of(of), Counter[str]()
    for case in cases(of, dice, count):
        said = ours(of, case)
        assert cedars(of, decider, case) == said, case
        met[said if said in (ALLOW, DENY) else "hold"] += 1
    return met


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_the_default_policy_decides_alike_in_cedar(count: int) -> None:
    met = agree(shipped(), Random(SEED), count)  # noqa: S311 - it chooses examples
    assert min(met[each] for each in (ALLOW, DENY, "hold")) > count // 20, met


@pytest.mark.parametrize(
    ("policies", "count"), [(20, 8), pytest.param(50, 200, marks=pytest.mark.soak)]
)
def test_generated_policies_decide_alike_in_cedar(policies: int, count: int) -> None:
    dice, met, base = Random(SEED), Counter[str](), shipped()  # noqa: S311
    for _ in range(policies):
        met += agree(drawn(base, dice), dice, count)
    assert min(met[each] for each in (ALLOW, DENY, "hold")) > policies * count // 20, met


def test_a_rule_that_was_changed_on_one_side_is_found() -> None:
    of, dice = shipped(), Random(SEED)  # noqa: S311 - it chooses examples
    decider = decider_of(of)
    asked = [(case, ours(of, case)) for case in cases(of, dice, 3_000)]
    changed = [*changes(of)]
    unseen = [what for what, other in changed if not parted(other, asked, decider, of)]
    assert (len(changed) > 60, unseen) == (True, [])


def parted(
    other: Program, asked: Sequence[tuple[Case, str]], decider: CedarDecider, of: Program
) -> bool:
    """Whether a changed program decides a case as neither the first nor Cedar does."""
    decided = ((case, said, ours(other, case)) for case, said in asked)
    otherwise = ((case, new) for case, said, new in decided if new != said)
    return any(new != cedars(of, decider, case) for case, new in otherwise)


def changes(of: Program) -> Iterator[tuple[str, Program]]:
    """The program without each rule that Cedar has, and with each changed in one way."""
    for part in ("rules", "policy"):
        rules = of.rules if part == "rules" else of.policy.rules
        for place, rule in enumerate(rules):
            for what, other in _changed(rule) if rule.at != OUTCOME else ():
                after = (*rules[:place], *other, *rules[place + 1 :])
                policy = of.policy if part == "rules" else replace(of.policy, rules=after)
                own = after if part == "rules" else of.rules
                yield f"{rule.id} {what}", replace(of, rules=own, policy=policy)


def _changed(rule: PolicyRule) -> Iterator[tuple[str, tuple[PolicyRule, ...]]]:
    text = rule.when.text
    yield "is gone", ()
    yield "is turned round", (replace(rule, when=parse(f"not ({text})")),)
    yield "denies", (replace(rule, outcome="deny"),)
    for found in rule.when.comparisons():
        if type(found.literal) is int:
            more = re.sub(rf"\b{found.literal}\b", str(found.literal - 1), text)
            yield f"{found.literal} is one less", (replace(rule, when=parse(more)),)
    if rule.approvable:
        yield "cannot be approved", (replace(rule, approvable=False),)


# --- what does not map is said ----------------------------------------------------------------


def under(*rules: str) -> Program:
    """The shipped program under rules of these tables in TOML."""
    tables = "".join(f"[[rules]]\nid = 'r{n}'\nwhy = 'w'\n{each}\n" for n, each in enumerate(rules))
    return program(f"v = 'nanovm-policy/1'\nname = 'p'\n{tables}".encode())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("at = 'outcome'\noutcome = 'suspend'\nwhen = '$result.failed'", "a call that has ended"),
        ("at = 'admission'\noutcome = 'suspend'\nwhen = '$slots.has_iban'", "suspends no agent"),
        ("at = 'admission'\noutcome = 'deny'\nwhen = '$slots.hold in \"ab\"'", "it is left out"),
        ("at = 'admission'\noutcome = 'deny'\nwhen = '$slots.hold in $slots.bill'", "is a literal"),
    ],
)
def test_what_cedar_does_not_have_is_said_in_the_file_too(table: str, said: str) -> None:
    (found, text) = exported(under(table)), "rule r0: "
    (line,) = (each for each in found.unmapped if each.startswith(text))
    assert said in line
    assert f"// Not in Cedar: {line}\n" in found.policies
    assert ('@id("r0")' in found.policies) == ("suspends no agent" in said)


def test_budgets_and_an_advisors_word_are_said() -> None:
    rule = "at = 'admission'\noutcome = 'deny'\nwhen = '$slots.%s > 90'"
    assert exported(under(rule % "pages")).unmapped == ()
    (line,) = exported(under(rule % "risk_score")).unmapped
    assert "reads slots.risk_score, an advisor's word" in line
    assert any("budget workspace/money" in each for each in exported(program()).unmapped)


def test_facts_that_double_each_time_are_not_written_out() -> None:
    facts = ["[[facts]]\nname = 'f0'\nwhen = '$slots.has_iban'\n"]
    facts += [f"[[facts]]\nname = 'f{n}'\nwhen = '$fact.f{n - 1} == $fact.f{n - 1}'\n"
              for n in range(1, 40)]  # fmt: skip
    rule = (
        "[[rules]]\nid = 'r'\nwhy = 'w'\nat = 'admission'\noutcome = 'deny'\nwhen = '$fact.f39'\n"
    )
    of = program(f"v = 'nanovm-policy/1'\nname = 'p'\n{''.join(facts)}{rule}".encode())
    assert [each for each in exported(of).unmapped if "over 65536 characters" in each]


def test_a_slot_that_bears_a_word_of_cedar_is_read() -> None:
    of = program()
    slots = {**of.slots, "in": of.slots["has_iban"]}
    rule = replace(of.policy.rules[0], id="r", outcome="deny", when=parse("not $slots.in"))
    of = replace(of, slots=slots, policy=replace(of.policy, rules=(*of.policy.rules, rule)))
    decider = decider_of(of)
    found = [Case("", {**GOOD, "slots.in": value}, ()) for value in (True, False, None)]
    assert [cedars(of, decider, each) for each in found] == [ALLOW, DENY, DENY]


CALLS: Sequence[Mapping[str, object]] = (
    {"tags": ("a", "b")},
    {"tags": (), "reply": "x", "paid": 0},
    {"tags": ("b",), "paid": 9_870},
)
OWN = """
@id("own") @why("It is not wanted.") forbid(principal, action, resource) when {
  context has tool &&
  (context.proposal.tags.contains("a") || (context.proposal has paid && context.proposal.paid > 5))
};
"""


def test_cedar_is_shown_lists_decimals_and_what_may_be_absent() -> None:
    args = {
        "tags": ArgSpec(type="list", of="string"),
        "reply": ArgSpec(type="string", optional=True),
        "paid": ArgSpec(type="decimal", currency="EUR", optional=True),
    }
    of = replace(
        program(),
        tools={"t": Tool(name="t", args=args)},
        grants={"t": Grant(tool="t")},
        rules=(cashier.rule("r", "allow", "true"),),
        policy=DENY_ALL,
        steps={},
        slots={},
        facts=(),
        budgets=(),
        windows=(),
    )
    found = exported(of)
    assert '"tags": Set<String>, "reply"?: String, "paid"?: Long' in found.schema
    gate = replace(of, decider=CedarDecider(found.policies + OWN, found.schema)).gate
    assert gate.permit(Call("t", CALLS[1]), Facts(agent="a")).rules == ("r", "r")
    for unwanted in (Call("t", CALLS[0]), Call("t", CALLS[2])):
        with pytest.raises(RefusedError, match="POL-003"):
            gate.permit(unwanted, Facts(agent="a"))
