"""The lifecycle of a PaymentIntent and what the published test payment methods do to it.

Sources: docs.stripe.com/payments/paymentintents/lifecycle, /testing, /declines/codes,
/error-codes, /api/payment_intents.
"""

import pytest

from tests.stripe_sandbox.door import INTENTS, Door, created, paid, payment, refusal

AUTHENTICATION = "pm_card_authenticationRequired"
FINAL = (400, "invalid_request_error", "payment_intent_unexpected_state")


def test_a_good_card_pays_at_once_and_leaves_one_captured_charge(door: Door) -> None:
    body = paid(door, amount=4242, currency="eur", metadata={"run": "r-1"}, off_session=True)
    assert body["id"].startswith("pi_")
    assert body["client_secret"].startswith(body["id"] + "_secret_")
    assert (body["amount"], body["amount_received"], body["amount_capturable"]) == (4242, 4242, 0)
    assert (body["currency"], body["livemode"]) == ("eur", False)
    assert (body["last_payment_error"], body["next_action"]) == (None, None)
    assert body["payment_method"].startswith("pm_")
    assert door.get(f"{INTENTS}/{body['id']}").body == body
    charge = door.get(f"/v1/charges/{body['latest_charge']}").body
    assert (charge["payment_intent"], charge["currency"]) == (body["id"], "eur")
    assert (charge["status"], charge["paid"], charge["captured"]) == ("succeeded", True, True)
    amounts = [charge[name] for name in ("amount", "amount_captured", "amount_refunded")]
    assert amounts == [4242, 4242, 0]
    # docs.stripe.com/metadata: a PaymentIntent's metadata is copied to its charge
    assert charge["metadata"] == {"run": "r-1"}


# PaymentMethod, error code and decline code as docs.stripe.com/testing#declined-payments has them.
@pytest.mark.parametrize(
    ("method", "code", "decline_code"),
    [
        ("chargeDeclined", "card_declined", "generic_decline"),
        ("visa_chargeDeclined", "card_declined", "generic_decline"),
        ("chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("visa_chargeDeclinedLostCard", "card_declined", "lost_card"),
        ("visa_chargeDeclinedStolenCard", "card_declined", "stolen_card"),
        ("chargeDeclinedExpiredCard", "expired_card", None),  # a fault of its own is named
        ("chargeDeclinedIncorrectCvc", "incorrect_cvc", None),
        ("chargeDeclinedProcessingError", "processing_error", None),
    ],
)
def test_a_declined_card_is_a_card_error_and_leaves_a_failed_charge(
    empty_door: Door, method: str, code: str, decline_code: str | None
) -> None:
    answer = empty_door.post(INTENTS, payment(payment_method=f"pm_card_{method}"))
    error = answer.body["error"]
    assert (answer.status, error["type"], error["code"]) == (402, "card_error", code)
    assert decline_code in (None, error["decline_code"])
    assert error["message"]
    intent = error["payment_intent"]
    assert (intent["status"], intent["amount_received"]) == ("requires_payment_method", 0)
    assert intent["payment_method"] is None
    assert empty_door.ids() == [intent["id"]]
    stored = empty_door.get(f"{INTENTS}/{intent['id']}").body
    assert (stored["status"], stored["latest_charge"]) == (intent["status"], error["charge"])
    assert stored["last_payment_error"]["code"] == code
    assert decline_code in (None, stored["last_payment_error"]["decline_code"])
    charge = empty_door.get(f"/v1/charges/{error['charge']}").body
    assert (charge["status"], charge["paid"], charge["captured"]) == ("failed", False, False)
    assert (charge["failure_code"], charge["payment_intent"]) == (code, intent["id"])


@pytest.mark.parametrize("nobody", ["off_session", "error_on_requires_action"])
def test_authentication_fails_where_it_was_said_that_nobody_can_act(
    empty_door: Door, nobody: str
) -> None:
    answer = empty_door.post(INTENTS, payment(payment_method=AUTHENTICATION, **{nobody: True}))
    error = answer.body["error"]
    assert (answer.status, error["type"]) == (402, "card_error")
    assert error["code"] == "authentication_required"
    assert nobody != "off_session" or error["decline_code"] == "authentication_required"
    assert error["payment_intent"]["status"] == "requires_payment_method"
    assert empty_door.ids() == [error["payment_intent"]["id"]]


def test_without_redirects_no_return_address_is_needed(empty_door: Door) -> None:
    # Since 2023-08-16 automatic_payment_methods is the default, and may redirect.
    bare = payment(payment_method_types=None)
    refused = empty_door.post(INTENTS, bare)
    assert refusal(refused)[:2] == (400, "invalid_request_error")
    assert "return_url" in refused.body["error"]["message"]
    assert empty_door.ids() == []
    methods = {"automatic_payment_methods": {"enabled": True, "allow_redirects": "never"}}
    for way in (methods, {"return_url": "https://example.com/back"}):
        answer = empty_door.post(INTENTS, {**bare, **way})
        assert (answer.status, answer.body["status"]) == (200, "succeeded")


def test_an_intent_moves_through_its_states_step_by_step(door: Door) -> None:
    intent = created(door)
    address = f"{INTENTS}/{intent['id']}"
    assert intent["status"] == "requires_payment_method"
    assert (intent["payment_method"], intent["latest_charge"]) == (None, None)
    early = door.post(f"{address}/confirm")  # it has no card
    assert refusal(early)[:2] == (400, "invalid_request_error")
    changed = door.post(address, {"amount": 2000, "description": "second"}).body
    assert (changed["amount"], changed["description"]) == (2000, "second")
    assert (changed["created"], changed["status"]) == (intent["created"], intent["status"])
    ready = door.post(address, {"payment_method": "pm_card_visa"})
    assert (ready.status, ready.body["status"]) == (200, "requires_confirmation")
    assert (ready.body["latest_charge"], ready.body["amount_received"]) == (None, 0)
    done = door.post(f"{address}/confirm")
    assert (done.status, done.body["status"]) == (200, "succeeded")
    assert done.body["amount_received"] == 2000


def test_a_paid_intent_is_final(door: Door) -> None:
    intent = paid(door)
    address = f"{INTENTS}/{intent['id']}"
    card = {"payment_method": "pm_card_visa"}
    for action, params in (("/confirm", {}), ("/confirm", card), ("/cancel", {})):
        answer = door.post(f"{address}{action}", params)
        assert refusal(answer)[:3] == FINAL
        assert answer.body["error"]["payment_intent"]["id"] == intent["id"]
    assert refusal(door.post(address, {"amount": 1}))[:2] == (400, "invalid_request_error")
    assert door.get(address).body == intent


@pytest.mark.parametrize("reason", [None, "duplicate", "requested_by_customer", "abandoned"])
def test_an_open_intent_can_be_canceled_for_good(door: Door, reason: str | None) -> None:
    intent = created(door, payment_method="pm_card_visa")
    address = f"{INTENTS}/{intent['id']}"
    gone = door.post(f"{address}/cancel", {"cancellation_reason": reason} if reason else {})
    assert (gone.status, gone.body["status"]) == (200, "canceled")
    assert gone.body["cancellation_reason"] == reason
    assert gone.body["canceled_at"] >= intent["created"]
    for action in ("/confirm", "/cancel"):
        assert refusal(door.post(address + action))[:3] == FINAL
    assert door.get(address).body == gone.body
