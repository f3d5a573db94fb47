"""Every kind of answer has the shape that Stripe publishes, and the validator can refuse one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.stripe_sandbox.door import INTENTS, Answer, Door, created, draft, paid, payment
from tests.stripe_sandbox.shapes import Shapes, json_schema

BROKEN: list[tuple[str, object]] = [
    ("amount", "1099"),  # a string where an integer belongs
    ("amount", None),  # null where the document does not say nullable
    ("amount", 10.5),
    ("currency", "USD"),
    ("created", 12),  # not a time
    ("status", "paid"),  # not in the enum
    ("object", "charge"),
    ("id", None),
    ("livemode", "false"),
    ("metadata", {"run": 7}),
    ("metadata", {"run": "x" * 501}),
    ("latest_charge", 7),  # neither an id nor a charge
    ("latest_charge", {"id": "ch_1"}),  # a charge that is none
    ("last_payment_error", {"code": "card_declined"}),  # lacks its type
    ("next_action", {}),
    ("payment_method_types", "card"),
    ("state", "succeeded"),  # an invented field
]


@pytest.mark.parametrize("status", ["requires_payment_method", "succeeded", "canceled"])
def test_an_intent_has_the_published_shape(shapes: Shapes, door: Door, status: str) -> None:
    body = paid(door) if status == "succeeded" else created(door)
    if status == "canceled":
        body = door.post(f"{INTENTS}/{body['id']}/cancel").body
    assert body["status"] == status
    assert shapes.faults("payment_intent", body) == []


@pytest.mark.parametrize(("field", "value"), BROKEN)
def test_the_validator_refuses_a_broken_intent(
    shapes: Shapes, door: Door, field: str, value: object
) -> None:
    body = paid(door)
    assert shapes.faults("payment_intent", body) == []
    assert shapes.faults("payment_intent", {**body, field: value}) != []


@pytest.mark.parametrize("field", ["created", "id", "livemode", "object", "status"])
def test_the_validator_misses_a_required_field(shapes: Shapes, door: Door, field: str) -> None:
    body = paid(door)
    del body[field]
    assert shapes.faults("payment_intent", body) != []


def test_a_charge_has_the_published_shape(shapes: Shapes, door: Door) -> None:
    answer = door.get(f"/v1/charges/{paid(door)['latest_charge']}")
    assert answer.status == 200
    assert shapes.faults("charge", answer.body) == []
    assert shapes.faults("charge", {**answer.body, "paid": "yes"}) != []


def test_a_list_has_the_published_shape(shapes: Shapes, door: Door) -> None:
    paid(door)
    body = door.get(INTENTS, {"limit": 3}).body
    assert shapes.faults("list", body) == []
    assert shapes.faults("list", {**body, "has_more": "no"}) != []
    assert shapes.faults("list", {**body, "url": "/v1/charges"}) != []
    assert shapes.faults("list", {**body, "data": [{"id": "pi_1"}]}) != []


def _declined(door: Door) -> Answer:
    return door.post(INTENTS, payment(payment_method="pm_card_chargeDeclined"))


def _unknown_id(door: Door) -> Answer:
    return door.get(f"{INTENTS}/pi_unknown")


def _unknown_address(door: Door) -> Answer:
    return door.get("/v1/nonsense")


def _unknown_parameter(door: Door) -> Answer:
    return door.post(INTENTS, draft(colour="red"))


def _missing_amount(door: Door) -> Answer:
    return door.post(INTENTS, draft(amount=None))


def _wrong_state(door: Door) -> Answer:
    return door.post(f"{INTENTS}/{paid(door)['id']}/confirm")


def _unknown_key(door: Door) -> Answer:
    return door.send("GET", INTENTS, headers={"Authorization": "Bearer sk_test_nobody"})


REFUSALS: list[Callable[[Door], Answer]] = [
    _declined,
    _missing_amount,
    _unknown_address,
    _unknown_id,
    _unknown_key,
    _unknown_parameter,
    _wrong_state,
]


@pytest.mark.parametrize("refused", REFUSALS)
def test_an_error_has_the_published_shape(
    shapes: Shapes, door: Door, refused: Callable[[Door], Answer]
) -> None:
    answer = refused(door)
    assert answer.status >= 400
    assert shapes.faults("error", answer.body) == []
    error: dict[str, Any] = answer.body["error"]
    assert error["message"]
    assert shapes.faults("error", {"error": {**error, "type": "authentication_error"}}) != []
    assert shapes.faults("error", {"error": {**error, "kind": "x"}}) != []


def test_expandable_fields_hold_ids_until_expansion_is_asked_for(
    shapes: Shapes, door: Door
) -> None:
    # docs.stripe.com/api/expanding_objects
    body = paid(door)
    assert isinstance(body["latest_charge"], str)
    assert shapes.expanded("payment_intent", body) == set()
    full = door.get(f"{INTENTS}/{body['id']}", {"expand": ["latest_charge"]})
    assert full.status == 200, full.raw
    assert shapes.expanded("payment_intent", full.body) == {"latest_charge"}
    assert full.body["latest_charge"]["id"] == body["latest_charge"]
    assert shapes.faults("payment_intent", full.body) == []


def test_a_list_expands_what_its_objects_hold(shapes: Shapes, door: Door) -> None:
    body = paid(door)
    page = door.get(INTENTS, {"limit": 1, "expand": ["data.latest_charge"]})
    assert page.status == 200, page.raw
    assert page.body["data"][0]["latest_charge"]["id"] == body["latest_charge"]
    assert shapes.faults("list", page.body) == []


def test_nullable_becomes_null_and_only_there() -> None:
    translated = json_schema(
        {
            "type": "object",
            "properties": {
                "nullable": {"type": "string"},
                "shade": {"type": "string", "enum": ["a"], "nullable": True},
                "party": {"anyOf": [{"$ref": "#/x"}], "nullable": True},
            },
        }
    )
    assert translated["additionalProperties"] is False
    assert translated["properties"]["nullable"] == {"type": "string"}
    assert translated["properties"]["shade"]["enum"] == ["a", None]
    assert translated["properties"]["shade"]["type"] == ["string", "null"]
    assert translated["properties"]["party"]["anyOf"] == [{"$ref": "#/x"}, {"type": "null"}]
