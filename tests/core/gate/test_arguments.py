"""Arguments: exact decimals, lists, what may be left out; read once, and never widened."""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.authority.arguments import ArgSpec
from nanovm_core.core.authority.capabilities import (
    Constraint,
    Grant,
    Money,
    Source,
    Tool,
    attenuate,
    narrower,
)
from nanovm_core.core.canonical import INTEGER_MAX, encode
from nanovm_core.core.envelope import decode_snapshot, encode_snapshot
from nanovm_core.core.events import RunStarted
from nanovm_core.core.gate import Facts, Gate
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import Call, read_proposal, written
from nanovm_core.decimals import DIGITS_MAX, Number, decimal_of, digits_of, minor_of
from nanovm_core.errors import CanonicalError, ProgramError, RefusedError
from nanovm_core.ledger import currencies
from nanovm_core.loading import load_policy, load_program
from nanovm_core.policy_tests import run_examples
from nanovm_core.vm import Done, ExecutionVM
from reader.currencies import DECIMALS
from tests.core.gate.cashier import facts, gate, rule
from tests.core.kit.builders import ROOT, START_MS, ref

EUR = ArgSpec(type="decimal", currency="EUR", min=1, max=250_000)
PLAIN = ArgSpec(type="string", plain=True)
NAMES = ArgSpec(type="list", of="string", length_max=3, items_max=2)
ANY = rule("any", "allow", "true", tools=frozenset({"t"}))


def gate_of(
    args: Mapping[str, ArgSpec], where: Mapping[str, Constraint] | None = None, **more: Any
) -> Gate:
    """A gate that grants the tool ``t`` with these arguments, and allows every call of it."""
    tool = Tool(name="t", args=args, free=tuple(args), **more)
    return gate(tools={"t": tool}, grants={"t": Grant(tool="t", where=where or {})}, rules=(ANY,))


def said(of: Gate, args: str, **slots: Any) -> str | dict[str, Any]:
    """The typed arguments of a proposal with these, as written, or the code that refuses it."""
    try:
        call = read_proposal(f'{{"tool": "t", "args": {args}}}'.encode())
        return dict(of.permit(call, Facts(slots=slots)).args)
    except RefusedError as error:
        return error.code


# --- decimals --------------------------------------------------------------------------------

digits = st.integers(0, DIGITS_MAX)
plain = st.from_regex(r"\A-?[0-9]{1,18}(\.[0-9]{1,8})?\Z")
texts = plain | st.text("0123456789.-+eE_ \u0663", max_size=8)


@settings(max_examples=100)
@given(texts, digits)
def test_a_decimal_is_its_exact_value_or_nothing(text: str, places: int) -> None:
    found = minor_of(text, places)
    if found is not None:
        assert Decimal(text) == Decimal(found).scaleb(-places)
        assert minor_of(Number(text), places) == found
    form = re.fullmatch(r"(-?)(?=[1-9]|0\.|0$)(\d{1,16})(?:\.(\d+))?", text, re.ASCII)
    fits = form is not None and len(form[3] or "") <= places
    assert (found is not None) == (fits and not (text[0] == "-" and not Decimal(text)))


@given(st.integers(-INTEGER_MAX, INTEGER_MAX), digits)
def test_minor_units_are_written_as_they_are_read(minor: int, places: int) -> None:
    assert minor_of(decimal_of(minor, places), places) == minor


def test_digits_are_those_of_the_currency() -> None:
    assert {currency: digits_of(currency) for currency in DECIMALS} == DECIMALS


