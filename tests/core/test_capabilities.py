"""Capabilities: every code at its boundary, and a warrant for exactly one call."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanovm_core.canonical import Json
from nanovm_core.capabilities import (
    PROPOSAL_BYTES_MAX,
    ArgSpec,
    Constraint,
    Grant,
    Tool,
    authorize,
    check_grant,
    check_provenance,
    check_schema,
    mint,
    normalise,
    read_proposal,
    resolve,
)
from nanovm_core.errors import RefusedError
from nanovm_core.messages import Scalar, Warrant
from tests.core.builders import program, proposal, ref

PAY = "stripe.create_payment_intent"
TOOL = Tool(
    name="t",
    args={
        "i": ArgSpec(type="integer", min=1, max=9),
        "s": ArgSpec(type="string", length_max=3),
        "b": ArgSpec(type="boolean"),
        "r": ArgSpec(type="ref"),
    },
    critical={"i": "amount"},
)
GOOD: Mapping[str, Json] = {"i": 5, "s": "abc", "b": True, "r": ref(1)}
BOUND: Mapping[str, Json] = {
    "run": "r",
    "program": "p",
    "step": "charge",
    "tool": PAY,
    "key": "k",
    "args": {"amount_minor": 5, "payee": ref(1)},
}


def refused(call: Callable[[], object]) -> str:
    """The code that a call is refused with."""
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.code


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
        "document.receive",
        "__class__",
    ],
)
def test_tool_that_only_looks_like_a_granted_one_does_not_resolve(name: str) -> None:
    assert refused(lambda: resolve(program().grants, name)) == "CAP-001"


def test_granted_tool_resolves_by_its_exact_name() -> None:
    assert resolve(program().grants, PAY).tool == PAY


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"x": 1}, "CAP-003"),
        ({"I": 5}, "CAP-003"),
        ({"i": None}, "CAP-005"),
        ({"i": "5"}, "CAP-005"),
        ({"i": True}, "CAP-005"),
        ({"i": [5]}, "CAP-005"),
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
    ],
)
def test_schema_refuses_at_its_boundary(change: dict[str, Json], code: str) -> None:
    assert refused(lambda: check_schema(TOOL, {**GOOD, **change})) == code


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_missing_argument_is_not_filled_in(missing: str) -> None:
    args = {name: value for name, value in GOOD.items() if name != missing}
    assert refused(lambda: check_schema(TOOL, args)) == "CAP-004"


@pytest.mark.parametrize("change", [{}, {"i": 1}, {"i": 9}, {"s": ""}, {"b": False}])
def test_schema_takes_what_fits(change: dict[str, Json]) -> None:
    assert check_schema(TOOL, {**GOOD, **change}) == {**GOOD, **change}


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
        (Constraint(max=3), 3, True),
        (Constraint(max=3), 4, False),
        (Constraint(prefix="ab"), "abc", True),
        (Constraint(prefix="ab"), "aab", False),
        (Constraint(equals_slot="amount"), 5, True),
        (Constraint(equals_slot="amount"), 6, False),
        (Constraint(equals_slot="absent"), 5, False),
        (Constraint(equals_slot="one"), True, False),
        (Constraint(min=1, max=9, equals_slot="amount"), 5, True),
    ],
)
def test_grant_holds_an_argument_to_its_bounds(
    limit: Constraint, value: Scalar, allowed: bool
) -> None:
    grant = Grant(tool="t", where={"x": limit})
    slots: dict[str, Scalar] = {"amount": 5, "one": 1}
    if allowed:
        check_grant(grant, {"x": value}, slots)
    else:
        assert refused(lambda: check_grant(grant, {"x": value}, slots)) == "CAP-006"


@pytest.mark.parametrize("slots", [{}, {"amount": 6}, {"amount": "5"}, {"other": 5}])
def test_critical_argument_must_be_what_the_document_gave(slots: dict[str, Scalar]) -> None:
    assert refused(lambda: check_provenance(TOOL, {"i": 5}, slots)) == "POL-010"


def test_boolean_is_not_the_integer_that_the_document_gave() -> None:
    assert refused(lambda: check_provenance(TOOL, {"i": True}, {"amount": 1})) == "POL-010"
    check_provenance(TOOL, {"i": 1}, {"amount": 1})


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"pay 5 EUR",
        b"[]",
        b'{"tool": "t"}',
        b'{"tool": "t", "args": {}, "more": 1}',
        b'{"tool": 5, "args": {}}',
        b'{"tool": "t", "args": []}',
        b'{"tool": "t", "tool": "u", "args": {}}',
        b'{"tool": "t", "args": {"i": 5.0}}',
        b'{"tool": "t", "args": {"i": 1e3}}',
        b'{"tool": "t", "args": {"i": NaN}}',
        b'{"tool": "t", "args": {"i": 9007199254740993}}',
        b'{"tool": "t", "args": {"s": "\\ud800"}}',
        b'{"tool": "t", "args": {}} {}',
        b'\xef\xbb\xbf{"tool": "t", "args": {}}',
        b'{"tool": "\xff", "args": {}}',
        b'{"tool": "t", "args": {"x": ' + b"[" * 20 + b"]" * 20 + b"}}",
    ],
)
def test_proposal_that_is_not_one_strict_json_call_is_refused(raw: bytes) -> None:
    assert refused(lambda: read_proposal(raw)) == "CAP-010"


def test_proposal_is_limited_at_the_byte() -> None:
    raw = proposal()
    padded = raw + b" " * (PROPOSAL_BYTES_MAX - len(raw))
    assert read_proposal(padded).tool == PAY
    assert refused(lambda: read_proposal(padded + b" ")) == "CAP-010"


@given(st.binary(max_size=200))
def test_reading_a_proposal_refuses_and_never_raises_otherwise(raw: bytes) -> None:
    assert refused(lambda: read_proposal(raw)) == "CAP-010"


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
    assert normalise({"x": value}, {"payee": ref(1), "amount": 5}) == {"x": expected}


def test_warrant_covers_its_call_until_it_expires() -> None:
    warrant = mint(BOUND, at_ms=1_000, ttl_ms=500)
    authorize(warrant, BOUND, at_ms=1_000)
    authorize(warrant, BOUND, at_ms=1_499)
    assert refused(lambda: authorize(warrant, BOUND, at_ms=1_500)) == "CAP-021"
    assert refused(lambda: authorize(None, BOUND, at_ms=1_000)) == "CAP-020"


@pytest.mark.parametrize("name", sorted(BOUND))
def test_warrant_is_bound_to_each_field(name: str) -> None:
    warrant = mint(BOUND, at_ms=1_000, ttl_ms=500)
    other: dict[str, Any] = {**BOUND, name: {} if name == "args" else "other"}
    assert refused(lambda: authorize(warrant, other, at_ms=1_000)) == "CAP-020"


@pytest.mark.parametrize(
    "args",
    [
        {"amount_minor": 6, "payee": ref(1)},
        {"amount_minor": "5", "payee": ref(1)},
        {"amount_minor": 5, "payee": ref(2)},
        {"amount_minor": 5, "payee": ref(1), "memo": ref(1)},
        {"amount_minor": 5},
    ],
)
def test_warrant_is_bound_to_the_exact_arguments(args: dict[str, Json]) -> None:
    warrant = mint(BOUND, at_ms=1_000, ttl_ms=500)
    bound = {**BOUND, "args": args}
    assert refused(lambda: authorize(warrant, bound, at_ms=1_000)) == "CAP-020"


def test_longer_life_is_another_warrant() -> None:
    warrant = mint(BOUND, at_ms=1_000, ttl_ms=500)
    longer = Warrant(id=warrant.id, expires_ms=warrant.expires_ms + 1)
    assert refused(lambda: authorize(longer, BOUND, at_ms=1_000)) == "CAP-020"
