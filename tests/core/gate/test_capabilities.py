"""Capabilities: every code at its boundary, and grants that can only be narrowed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.canonical import Json
from nanovm_core.core.capabilities import (
    ArgSpec,
    Constraint,
    Grant,
    Source,
    Tool,
    attenuate,
    grant_id,
    narrower,
    resolve,
)
from nanovm_core.core.gate import Facts
from nanovm_core.core.gate.tool_guard import Case, require, schema_of, tool_guard
from nanovm_core.core.messages import Args, Scalar
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.errors import ProgramError, RefusedError
from tests.core.kit.builders import ref, within_grant

PAY = "stripe.create_payment_intent"
TOOL = Tool(
    name="t",
    args={
        "i": ArgSpec(type="integer", min=1, max=9),
        "s": ArgSpec(type="string", length_max=3),
        "b": ArgSpec(type="boolean"),
        "r": ArgSpec(type="ref"),
    },
    critical={"i": Source(slot="amount"), "s": Source(constant="EUR")},
)
GOOD: Mapping[str, Json] = {"i": 5, "s": "abc", "b": True, "r": ref(1)}


def check_schema(tool: Tool, args: Mapping[str, Any], slots: Args) -> dict[str, Scalar]:
    """The arguments typed, as the gate's schema checks read them."""
    case = Case(args, Facts(slots=slots))
    require(schema_of(tool).checks(case))
    return case.args


def check_provenance(tool: Tool, args: dict[str, Scalar], slots: Args) -> None:
    """The gate's provenance checks alone, on typed arguments."""
    case = Case(args, Facts(slots=slots))
    case.args = args
    guard = tool_guard(tool, Grant(tool=tool.name), (), (), DeterministicSanitizer())
    require(guard._provenance(case))


def refused(call: Callable[[], object]) -> str:
    """The code that a call is refused with."""
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.code


# --- one call --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "wire_transfer",
        PAY.upper(),
        PAY + " ",
        " " + PAY,
        PAY + "\u200b",
        PAY.replace("e", "\u0435", 1),
        PAY.replace(".", "\uff0e"),
        PAY + "\x00",
        "Stripe.create_payment_intent",
        "stripe",
        "",
        "__class__",
    ],
)
def test_tool_that_only_looks_like_a_granted_one_does_not_resolve(name: str) -> None:
    assert refused(lambda: resolve({PAY: Grant(tool=PAY)}, name)) == "CAP-001"


def test_granted_tool_resolves_by_its_exact_name() -> None:
    assert resolve({PAY: Grant(tool=PAY)}, PAY).tool == PAY


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"x": 1}, "CAP-003"),
        ({"I": 5}, "CAP-003"),
        ({"i": None}, "CAP-005"),
        ({"i": "5"}, "CAP-005"),
        ({"i": True}, "CAP-005"),
        ({"i": [5]}, "CAP-005"),
        ({"i": 5.0}, "CAP-005"),
        ({"b": 1}, "CAP-005"),
        ({"b": "true"}, "CAP-005"),
        ({"s": 5}, "CAP-005"),
        ({"r": "Nordlicht GmbH"}, "CAP-005"),
        ({"r": ref(1) + "0"}, "CAP-005"),
        ({"r": ref(1) + "\n"}, "CAP-005"),
        ({"r": ref(1).upper()}, "CAP-005"),
        ({"i": 0}, "CAP-006"),
        ({"i": 10}, "CAP-006"),
        ({"s": "abcd"}, "CAP-006"),
        ({"x": 1, "i": "5"}, "CAP-003"),
    ],
)
def test_schema_refuses_at_its_boundary(change: dict[str, Any], code: str) -> None:
    assert refused(lambda: check_schema(TOOL, {**GOOD, **change}, {})) == code


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_missing_argument_is_not_filled_in(missing: str) -> None:
    args = {name: value for name, value in GOOD.items() if name != missing}
    assert refused(lambda: check_schema(TOOL, args, {})) == "CAP-004"


@pytest.mark.parametrize("change", [{}, {"i": 1}, {"i": 9}, {"s": ""}, {"b": False}])
def test_schema_takes_what_fits(change: dict[str, Json]) -> None:
    assert check_schema(TOOL, {**GOOD, **change}, {}) == {**GOOD, **change}


@pytest.mark.parametrize("number", [2**53, -(2**53)])
def test_integer_without_bounds_is_still_one_that_every_reader_holds(number: int) -> None:
    tool = Tool(name="t", args={"i": ArgSpec(type="integer")})
    assert refused(lambda: check_schema(tool, {"i": number}, {})) == "CAP-006"
    assert check_schema(tool, {"i": 2**53 - 1}, {}) == {"i": 2**53 - 1}


