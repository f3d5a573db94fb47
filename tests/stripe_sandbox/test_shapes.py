"""The validator of Stripe's published shapes refuses what is broken.

Every answer to a ``Door`` is held to its shape on the way in; here the check is seen to fail.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.stripe_sandbox.door import INTENTS, Door, created, draft, paid
from tests.stripe_sandbox.shapes import Shapes, json_schema

BROKEN: Mapping[str, Sequence[object]] = {
    "amount": ("1099", None, 10.5),  # null where the document does not say nullable
    "currency": ("USD",),
    "created": (12,),  # not a time
    "status": ("paid",),  # not in the enum
    "object": ("charge",),
    "id": (None,),
    "livemode": ("false",),
    "metadata": ({"run": 7}, {"run": "x" * 501}),
    "latest_charge": (7, {"id": "ch_1"}),  # neither an id nor a charge; a charge that is none
    "last_payment_error": ({"code": "card_declined"},),  # lacks its type
    "next_action": ({},),
    "payment_method_types": ("card",),
    "state": ("succeeded",),  # an invented field
}
REQUIRED = ("created", "id", "livemode", "object", "status")


def accepted(
    shapes: Shapes, name: str, body: Any, broken: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Which of the broken changes of a good body the validator does not refuse."""
    assert shapes.faults(name, body) == []
    return [each for each in broken if not shapes.faults(name, {**body, **each})]


@pytest.mark.parametrize("field", BROKEN)
def test_a_broken_intent_is_refused(shapes: Shapes, door: Door, field: str) -> None:
    broken = [{field: value} for value in BROKEN[field]]
    assert accepted(shapes, "payment_intent", paid(door), broken) == []


def test_an_intent_that_lacks_a_required_field_is_refused(shapes: Shapes, door: Door) -> None:
    body = created(door)
    lacking = [{name: body[name] for name in body if name != field} for field in REQUIRED]
    assert [each for each in lacking if not shapes.faults("payment_intent", each)] == []


def test_a_broken_charge_list_and_error_are_refused(shapes: Shapes, door: Door) -> None:
    charge = door.get(f"/v1/charges/{paid(door)['latest_charge']}").body
    assert accepted(shapes, "charge", charge, [{"paid": "yes"}]) == []
    page = door.get(INTENTS, {"limit": 3}).body
    broken: list[dict[str, Any]] = [
        {"has_more": "no"},
        {"url": "/v1/charges"},
        {"data": [{"id": "pi_1"}]},
    ]
    assert accepted(shapes, "list", page, broken) == []
    error = door.post(INTENTS, draft(amount=None)).body["error"]
    assert error["message"]
    changes: list[dict[str, Any]] = [{"type": "authentication_error"}, {"kind": "x"}]
    changed = [{"error": {**error, **each}} for each in changes]
    assert accepted(shapes, "error", {"error": error}, changed) == []


def test_fields_hold_ids_until_expansion_is_asked_for(shapes: Shapes, door: Door) -> None:
    # docs.stripe.com/api/expanding_objects
    body = paid(door)
    assert shapes.expanded("payment_intent", body) == set()
    full = door.get(f"{INTENTS}/{body['id']}", {"expand": ["latest_charge"]}).body
    assert shapes.expanded("payment_intent", full) == {"latest_charge"}
    assert full["latest_charge"]["id"] == body["latest_charge"]
    page = door.get(INTENTS, {"limit": 1, "expand": ["data.latest_charge"]}).body
    assert page["data"][0]["latest_charge"]["id"] == body["latest_charge"]


def test_nullable_becomes_null_and_only_there() -> None:
    properties = {
        "nullable": {"type": "string"},
        "shade": {"type": "string", "enum": ["a"], "nullable": True},
        "party": {"anyOf": [{"$ref": "#/x"}], "nullable": True},
    }
    translated = json_schema({"type": "object", "properties": properties})
    assert translated["additionalProperties"] is False
    assert translated["properties"]["nullable"] == {"type": "string"}
    assert translated["properties"]["shade"]["enum"] == ["a", None]
    assert translated["properties"]["shade"]["type"] == ["string", "null"]
    assert translated["properties"]["party"]["anyOf"] == [{"$ref": "#/x"}, {"type": "null"}]