@pytest.mark.parametrize(
    ("spec", "value", "found"),
    [
        *((EUR, text, 9_870) for text in ("98.70", '"98.70"', "98.7", '"98.7"')),
        *((EUR, text, 9_800) for text in ("98", '"98"', "98.0", '"98.00"')),
        *((EUR, text, "CAP-005") for text in ("98.700", '"98.701"', "1e2", "9.87E1", '"1e2"')),
        *((EUR, text, "CAP-005") for text in ('"NaN"', '" 1"', '"+1"', '"01"', '"1,5"', '"٣"')),
        *((EUR, text, "CAP-005") for text in ("true", "null", "[1]", "{}", '""', '"1."', '"-0"')),
        *((EUR, text, "CAP-006") for text in ("0", "-98.70", "2500.01", '"2500.01"', "9" * 15)),
        *((EUR, text, "CAP-015") for text in ("1" + "0" * 30, str(2**53))),
        *((EUR, text, "CAP-013") for text in ("NaN", "Infinity")),
        (EUR, "-0", "CAP-014"),
        (EUR, '"{{hidden}}"', "CAP-005"),
        (EUR, '"{{amount}}"', 500),  # a slot holds minor units
        (ArgSpec(type="decimal", currency="JPY"), "98", 98),
        (ArgSpec(type="decimal", currency="JPY"), "98.0", "CAP-005"),
        (ArgSpec(type="decimal", currency="KWD"), "-1.005", -1_005),
        (ArgSpec(type="decimal", digits=6), "0.000001", 1),
        (ArgSpec(type="decimal", digits=6), str(INTEGER_MAX), "CAP-006"),
        (ArgSpec(type="decimal", digits=2, one_of=(150,)), "1.5", 150),
        (ArgSpec(type="decimal", digits=2, one_of=(150,)), "150", "CAP-006"),
        *((ArgSpec(type=kind), "1.5", "CAP-012") for kind in ("integer", "string", "ref")),
        *((PLAIN, f'"{text}"', "CAP-019") for text in ("ГB", "a ", " a", "a\\u200b", "\\u202ea")),
        *((PLAIN, f'"{text}"', "CAP-019") for text in ("a\\u0000", "a\\n", "\\u00e9", "ａ")),
        (replace(PLAIN, type="list", of="string"), '["a", "é"]', "CAP-019"),
        (replace(PLAIN, type="list", of="string"), '["", "a b", "A~1"]', ("", "a b", "A~1")),
        (NAMES, '["a", "b"]', ("a", "b")),
        (NAMES, "[]", ()),
        *((NAMES, text, "CAP-006") for text in ('["a", "b", "c"]', '["abcd"]')),
        *((NAMES, text, "CAP-005") for text in ('"a"', "[1]", "[null]", '[["a"]]', '{"a": 1}')),
        *((NAMES, text, "CAP-005") for text in ('["{{amount}}"]', '["{{hidden}}"]')),
        (NAMES, "[1.5]", "CAP-012"),
        (ArgSpec(type="list", of="decimal", digits=2, min=1), '[1.5, "2", 3]', (150, 200, 300)),
        (ArgSpec(type="list", of="decimal", digits=2, min=1), "[1, 0]", "CAP-006"),
        (ArgSpec(type="list", of="boolean"), "[true, 1]", "CAP-005"),
        (ArgSpec(type="list", of="integer", one_of=(1, 2)), "[2, 1, 2]", (2, 1, 2)),
        (ArgSpec(type="list", of="integer", one_of=(1, 2)), "[3]", "CAP-006"),
    ],
)  # fmt: skip
def test_an_argument_is_read_exactly_or_refused(spec: ArgSpec, value: str, found: object) -> None:
    of = gate_of({"x": spec})
    expected = found if isinstance(found, str) else {"x": found}
    assert said(of, f'{{"x": {value}}}', amount=500, hidden=500) == expected
    if not isinstance(found, str):  # judged again, it stays what it is
        again = of.permit(Call("t", {"x": found}), Facts())
        assert dict(again.args) == {"x": found}


def test_numbers_are_written_as_they_were() -> None:
    raw = b'{"args":{"a":98.70,"b":[1.50,2,"x"],"c":1E+400},"tool":"t"}'
    call = read_proposal(raw)
    assert written(call.tool, call.args) == raw
    for value in (1.5, {1: 2}, "\ud800", object()):
        with pytest.raises(CanonicalError):
            written("t", {"a": value})
    for value in (call.args["a"], call.args["b"]):
        with pytest.raises(CanonicalError, match="CAN-002"):
            encode(value)
    with pytest.raises(CanonicalError, match="CAN-013"):
        Number('1, "admin": true')


@pytest.mark.parametrize(("spec", "money"), [
    (EUR, Money(amount="x", currency_is="USD")),
    (EUR, Money(amount="x", currency="c")),
    (ArgSpec(type="decimal", digits=2), Money(amount="x", currency_is="EUR")),
    (ArgSpec(type="decimal", currency="EUR", optional=True), Money(amount="x", currency_is="EUR")),
    (ArgSpec(type="integer", optional=True), Money(amount="x", currency_is="EUR")),
])  # fmt: skip
def test_money_that_may_be_missing_or_of_another_currency_is_none(
    spec: ArgSpec, money: Money
) -> None:
    with pytest.raises(ProgramError, match="PRG-002"):
        gate_of({"x": spec, "c": ArgSpec(type="string")}, money=money)
    paid = gate_of({"x": EUR}, money=Money(amount="x", currency_is="EUR"))
    assert paid.need("t", {"x": 9_870}) == {"calls": 1, "EUR": 9_870}


def test_what_is_critical_may_not_be_left_out() -> None:
    spec = ArgSpec(type="integer", optional=True)
    with pytest.raises(ProgramError, match="PRG-002"):
        gate_of({"x": spec}, critical={"x": Source(slot="amount")})


