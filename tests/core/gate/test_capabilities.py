"""Capabilities: every code at its boundary, and grants that can only be narrowed."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.authority import capabilities
from nanovm_core.core.authority.capabilities import (
    ArgSpec,
    Constraint,
    Grant,
    Tool,
    grant_id,
    narrower,
)
from nanovm_core.core.authority.policy import Named
from nanovm_core.core.canonical import Json
from nanovm_core.core.gate import Facts
from nanovm_core.core.gate.schema import Case, schema_of
from nanovm_core.core.gate.tool_guard import require, tool_guard
from nanovm_core.core.messages import Scalar, Slots
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.errors import ProgramError, RefusedError
from tests.core.kit.builders import ref, refused, within_grant

PAY = "stripe.create_payment_intent"
TOOL = Tool(
    name="t",
    args={
        "i": ArgSpec(type="integer", min=1, max=9),
        "s": ArgSpec(type="string", length_max=3),
        "b": ArgSpec(type="boolean"),
        "r": ArgSpec(type="ref"),
    },
    critical={"i": capabilities.Source(slot="amount"), "s": capabilities.Source(constant="EUR")},
)
GOOD: Mapping[str, Json] = {"i": 5, "s": "abc", "b": True, "r": ref(1)}


def check_schema(args: Mapping[str, Any], slots: Slots | None = None, tool: Tool = TOOL) -> str:
    """The code that the gate's schema checks refuse with; empty where the arguments fit."""
    case = Case(args, Facts(slots=slots or {}))
    try:
        require(schema_of(tool).checks(case))
    except RefusedError as error:
        return error.code
    assert case.args == args
    return ""


def check_provenance(args: dict[str, Scalar], slots: Slots, tool: Tool = TOOL) -> str:
    """The code that the gate's provenance checks refuse with; empty where there is none."""
    case = Case(args, Facts(slots=slots))
    case.args = {**args}
    guard = tool_guard(tool, Grant(tool=tool.name), (), Named(), DeterministicSanitizer())
    try:
        require(guard._provenance(case))
    except RefusedError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "name", [PAY.upper(), PAY + " ", PAY + "\u200b", PAY.replace("e", "\u0435", 1), "stripe", ""]
)
def test_tool_that_only_looks_like_a_granted_one_does_not_resolve(name: str) -> None:
    assert refused(lambda: capabilities.resolve({PAY: Grant(tool=PAY)}, name)) == "CAP-001"
    assert capabilities.resolve({PAY: Grant(tool=PAY)}, PAY).tool == PAY


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("", ({}, {"i": 1}, {"i": 9}, {"s": ""}, {"b": False})),
        ("CAP-003", ({"x": 1}, {"I": 5}, {"x": 1, "i": "5"})),
        ("CAP-005", ({"i": None}, {"i": "5"}, {"i": True}, {"i": [5]}, {"i": 5.0}, {"b": 1})),
        ("CAP-005", ({"b": "true"}, {"s": 5}, {"r": "Nordlicht GmbH"}, {"r": ref(1) + "0"})),
        ("CAP-005", ({"r": ref(1) + "\n"}, {"r": ref(1).upper()})),
        ("CAP-006", ({"i": 0}, {"i": 10}, {"s": "abcd"})),
    ],
)
def test_schema_refuses_at_its_boundary(code: str, changes: tuple[dict[str, Any], ...]) -> None:
    assert {check_schema({**GOOD, **change}) for change in changes} == {code}


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_missing_argument_is_not_filled_in(missing: str) -> None:
    args = {name: value for name, value in GOOD.items() if name != missing}
    assert check_schema(args) == "CAP-004"


@pytest.mark.parametrize(
    ("spec", "fitting", "refused"),
    [
        (ArgSpec(type="integer"), (2**53 - 1, 1 - 2**53), (2**53, -(2**53))),
        (ArgSpec(type="integer", one_of=(1, 2)), (2,), (3,)),
        (ArgSpec(type="integer", one_of=(True,)), (), (1,)),
        (ArgSpec(type="boolean", one_of=(False,)), (False,), (True,)),
        (ArgSpec(type="boolean", one_of=(1,)), (), (True,)),
        (ArgSpec(type="string", one_of=("EUR",)), ("EUR",), ("eur",)),
        (ArgSpec(type="string", one_of=()), (), ("",)),
        (ArgSpec(type="ref", one_of=(ref(1),)), (ref(1),), (ref(2),)),
    ],
)
def test_schema_bounds_or_lists_its_values(
    spec: ArgSpec, fitting: tuple[Json, ...], refused: tuple[Json, ...]
) -> None:
    tool = Tool(name="t", args={"x": spec})
    assert {check_schema({"x": value}, tool=tool) for value in fitting} <= {""}
    assert {check_schema({"x": value}, tool=tool) for value in refused} == {"CAP-006"}