@pytest.mark.parametrize(
    ("spec", "value", "fits"),
    [
        (ArgSpec(type="integer", one_of=(1, 2)), 2, True),
        (ArgSpec(type="integer", one_of=(1, 2)), 3, False),
        (ArgSpec(type="integer", one_of=(True,)), 1, False),
        (ArgSpec(type="boolean", one_of=(False,)), False, True),
        (ArgSpec(type="boolean", one_of=(False,)), True, False),
        (ArgSpec(type="boolean", one_of=(1,)), True, False),
        (ArgSpec(type="string", one_of=("EUR",)), "EUR", True),
        (ArgSpec(type="string", one_of=("EUR",)), "eur", False),
        (ArgSpec(type="string", one_of=()), "", False),
        (ArgSpec(type="ref", one_of=(ref(1),)), ref(2), False),
    ],
)
def test_schema_may_list_its_values(spec: ArgSpec, value: Json, fits: bool) -> None:
    tool = Tool(name="t", args={"x": spec})
    if fits:
        assert check_schema(tool, {"x": value}, {}) == {"x": value}
    else:
        assert refused(lambda: check_schema(tool, {"x": value}, {})) == "CAP-006"


def test_type_that_nobody_knows_lets_nothing_through() -> None:
    with pytest.raises(ProgramError):
        check_schema(Tool(name="t", args={"x": ArgSpec(type="float")}), {"x": 1}, {})


def test_ref_is_a_vault_ref_or_exactly_what_its_own_slot_holds() -> None:
    tool = Tool(name="t", args={"r": ArgSpec(type="ref")}, critical={"r": Source(slot="who")})
    slots = {"who": "ref-of-another-kind", "other": "x"}
    assert check_schema(tool, {"r": "ref-of-another-kind"}, slots)["r"] == slots["who"]
    assert refused(lambda: check_schema(tool, {"r": "x"}, slots)) == "CAP-005"
    loose = Tool(name="t", args={"r": ArgSpec(type="ref")})
    assert refused(lambda: check_schema(loose, {"r": "x"}, {"": "x"})) == "CAP-005"


@pytest.mark.parametrize(
    ("limit", "value", "allowed"),
    [
        (Constraint(one_of=("a", "b")), "b", True),
        (Constraint(one_of=("a", "b")), "c", False),
        (Constraint(one_of=(1, 2)), True, False),
        (Constraint(one_of=()), "a", False),
        (Constraint(min=3), 3, True),
        (Constraint(min=3), 2, False),
        (Constraint(min=0), True, False),
        (Constraint(min=0), "5", False),
        (Constraint(max=3), 3, True),
        (Constraint(max=3), 4, False),
        (Constraint(prefix="ab"), "abc", True),
        (Constraint(prefix="ab"), "aab", False),
        (Constraint(prefix=""), 5, False),
        (Constraint(equals_slot="amount"), 5, True),
        (Constraint(equals_slot="amount"), 6, False),
        (Constraint(equals_slot="absent"), 5, False),
        (Constraint(equals_slot="one"), True, False),
        (Constraint(min=1, max=9, equals_slot="amount"), 5, True),
        (Constraint(min=6, equals_slot="amount"), 5, False),
        (Constraint(), "anything", True),
    ],
)
def test_grant_holds_an_argument_to_its_bounds(
    limit: Constraint, value: Scalar, allowed: bool
) -> None:
    grant = Grant(tool="t", where={"x": limit})
    slots: dict[str, Scalar] = {"amount": 5, "one": 1}
    assert within_grant(grant, {"x": value}, slots) is allowed


@pytest.mark.parametrize("slots", [{}, {"amount": 6}, {"amount": "5"}, {"other": 5}])
def test_critical_argument_must_be_what_its_slot_holds(slots: dict[str, Scalar]) -> None:
    assert refused(lambda: check_provenance(TOOL, {"i": 5, "s": "EUR"}, slots)) == "POL-010"


def test_critical_argument_may_have_to_be_a_constant() -> None:
    check_provenance(TOOL, {"i": 5, "s": "EUR"}, {"amount": 5})
    for other in ("USD", "eur", "EUR "):
        with pytest.raises(RefusedError, match="POL-010"):
            check_provenance(TOOL, {"i": 5, "s": other}, {"amount": 5})


def test_source_that_names_nothing_lets_nothing_through() -> None:
    tool = Tool(name="t", args=TOOL.args, critical={"i": Source()})
    assert refused(lambda: check_provenance(tool, {"i": 5}, {"": 5})) == "POL-010"


def test_boolean_is_not_the_integer_that_the_document_gave() -> None:
    tool = Tool(name="t", args=TOOL.args, critical={"i": Source(slot="amount")})
    assert refused(lambda: check_provenance(tool, {"i": True}, {"amount": 1})) == "POL-010"
    check_provenance(tool, {"i": 1}, {"amount": 1})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{payee}}", ref(1)),
        ("{{amount}}", 5),
        ("{{absent}}", "{{absent}}"),
        ("to {{payee}}", "to {{payee}}"),
        ("{{ payee }}", "{{ payee }}"),
        ("{{payee}}\n", "{{payee}}\n"),
        (["{{payee}}"], ["{{payee}}"]),
        (7, 7),
    ],
)
def test_placeholder_is_filled_only_as_a_whole(value: Json, expected: Json) -> None:
    shown = DeterministicSanitizer(modes={"payee": "placeholder", "amount": "clear"})
    assert shown.filled(value, {"payee": ref(1), "amount": 5}) == expected