# --- optional arguments, and grants ----------------------------------------------------------


@pytest.mark.parametrize(("spec", "args", "found"), [
    ({}, "{}", "CAP-004"), ({}, '{"x": null}', "CAP-005"), ({"default": 5}, "{}", "CAP-004"),
    ({"optional": True}, "{}", {}), ({"optional": True}, '{"x": null}', {}),
    ({"optional": True, "default": 5}, "{}", {"x": 5}),
    ({"optional": True, "default": 5}, '{"x": null}', {"x": 5}),
    ({"optional": True, "default": 5}, '{"x": 6}', {"x": 600}),
    ({"optional": True}, '{"x": 70}', "CAP-006"), ({"optional": True}, '{"y": null}', "CAP-003"),
    ({"optional": True, "default": 7_000}, "{}", "CAP-006"),
])  # fmt: skip
def test_what_is_left_out_is_its_default_or_absent(
    spec: dict[str, Any], args: str, found: object
) -> None:
    x = ArgSpec(type="decimal", digits=2, max=6_000, **spec)
    of = gate_of({"x": x}, {"x": Constraint(min=1)})
    assert said(of, args) == found
    call = read_proposal(f'{{"tool": "t", "args": {args}}}'.encode())
    states = {(each.check, each.state) for each in of.explain(call, facts())}
    refusing = {check for check, state in states if state == "refused"}
    assert bool(refusing) == isinstance(found, str)
    assert isinstance(found, str) or states >= {("constraint", "passed"), ("policy", "passed")}


values = st.sampled_from((0, 1, 2, 3, 9))
bounds = st.none() | values
limits = st.builds(
    Constraint,
    one_of=st.none() | st.lists(values | st.sampled_from(("a", True)), max_size=3).map(tuple),
    min=bounds,
    max=bounds,
    prefix=st.sampled_from((None, None, "a")),
    equals_slot=st.sampled_from((None, None, "p", "q")),
    origin=st.sampled_from((None, None, "person", "document")),
)
wheres = st.dictionaries(st.sampled_from(("list", "maybe", "usual", "texts")), limits, max_size=3)
KINDS = {
    "list": ArgSpec(type="list", of="integer"),
    "texts": ArgSpec(type="list", of="string", optional=True),
    "maybe": ArgSpec(type="integer", optional=True),
    "usual": ArgSpec(type="integer", optional=True, default=2),
}
CALLS = [
    {"list": each} | more | texts
    for each in ((), (1,), (1, 2), (3, 9), (0,))
    for more in ({}, {"maybe": 1}, {"maybe": 3}, {"usual": 9}, {"usual": 0, "maybe": 2})
    for texts in ({}, {"texts": ()}, {"texts": ("a", "ab")}, {"texts": ("b",)})
]
FACTS = [
    Facts(slots={"p": 1, "q": "a"}, origins={"p": "person", "q": "document"}),
    Facts(slots={"p": 2}, origins={"p": "document"}),
    Facts(),
]


def permitted(grants: Mapping[str, Grant]) -> set[int]:
    """Which of all calls, in all moments, the gate permits as the program's own."""
    of = gate(tools={"t": Tool(name="t", args=KINDS)}, grants=grants, rules=())
    found = set()
    for place, (args, known) in enumerate(product(CALLS, FACTS)):
        try:
            of.permit_own(Call("t", args), known)
            found.add(place)
        except RefusedError:
            continue
    return found


@pytest.mark.parametrize(("limit", "lists"), [
    (Constraint(max=1), {(), (1,), (0,)}),
    (Constraint(one_of=(3, 9)), {(), (3, 9)}),
    (Constraint(equals_slot="p"), {(), (1,)}),
    (Constraint(one_of=()), {()}),
])  # fmt: skip
def test_a_grant_holds_each_item_of_a_list(limit: Constraint, lists: set[object]) -> None:
    places = permitted({"t": Grant(tool="t", where={"list": limit})})
    found = [args for place, (args, _) in enumerate(product(CALLS, FACTS)) if place in places]
    assert {each["list"] for each in found} == lists


def test_no_empty_bound_escapes_from_an_origin() -> None:
    outer = Grant(tool="t", where={"maybe": Constraint(equals_slot="p", origin="person")})
    assert not narrower(Grant(tool="t", where={"maybe": Constraint(one_of=())}), outer)


@settings(max_examples=60, deadline=None)
@given(wheres, wheres)
def test_no_narrower_grant_permits_a_call_that_the_wider_one_refuses(
    one: Mapping[str, Constraint], other: Mapping[str, Constraint]
) -> None:
    outer = {"t": Grant(tool="t", where=one)}
    merged = {name: other.get(name, limit) for name, limit in {**one, **other}.items()}
    for inner in (Grant(tool="t", where=other), Grant(tool="t", where=merged)):
        if narrower(inner, outer["t"]):
            assert permitted(attenuate(outer, [inner])) <= permitted(outer)


