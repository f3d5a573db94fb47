"""The shortcut: what it lets through the judge lets through, and the usual call it lets through."""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from nanovm_core.conditions import parse
from nanovm_core.core.capabilities import ArgSpec, Constraint, Grant, Source, Tool
from nanovm_core.core.gate.shortcut import shortcut
from nanovm_core.core.gate.tool_guard import Allowed, Facts, Passage, passage
from nanovm_core.core.messages import Recorded
from nanovm_core.core.policy import PolicyRule, Window
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.errors import RefusedError
from tests.core.gate.cashier import rule
from tests.core.gate.gate_worlds import CURRENCIES, MODES, NOW_MS, WINDOWS, condition
from tests.core.kit.builders import ref

TOOL = Tool(
    name="pay",
    args={
        "amount": ArgSpec(type="integer", min=1, max=9_000),
        "currency": ArgSpec(type="string", length_max=3),
        "payee": ArgSpec(type="ref"),
    },
    critical={name: Source(slot=name) for name in ("amount", "currency", "payee")},
)
SLOTS: Mapping[str, Any] = {
    "amount": 500,
    "currency": "EUR",
    "payee": ref(1),
    "memo": "{{payee}}",
    "status": "open",
    "blocked": False,
    "score": 3,
    "listed": "EUR,USD",
}
ARGS: Mapping[str, Any] = {"amount": 500, "currency": "EUR", "payee": ref(1)}
SMALL = rule("small", "allow", "$proposal.amount <= 1000")


def made(
    *rules: PolicyRule,
    tool: Tool = TOOL,
    where: Mapping[str, Constraint] = MappingProxyType({}),
    expires_ms: int = 0,
    windows: tuple[Window, ...] = WINDOWS,
) -> Passage:
    """The passage of one tool under these rules."""
    sanitizer = DeterministicSanitizer(modes=MODES)
    grant = Grant(tool="pay", where=where, expires_ms=expires_ms)
    return passage(tool, grant, rules, windows, sanitizer)


def moment(**changes: Any) -> Facts:
    """A moment; a slot that is None is not there."""
    slots = {**SLOTS, **changes.pop("slots", {})}
    found = {name: value for name, value in slots.items() if value is not None}
    return Facts(slots=found, agent="payer", at_ms=NOW_MS)._replace(**changes)


def said(of: Passage, args: Mapping[str, Any], known: Facts) -> Allowed | None:
    """What the shortcut says; the judge must say the same of what it lets through."""
    found = shortcut(of)(args, known)
    if found is not None:
        assert found == of.judge(args, known)
    return found


def taken(*rules: PolicyRule, **changes: Any) -> bool:
    """Whether the good call takes the shortcut past these rules."""
    return said(made(SMALL, *rules), ARGS, moment(**changes)) is not None


def test_usual_call_takes_the_shortcut_with_the_judges_answer() -> None:
    found = said(made(SMALL), MappingProxyType({**ARGS, "payee": "{{payee}}"}), moment())
    assert found is not None
    assert (dict(found.args), found.rules, found.hold) == (dict(ARGS), ("small",), None)


@pytest.mark.parametrize(
    "change",
    [
        {"amount": 501}, {"amount": True}, {"amount": "500"}, {"amount": "{{amount}}"},
        {"currency": "USD"}, {"currency": "EURO"}, {"currency": 5}, {"currency": "{{memo}}"},
        {"payee": ref(2)}, {"payee": ""}, {"payee": "{{secret}}"}, {"payee": "{{status}}"},
        {"extra": 1},
    ],
)  # fmt: skip
def test_unusual_argument_is_left_to_the_judge(change: Mapping[str, Any]) -> None:
    assert said(made(SMALL), {**ARGS, **change}, moment()) is None


def test_null_stands_for_no_slot_that_the_model_was_not_shown() -> None:
    hidden = DeterministicSanitizer(modes={**MODES, "payee": "hidden"})
    of = made(SMALL)._replace(sanitizer=hidden)
    assert said(of, ARGS, moment()) is not None
    assert said(of, {**ARGS, "payee": None}, moment()) is None
    assert refused(of, {**ARGS, "payee": None}, moment())


@pytest.mark.parametrize("name", sorted(ARGS))
def test_missing_argument_or_slot_is_left_to_the_judge(name: str) -> None:
    assert said(made(SMALL), {n: v for n, v in ARGS.items() if n != name}, moment()) is None
    assert said(made(SMALL), ARGS, moment(slots={name: None})) is None