# --- narrowing -------------------------------------------------------------------------------

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
    found: set[tuple[object, ...]] = set()
    for place, slots in enumerate(SLOTS):
        for value in VALUES:
            if not within_grant(grant, {"x": value, "y": value}, slots):
                continue
            times = [at for at in (4, 5, 6) if not grant.expires_ms or at < grant.expires_ms]
            found |= {(grant.tool, at, place, type(value), value) for at in times}
    return found


@settings(derandomize=True, max_examples=50)
@given(found=st.lists(grants, min_size=2, max_size=6))
def test_what_a_narrower_grant_accepts_the_wider_one_accepts(found: list[Grant]) -> None:
    takes = [accepted(grant) for grant in found]
    for inner, mine in zip(found, takes, strict=True):
        for outer, theirs in zip(found, takes, strict=True):
            assert not narrower(inner, outer) or mine <= theirs


@settings(derandomize=True, max_examples=50)
@given(found=st.lists(grants, min_size=3, max_size=6))
def test_narrower_is_reflexive_and_transitive(found: list[Grant]) -> None:
    within = {
        (a, b): narrower(one, b_) for a, one in enumerate(found) for b, b_ in enumerate(found)
    }
    places = range(len(found))
    assert all(within[a, a] for a in places)
    for a in places:
        for b in places:
            assert not within[a, b] or all(within[a, c] for c in places if within[b, c])


@pytest.mark.parametrize(
    ("inner", "outer", "holds"),
    [
        (Constraint(), Constraint(), True),
        (Constraint(), Constraint(max=5), False),
        (Constraint(max=4), Constraint(max=5), True),
        (Constraint(max=6), Constraint(max=5), False),
        (Constraint(min=1), Constraint(min=2), False),
        (Constraint(min=1, max=4), Constraint(max=5), True),
        (Constraint(one_of=(1, 4)), Constraint(max=5), True),
        (Constraint(one_of=(1, 6)), Constraint(max=5), False),
        (Constraint(one_of=(1, 6), max=5), Constraint(max=5), True),
        (Constraint(one_of=(1, True)), Constraint(one_of=(1,)), False),
        (Constraint(one_of=(1,)), Constraint(one_of=(1, 2)), True),
        (Constraint(min=1, max=2), Constraint(one_of=(1, 2)), False),
        (Constraint(prefix="abc"), Constraint(prefix="ab"), True),
        (Constraint(prefix="a"), Constraint(prefix="ab"), False),
        (Constraint(), Constraint(prefix=""), False),
        (Constraint(equals_slot="p"), Constraint(), True),
        (Constraint(equals_slot="p"), Constraint(equals_slot="p"), True),
        (Constraint(equals_slot="p"), Constraint(equals_slot="q"), False),
        (Constraint(one_of=(1,)), Constraint(equals_slot="p"), False),
        (Constraint(min=2, max=1), Constraint(one_of=()), True),
    ],
)
def test_each_bound_is_compared(inner: Constraint, outer: Constraint, holds: bool) -> None:
    one, other = Grant(tool="t", where={"x": inner}), Grant(tool="t", where={"x": outer})
    assert narrower(one, other) is holds


@pytest.mark.parametrize(
    ("inner", "outer", "holds"),
    [(0, 0, True), (5, 0, True), (5, 5, True), (6, 5, False), (0, 5, False)],
)
def test_narrower_grant_lives_no_longer(inner: int, outer: int, holds: bool) -> None:
    one, other = Grant(tool="t", expires_ms=inner), Grant(tool="t", expires_ms=outer)
    assert narrower(one, other) is holds


def test_attenuated_grants_remember_where_they_come_from() -> None:
    outer = Grant(tool="t")
    middle = attenuate({"t": outer}, [Grant(tool="t", where={"x": Constraint(max=9)})])
    inner = attenuate(middle, [Grant(tool="t", where={"x": Constraint(max=5)})])["t"]
    assert inner.narrowed_from == (grant_id(outer), grant_id(middle["t"]))
    assert attenuate({"t": outer, "u": Grant(tool="u")}, []) == {}


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
    assert refused(lambda: attenuate(held, wanted)) == "CAP-030"


def test_grant_is_named_by_what_it_allows() -> None:
    base = Grant(tool="t", where={"x": Constraint(one_of=())}, expires_ms=5)
    others = [
        Grant(tool="u", where=base.where, expires_ms=5),
        Grant(tool="t", where=base.where, expires_ms=6),
        Grant(tool="t", where={"x": Constraint()}, expires_ms=5),
        Grant(tool="t", where={"x": Constraint(min=0)}, expires_ms=5),
        Grant(tool="t", where={"x": Constraint(max=0)}, expires_ms=5),
        Grant(tool="t", where={"x": Constraint(prefix="")}, expires_ms=5),
        Grant(tool="t", where={"x": Constraint(equals_slot="p")}, expires_ms=5),
    ]
    assert len({grant_id(each) for each in (base, *others)}) == 8
    assert grant_id(base) == grant_id(Grant(tool="t", where=base.where, expires_ms=5))