# --- the programs that are shipped for agents of others --------------------------------------


def shipped(name: str) -> Program:
    """A program of the gate's, under its policy."""
    folder = ROOT / "gate/programs"
    program = load_program((folder / f"{name}.toml").read_bytes())
    return program.under(load_policy((folder / program.policy_file).read_bytes(), program))


class Foreign(ExecutionVM):
    """A run of one call of a shipped program's tool, until it ends or waits."""

    def __init__(self, name: str, tool: str, **args: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        program = shipped(name)
        super().__init__(
            program,
            run="r",
            tools=dict.fromkeys(program.tools, self._perform),
            now_ms=lambda: START_MS,
            model=lambda _: written(tool, args),
        )
        self.feed(RunStarted())
        self.run()

    def _perform(self, given: dict[str, Any], _: str) -> Done:
        assert decode_snapshot(encode_snapshot(self.snapshot)) == self.snapshot
        self.asked.append(given)
        return Done()


@pytest.mark.parametrize("name", ["bank_assistant", "help_desk"])
def test_the_shipped_policies_do_what_their_examples_say(name: str) -> None:
    found = [*run_examples(shipped(name))]
    assert {each.good for each in found} == {True}, found
    both = [ROOT / "gate/programs" / f"{part}{name}.toml" for part in ("", "policies/")]
    assert sum(file.read_text().partition("examples =")[0].count("\n") for file in both) <= 80


KNOWN, DATED = "DE89370400440532013000", {"subject": "Rent", "date": "2026-12-01"}


@pytest.mark.parametrize(("name", "tool", "args", "found"), [
    ("bank_assistant", "send_money", {"recipient": KNOWN, "amount": Number("98.70"), **DATED},
     {"recipient": KNOWN, "amount": 9_870, **DATED}),
    ("bank_assistant", "update_scheduled_transaction", {"id": 7, "amount": 900, "date": None},
     {"id": 7, "amount": 90_000, "recipient": ""}),
    ("bank_assistant", "update_scheduled_transaction", {"id": 7, "date": "2026-12-01"},
     {"id": 7, "amount": 0, "date": "2026-12-01", "recipient": ""}),
    ("bank_assistant", "update_scheduled_transaction", {"id": 7, "amount": 2_200}, "POL-020"),
    ("bank_assistant", "get_most_recent_transactions", {}, {"n": 100}),
    ("bank_assistant", "send_money", {"recipient": "DE02", "amount": 1, **DATED}, "POL-020"),
    ("bank_assistant", "send_money", {"recipient": f"{KNOWN} ", "amount": 1, **DATED}, "CAP-019"),
    ("bank_assistant", "send_money", {"recipient": KNOWN, "amount": Number("0.005"), **DATED},
     "CAP-005"),
    ("bank_assistant", "update_scheduled_transaction", {"id": 7, "recipient": "DE02"}, "POL-020"),
    ("bank_assistant", "update_password", {"password": ref(1)}, "POL-020"),
    ("help_desk", "refund.issue", {"order": "A", "amount": "50.01", "reason": "late"}, "POL-020"),
    ("help_desk", "ticket.close", {"ticket": 1, "tags": ["a", "b"]},
     {"ticket": 1, "tags": ("a", "b")}),
])  # fmt: skip
def test_a_call_is_made_with_what_was_judged(
    name: str, tool: str, args: dict[str, Any], found: Any
) -> None:
    run, unspent = Foreign(name, tool, **args), Foreign(name, "nothing")
    assert run.asked == ([] if isinstance(found, str) else [found])
    assert run.snapshot.state.endswith("completed") == (not isinstance(found, str))
    assert not isinstance(found, str) or any(found.encode() in each.data for each in run.envelopes)
    left = [each.ledger.left(run.program, "payer", ())["agent/EUR"] for each in (run, unspent)]
    assert left[1] - left[0] == (found.get("amount", 0) if run.asked else 0)
    run.verify()
    assert run.replayed() == run.envelopes


def test_a_currency_that_may_be_left_out_has_an_account() -> None:
    usual = ArgSpec(type="string", optional=True, default="SEK")
    args = {"amount": ArgSpec(type="integer"), "in": usual}
    paid = Tool(name="refund.issue", args=args, money=Money(amount="amount", currency="in"))
    desk = shipped("help_desk")
    more = replace(desk, tools={**desk.tools, "refund.issue": paid})
    assert currencies(more, ()) == ("SEK",)