@pytest.mark.parametrize(
    ("slots", "args"),
    [
        ({"amount": True}, {"amount": 1}),
        ({"amount": 1}, {"amount": True}),
        ({"currency": "{{status}}"}, {"currency": "{{status}}"}),
        ({"payee": ref(1) * 9}, {"payee": ref(1) * 9}),
        ({"currency": "EURO"}, {"currency": "EURO"}),
        ({"amount": 0}, {"amount": 0}),
        ({"amount": 1_001}, {"amount": 1_001}),
        ({"amount": 2**53}, {"amount": 2**53}),
    ],
)
def test_call_that_equals_its_slots_is_still_held_to_the_schema(
    slots: Mapping[str, Any], args: Mapping[str, Any]
) -> None:
    assert said(made(SMALL), {**ARGS, **args}, moment(slots=slots)) is None


@pytest.mark.parametrize(
    ("limit", "taken"),
    [
        (Constraint(min=500, max=500), True),
        (Constraint(min=501), False),
        (Constraint(max=499), False),
        (Constraint(one_of=(500, True)), True),
        (Constraint(one_of=(501,)), False),
        (Constraint(equals_slot="amount"), True),
        (Constraint(equals_slot="score"), False),
        (Constraint(prefix="5"), False),
    ],
)
def test_grant_binds_the_shortcut_too(limit: Constraint, taken: bool) -> None:
    assert (said(made(SMALL, where={"amount": limit}), ARGS, moment()) is not None) is taken


@pytest.mark.parametrize("limit", [Constraint(min=1), Constraint(one_of=("USD",))])
def test_text_outside_its_grant_is_left_to_the_judge(limit: Constraint) -> None:
    assert said(made(SMALL, where={"currency": limit}), ARGS, moment()) is None


def test_slot_that_reads_like_a_placeholder_is_left_to_the_judge() -> None:
    args = {"memo": ArgSpec(type="string")}
    tool = Tool(name="pay", args=args, critical={"memo": Source(slot="memo")})
    of = made(rule("r", "allow", "true"), tool=tool)
    assert said(of, {"memo": "Shoes"}, moment(slots={"memo": "Shoes"})) is not None
    for memo in ("{{payee}}", "{{memo}}", "{{"):
        assert said(of, {"memo": memo}, moment(slots={"memo": memo})) is None


def test_grant_that_ended_or_was_taken_back_is_left_to_the_judge() -> None:
    assert said(made(SMALL, expires_ms=NOW_MS), ARGS, moment()) is None
    assert said(made(SMALL, expires_ms=NOW_MS + 1), ARGS, moment()) is not None
    assert said(made(SMALL), ARGS, moment(revoked=frozenset({"any"}))) is None


@pytest.mark.parametrize("outcome", ["deny", "hold"])
@pytest.mark.parametrize(
    ("when", "slots", "stops"),
    [
        ("$slots.blocked", {}, False),
        ("$slots.blocked", {"blocked": True}, True),
        ("$slots.blocked", {"blocked": None}, True),
        ("$slots.blocked", {"blocked": 1}, True),
        ("not $slots.blocked", {}, True),
        ("$slots.status != 'open'", {"status": "paid"}, True),
        ("'open' != $slots.status", {}, False),
        ("$slots.score > 3", {}, False),
        ("$slots.score > 3", {"score": 4}, True),
        ("$slots.score >= 3", {}, True),
        ("$slots.score < 3", {"score": 2}, True),
        ("$slots.score <= 2", {}, False),
        ("3 < $slots.score", {"score": 4}, True),
        ("$slots.score > 3", {"score": 2**60}, True),
        ("$slots.score > 3", {"score": True}, True),
        ("$slots.score < 3", {"score": -(2**60)}, True),
        ("$slots.score != 3", {"score": True}, True),
        ("$slots.currency not in ['EUR']", {}, False),
        ("$slots.currency in ['USD', 'EUR']", {}, True),
        ("$proposal.currency == 'EUR'", {}, True),
        ("$proposal.amount == 500", {}, True),
        ("$proposal.amount > 499", {}, True),
        ("$proposal.currency > 5", {}, True),
        ("$slots.blocked or $slots.score > 2", {}, True),
        ("$slots.blocked or $slots.score > 3", {}, False),
        ("$slots.score > 2 and $slots.blocked", {}, False),
        ("not ($slots.status == 'open' and $slots.score == 3)", {}, False),
        ("$slots.listed contains $slots.currency", {}, True),
        ("$slots.currency in 'USD'", {}, False),
        ("$tool == 'pay'", {}, True),
        ("$agent == 'other'", {}, False),
        ("$run.calls > 0", {}, False),
        ("true", {}, True),
    ],
)
def test_rule_against_the_call_stops_the_shortcut(
    outcome: str, when: str, slots: Mapping[str, Any], stops: bool
) -> None:
    assert taken(rule("r", outcome, when), slots=slots) is not stops