def test_unknown_argument_type_lets_nothing_through() -> None:
    with pytest.raises(ProgramError):
        check_schema({"x": 1}, tool=Tool(name="t", args={"x": ArgSpec(type="float")}))


def test_ref_is_a_vault_ref_or_exactly_what_its_own_slot_holds() -> None:
    tool = Tool(
        name="t", args={"r": ArgSpec(type="ref")}, critical={"r": capabilities.Source(slot="who")}
    )
    slots: Slots = {"who": "ref-of-another-kind", "other": "x"}
    assert check_schema({"r": "ref-of-another-kind"}, slots, tool) == ""
    assert check_schema({"r": "x"}, slots, tool) == "CAP-005"
    loose = Tool(name="t", args={"r": ArgSpec(type="ref")})
    assert check_schema({"r": "x"}, {"": "x"}, loose) == "CAP-005"


@pytest.mark.parametrize(
    ("limit", "allowed", "refused"),
    [
        (Constraint(), ("anything",), ()),
        (Constraint(one_of=("a", "b")), ("b",), ("c",)),
        (Constraint(one_of=(1, 2)), (1,), (True,)),
        (Constraint(one_of=()), (), ("a",)),
        (Constraint(min=3), (3,), (2,)),
        (Constraint(min=0), (0,), (True, "5")),
        (Constraint(max=3), (3,), (4,)),
        (Constraint(prefix="ab"), ("abc",), ("aab",)),
        (Constraint(prefix=""), ("",), (5,)),
        (Constraint(equals_slot="amount"), (5,), (6,)),
        (Constraint(equals_slot="absent"), (), (5,)),
        (Constraint(equals_slot="one"), (1,), (True,)),
        (Constraint(min=1, max=9, equals_slot="amount"), (5,), (6,)),
        (Constraint(min=6, equals_slot="amount"), (), (5,)),
    ],
)
def test_grant_holds_an_argument_to_its_bounds(
    limit: Constraint, allowed: tuple[Scalar, ...], refused: tuple[Scalar, ...]
) -> None:
    grant, slots = Grant(tool="t", where={"x": limit}), {"amount": 5, "one": 1}
    assert all(within_grant(grant, {"x": value}, slots) for value in allowed)
    assert not any(within_grant(grant, {"x": value}, slots) for value in refused)


@pytest.mark.parametrize(
    ("args", "slots", "code"),
    [
        ({"i": 5, "s": "EUR"}, {"amount": 5}, ""),
        ({"i": 5, "s": "EUR"}, {}, "POL-010"),
        ({"i": 5, "s": "EUR"}, {"amount": 6}, "POL-010"),
        ({"i": 5, "s": "EUR"}, {"amount": "5"}, "POL-010"),
        ({"i": True, "s": "EUR"}, {"amount": 1}, "POL-010"),
        ({"i": 5, "s": "USD"}, {"amount": 5}, "POL-010"),
        ({"i": 5, "s": "eur"}, {"amount": 5}, "POL-010"),
    ],
)
def test_critical_argument_is_what_its_slot_or_constant_says(
    args: dict[str, Scalar], slots: Slots, code: str
) -> None:
    assert check_provenance(args, slots) == code


def test_source_that_names_nothing_lets_nothing_through() -> None:
    tool = Tool(name="t", args=TOOL.args, critical={"i": capabilities.Source()})
    assert check_provenance({"i": 5}, {"": 5}, tool) == "POL-010"


VALUES: tuple[Scalar, ...] = (*range(-1, 6), True, False, "", "a", "ab", "abc", "b", "5")
SLOTS: tuple[Mapping[str, Scalar], ...] = ({"p": 3, "q": "ab"}, {"p": "a", "q": 3}, {"p": 1}, {})

