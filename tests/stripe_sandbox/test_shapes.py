"""The validator of Stripe's published shapes refuses what is broken.

Every answer to a ``Door`` is held to its shape on the way in; here the check is seen to fail.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.stripe_sandbox.door import INTENTS, Door, draft, paid
from tests.stripe_sandbox.shapes import Shapes, json_schema

Broken = Sequence[Mapping[str, Any]]
INTENT: Broken = [
    {"amount": "1099"},
    {"amount": None},  # null where the document does not say nullable
    {"currency": "USD"},
    {"created": 12},  # not a time
    {"status": "paid"},  # not in the enum
    {"latest_charge": {"id": "ch_1"}},  # a charge that is none
    {"last_payment_error": {"code": "card_declined"}},  # lacks its type
    {"state": "succeeded"},  # an invented field
]
LIST: Broken = [{"has_more": "no"}, {"url": "/v1/charges"}, {"data": [{"id": "pi_1"}]}]


def test_what_is_broken_is_refused_and_what_is_whole_is_not(shapes: Shapes, door: Door) -> None:
    intent = paid(door)
    error = door.post(INTENTS, draft(amount=None)).body
    cases: list[tuple[str, Any, Broken]] = [
        ("payment_intent", intent, INTENT),
        ("charge", door.get(f"/v1/charges/{intent['latest_charge']}").body, [{"paid": "yes"}]),
        ("list", door.get(INTENTS, {"limit": 3}).body, LIST),
        ("error", error, [{"error": {**error["error"], "type": "authentication_error"}}]),
    ]
    for name, body, broken in cases:
        assert shapes.faults(name, body) == []
        assert [each for each in broken if not shapes.faults(name, {**body, **each})] == []
    answer = door.get(INTENTS)
    with pytest.raises(AssertionError, match="not a payout"):
        shapes.check("/v1/payouts", answer)


def test_nullable_becomes_null_and_only_there() -> None:
    properties = {
        "nullable": {"type": "string"},
        "shade": {"type": "string", "enum": ["a"], "nullable": True},
        "party": {"anyOf": [{"$ref": "#/x"}], "nullable": True},
    }
    translated = json_schema({"type": "object", "properties": properties})["properties"]
    assert translated["nullable"] == {"type": "string"}
    assert translated["shade"] == {
        "type": ["string", "null"],
        "enum": ["a", None],
        "nullable": True,
    }
    assert translated["party"]["anyOf"] == [{"$ref": "#/x"}, {"type": "null"}]


def test_a_list_holds_ids_until_expansion_is_asked_for(door: Door) -> None:
    charge = paid(door)["latest_charge"]
    whole = door.get(f"/v1/charges/{charge}").body
    for expand, held in (([], charge), (["data.latest_charge"], whole)):
        (intent,) = door.get(INTENTS, {"limit": 1, "expand": expand}).body["data"]
        assert intent["latest_charge"] == held