@pytest.mark.parametrize(
    ("when", "records", "stops"),
    [
        ("$history.recent > 2", 0, False),
        ("$history.recent > 2", 2, False),
        ("$history.recent > 2", 3, True),
        ("$history.recent >= 1 or $history.broken >= 3", 1, True),
        ("$history.recent >= 2 and $history.broken >= 1", 3, False),
        ("$history.recent >= 3 and 1 <= $history.recent", 2, False),
        ("$history.recent >= 3 and 1 <= $history.recent", 3, True),
        ("$history.recent == 1", 1, True),
        ("$history.recent == 1", 2, False),
        ("$history.recent != 0", 0, False),
        ("$history.recent != 0", 1, True),
        ("$history.recent < 1", 0, True),
        ("$history.recent < 1", 1, False),
        ("not $history.recent < 2", 2, True),
        ("not $history.recent < 2", 1, False),
        ("not $history.recent > 2", 0, True),
        ("not $history.recent > 2", 3, False),
        ("$history.recent > 0 and $slots.blocked", 3, False),
        ("$history.recent > 0 and $slots.score == 3", 3, True),
        ("$history.recent > 1 or $slots.blocked", 1, False),
        ("$history.broken >= $history.recent", 0, True),
        ("$history.absent > 5", 0, True),
        ("$history.absent > 5 and $history.recent > 5", 0, True),
    ],
)
def test_rule_over_history_is_asked_where_it_could_fire(
    when: str, records: int, stops: bool
) -> None:
    history = (Recorded(NOW_MS, "pay", "called", "x"),) * records
    assert taken(rule("r", "deny", when), history=history) is not stops


def test_strictest_of_the_rules_over_history_says_when_to_ask() -> None:
    rules = [rule(f"r{most}", "deny", f"$history.recent > {most}") for most in (5, 0, 5)]
    assert taken(*rules)
    assert not taken(*rules, history=(Recorded(NOW_MS, "pay", "called"),))


def test_long_history_is_counted_and_no_stranger_to_the_shortcut() -> None:
    old = (Recorded(NOW_MS - 60_001, "pay", "called"),) * 9
    assert taken(rule("often", "deny", "$history.recent > 2"), history=old)


def test_what_nothing_allows_takes_no_shortcut() -> None:
    assert said(made(), ARGS, moment()) is None
    for when in ("$proposal.amount > 500", "$slots.blocked", "$slots.score in [4]", "$slots.x"):
        assert said(made(rule("r", "allow", when)), ARGS, moment()) is None


def test_rules_that_allow_are_all_named() -> None:
    also = rule("also", "allow", "$slots.score > 2")
    not_now = rule("not-now", "allow", "$slots.score > 3")
    found = said(made(SMALL, also, not_now), ARGS, moment())
    assert found is not None
    assert found.rules == ("small", "also")


def test_tool_of_another_shape_is_left_to_the_judge() -> None:
    free = Tool(name="pay", args=TOOL.args, free=("payee",), critical={})
    flag = Tool(name="pay", args={"b": ArgSpec(type="boolean")}, critical={"b": Source(slot="b")})
    assert said(made(SMALL, tool=free), ARGS, moment()) is None
    assert said(made(rule("r", "allow", "true"), tool=flag), {"b": True}, moment()) is None


@pytest.mark.parametrize("seed", range(4))
def test_judge_agrees_with_the_shortcut_under_any_rules(seed: int) -> None:
    dice, hits, refusals = Random(seed), 0, 0  # noqa: S311  # it chooses examples
    for _ in range(300):
        of = made(*(drawn(dice, place) for place in range(dice.randint(1, 5))))
        for _ in range(5):
            slots = {
                "amount": dice.choice((0, 3, 4, 49, 50, 51, 5_000, 9_000, 9_001)),
                "currency": dice.choice(CURRENCIES),
                "status": dice.choice(("open", "paid")),
                "blocked": dice.random() < 0.3,
                "score": dice.choice((0, 3, 4, 50, 51)),
            }
            known = moment(slots=slots)
            args = {name: known.slots[name] for name in TOOL.args}
            if dice.random() < 0.2:
                args["amount"] = dice.choice((3, 50, True))
            hits += said(of, args, known) is not None
            refusals += refused(of, args, known)
    assert hits > 100
    assert refusals > 100


def drawn(dice: Random, place: int) -> PolicyRule:
    """Any rule; the first one allows."""
    text, _ = condition(dice)
    outcome = "allow" if place == 0 else dice.choice(("allow", "hold", "deny"))
    return PolicyRule(id=f"r{place}", at="authorize", outcome=outcome, when=parse(text), why="W")


def refused(of: Passage, args: Mapping[str, Any], known: Facts) -> bool:
    """Whether the judge refuses; ``said`` saw to it that the shortcut was silent then."""
    try:
        of.judge(args, known)
    except RefusedError:
        return True
    return False