numbers = st.none() | st.integers(-1, 5)
constraints = st.builds(
    Constraint,
    one_of=st.none() | st.lists(st.sampled_from(VALUES), max_size=4).map(tuple),
    min=numbers,
    max=numbers,
    prefix=st.sampled_from((None, None, "", "a", "ab")),
    equals_slot=st.sampled_from((None, None, None, "p", "q")),
)
grants = st.builds(
    Grant,
    tool=st.sampled_from(("t", "t", "t", "u")),
    where=st.dictionaries(st.sampled_from(("x", "y")), constraints, max_size=2),
    expires_ms=st.sampled_from((0, 0, 5, 6)),
)


def accepted(grant: Grant) -> set[tuple[object, ...]]:
    """All that a grant lets through: tool, time, slots, and each argument's value."""
    return {
        (grant.tool, at, place, type(value), value)
        for place, slots in enumerate(SLOTS)
        for value in VALUES
        if within_grant(grant, {"x": value, "y": value}, slots)
        for at in (4, 5, 6)
        if not grant.expires_ms or at < grant.expires_ms
    }


@settings(derandomize=True, max_examples=50)
@given(found=st.lists(grants, min_size=2, max_size=6))
def test_what_a_narrower_grant_accepts_the_wider_one_accepts(found: list[Grant]) -> None:
    takes = [accepted(grant) for grant in found]
    for inner, mine in zip(found, takes, strict=True):
        for outer, theirs in zip(found, takes, strict=True):
            assert not narrower(inner, outer) or mine <= theirs


@pytest.mark.parametrize(
    ("inner", "outer", "holds"),
    [
        (Constraint(), Constraint(), True),
        (Constraint(), Constraint(max=5), False),
        (Constraint(max=4), Constraint(max=5), True),
        (Constraint(min=1, max=4), Constraint(max=5), True),
        (Constraint(one_of=(1, 4)), Constraint(max=5), True),
        (Constraint(one_of=(1, 6), max=5), Constraint(max=5), True),
        (Constraint(one_of=(1,)), Constraint(one_of=(1, 2)), True),
        (Constraint(min=1, max=2), Constraint(one_of=(1, 2)), False),
        (Constraint(prefix="abc"), Constraint(prefix="ab"), True),
        (Constraint(), Constraint(prefix=""), False),
        (Constraint(equals_slot="p"), Constraint(), True),
        (Constraint(equals_slot="p"), Constraint(equals_slot="p"), True),
        (Constraint(one_of=(1,)), Constraint(equals_slot="p"), False),
        (Constraint(min=2, max=1), Constraint(one_of=()), True),
    ],
)
def test_each_bound_is_compared(inner: Constraint, outer: Constraint, holds: bool) -> None:
    one, other = Grant(tool="t", where={"x": inner}), Grant(tool="t", where={"x": outer})
    assert narrower(one, other) is holds


@pytest.mark.parametrize(
    "wanted",
    [
        [Grant(tool="u")],
        [Grant(tool="t")],
        [Grant(tool="t", where={"x": Constraint(max=6)})],
        [Grant(tool="t", where={"x": Constraint(max=5)})] * 2,
    ],
)
def test_nothing_is_attenuated_into_more(wanted: list[Grant]) -> None:
    held = {"t": Grant(tool="t", where={"x": Constraint(max=5)})}
    assert refused(lambda: capabilities.attenuate(held, wanted)) == "CAP-030"


def test_grant_is_named_by_what_it_allows() -> None:
    base = Grant(tool="t", where={"x": Constraint(one_of=())}, expires_ms=5)
    bounds: tuple[dict[str, Any], ...] = ({"min": 0}, {"max": 0}, {"prefix": ""}, {"one_of": (1,)})
    others = [
        Grant(tool="u", where=base.where, expires_ms=5),
        Grant(tool="t", where=base.where, expires_ms=6),
        *(Grant(tool="t", where={"x": Constraint(**each)}, expires_ms=5) for each in ({}, *bounds)),
        Grant(tool="t", where={"x": Constraint(equals_slot="p")}, expires_ms=5),
    ]
    assert len({grant_id(each) for each in (base, *others)}) == 9
    assert grant_id(base) == grant_id(Grant(tool="t", where=base.where, expires_ms=5))
