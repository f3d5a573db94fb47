"""The lifecycle of a PaymentIntent and what the published test payment methods do to it.

Sources: docs.stripe.com/payments/paymentintents/lifecycle, /testing, /declines/codes,
/error-codes, /api/payment_intents.
"""

from __future__ import annotations

import pytest
import stripe

from tests.stripe_sandbox.door import INTENTS, Door, created, paid, payment, refusal
from tests.stripe_sandbox.sdk import pay

# PaymentMethod, error code and decline code as docs.stripe.com/testing#declined-payments has them.
DECLINES = [
    ("pm_card_chargeDeclined", "card_declined", "generic_decline"),
    ("pm_card_visa_chargeDeclined", "card_declined", "generic_decline"),
    ("pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
    ("pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
    ("pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card"),
    ("pm_card_visa_chargeDeclinedStolenCard", "card_declined", "stolen_card"),
]


def test_a_good_card_pays_at_once(door: Door) -> None:
    body = paid(door, amount=4242, currency="eur")
    assert body["id"].startswith("pi_")
    assert body["client_secret"].startswith(body["id"] + "_secret_")
    assert (body["amount"], body["amount_received"], body["amount_capturable"]) == (4242, 4242, 0)
    assert (body["currency"], body["livemode"]) == ("eur", False)
    assert body["last_payment_error"] is None
    assert body["next_action"] is None
    assert body["payment_method"].startswith("pm_")
    assert door.get(f"{INTENTS}/{body['id']}").body == body


def test_a_payment_leaves_one_captured_charge(door: Door) -> None:
    intent = paid(door, metadata={"run": "r-1"})
    charge = door.get(f"/v1/charges/{intent['latest_charge']}").body
    assert charge["payment_intent"] == intent["id"]
    assert (charge["status"], charge["paid"], charge["captured"]) == ("succeeded", True, True)
    assert (charge["amount"], charge["amount_captured"], charge["amount_refunded"]) == (
        intent["amount"],
        intent["amount"],
        0,
    )
    assert charge["currency"] == intent["currency"]
    # docs.stripe.com/metadata: a PaymentIntent's metadata is copied to its charge
    assert charge["metadata"] == {"run": "r-1"}


def test_the_sdk_reads_a_payment_and_its_charge(sdk: stripe.StripeClient) -> None:
    intent = pay(sdk, amount=777)
    again = sdk.v1.payment_intents.retrieve(intent.id)
    assert (again.id, again.status, again.amount_received) == (intent.id, "succeeded", 777)
    assert isinstance(again.latest_charge, str)
    assert sdk.v1.charges.retrieve(again.latest_charge).payment_intent == intent.id


@pytest.mark.parametrize(("method", "code", "decline_code"), DECLINES)
def test_a_declined_card_is_a_card_error(
    empty_door: Door, method: str, code: str, decline_code: str
) -> None:
    answer = empty_door.post(INTENTS, payment(payment_method=method))
    assert answer.status == 402
    error = answer.body["error"]
    assert (error["type"], error["code"], error["decline_code"]) == (
        "card_error",
        code,
        decline_code,
    )
    assert error["message"]
    intent = error["payment_intent"]
    assert (intent["status"], intent["amount_received"]) == ("requires_payment_method", 0)
    assert intent["payment_method"] is None
    assert intent["last_payment_error"]["decline_code"] == decline_code
    assert empty_door.ids() == [intent["id"]]
    stored = empty_door.get(f"{INTENTS}/{intent['id']}").body
    assert stored["status"] == "requires_payment_method"
    assert stored["last_payment_error"]["code"] == code


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("pm_card_chargeDeclinedExpiredCard", "expired_card"),
        ("pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc"),
        ("pm_card_chargeDeclinedProcessingError", "processing_error"),
    ],
)
def test_a_card_with_a_fault_of_its_own_names_it(door: Door, method: str, code: str) -> None:
    answer = door.post(INTENTS, payment(payment_method=method))
    assert (answer.status, answer.body["error"]["type"]) == (402, "card_error")
    assert answer.body["error"]["code"] == code


def test_a_declined_card_leaves_a_failed_charge(door: Door) -> None:
    error = door.post(INTENTS, payment(payment_method="pm_card_chargeDeclined")).body["error"]
    charge = door.get(f"/v1/charges/{error['charge']}").body
    assert (charge["status"], charge["paid"], charge["captured"]) == ("failed", False, False)
    assert charge["failure_code"] == "card_declined"
    assert charge["payment_intent"] == error["payment_intent"]["id"]
    assert error["payment_intent"]["latest_charge"] == charge["id"]


def test_the_sdk_raises_card_error(sdk: stripe.StripeClient) -> None:
    with pytest.raises(stripe.CardError) as caught:
        pay(sdk, payment_method="pm_card_chargeDeclinedInsufficientFunds")
    assert (caught.value.http_status, caught.value.code) == (402, "card_declined")
    assert caught.value.error is not None
    assert caught.value.error.decline_code == "insufficient_funds"
    assert caught.value.error.payment_intent is not None
    assert caught.value.error.payment_intent.status == "requires_payment_method"


def test_a_declined_intent_can_be_paid_with_another_card(door: Door) -> None:
    answer = door.post(INTENTS, payment(payment_method="pm_card_chargeDeclined"))
    intent = answer.body["error"]["payment_intent"]
    again = door.post(f"{INTENTS}/{intent['id']}/confirm", {"payment_method": "pm_card_visa"})
    assert (again.status, again.body["status"]) == (200, "succeeded")
    assert again.body["id"] == intent["id"]
    assert again.body["latest_charge"] != intent["latest_charge"]
    assert again.body["last_payment_error"] is None


def test_a_card_that_needs_authentication_waits_for_it(door: Door) -> None:
    answer = door.post(INTENTS, payment(payment_method="pm_card_authenticationRequired"))
    assert (answer.status, answer.body["status"]) == (200, "requires_action")
    assert answer.body["next_action"]["type"] in {"use_stripe_sdk", "redirect_to_url"}
    assert answer.body["amount_received"] == 0
    stored = door.get(f"{INTENTS}/{answer.body['id']}").body
    assert stored["status"] == "requires_action"


def test_authentication_returns_to_the_given_address(door: Door) -> None:
    back = "https://example.com/back?run=1"
    answer = door.post(
        INTENTS, payment(payment_method="pm_card_authenticationRequired", return_url=back)
    )
    assert (answer.status, answer.body["status"]) == (200, "requires_action")
    assert answer.body["next_action"]["type"] == "redirect_to_url"
    assert answer.body["next_action"]["redirect_to_url"]["return_url"] == back


def test_an_unfinished_authentication_can_be_canceled(door: Door) -> None:
    waiting = door.post(INTENTS, payment(payment_method="pm_card_authenticationRequired")).body
    answer = door.post(f"{INTENTS}/{waiting['id']}/cancel")
    assert (answer.status, answer.body["status"]) == (200, "canceled")


def test_a_card_that_needs_authentication_fails_off_session(empty_door: Door) -> None:
    answer = empty_door.post(
        INTENTS, payment(payment_method="pm_card_authenticationRequired", off_session=True)
    )
    error = answer.body["error"]
    assert (answer.status, error["type"]) == (402, "card_error")
    assert error["code"] == "authentication_required"
    assert error["decline_code"] == "authentication_required"
    assert error["payment_intent"]["status"] == "requires_payment_method"
    assert empty_door.ids() == [error["payment_intent"]["id"]]


def test_authentication_fails_where_it_was_said_that_nobody_can_act(door: Door) -> None:
    answer = door.post(
        INTENTS,
        payment(payment_method="pm_card_authenticationRequired", error_on_requires_action=True),
    )
    error = answer.body["error"]
    assert (answer.status, error["type"]) == (402, "card_error")
    assert error["code"] == "authentication_required"
    assert error["payment_intent"]["status"] == "requires_payment_method"


def test_off_session_does_not_stop_a_good_card(door: Door) -> None:
    assert paid(door, off_session=True)["status"] == "succeeded"


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
    ready = door.post(address, {"payment_method": "pm_card_visa"})
    assert (ready.status, ready.body["status"]) == (200, "requires_confirmation")
    assert ready.body["amount_received"] == 0
    done = door.post(f"{address}/confirm")
    assert (done.status, done.body["status"]) == (200, "succeeded")
    assert done.body["amount_received"] == intent["amount"]


def test_a_card_given_without_confirm_is_not_charged(door: Door) -> None:
    intent = created(door, payment_method="pm_card_visa")
    assert intent["status"] == "requires_confirmation"
    assert (intent["latest_charge"], intent["amount_received"]) == (None, 0)


def test_an_open_intent_can_change_its_amount(door: Door) -> None:
    intent = created(door)
    changed = door.post(f"{INTENTS}/{intent['id']}", {"amount": 2000, "description": "second"})
    assert (changed.status, changed.body["amount"]) == (200, 2000)
    assert changed.body["description"] == "second"
    assert changed.body["created"] == intent["created"]


def test_an_intent_without_a_card_cannot_be_confirmed(door: Door) -> None:
    intent = created(door)
    answer = door.post(f"{INTENTS}/{intent['id']}/confirm")
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert door.get(f"{INTENTS}/{intent['id']}").body["status"] == "requires_payment_method"


def test_confirm_at_creation_needs_a_card(empty_door: Door) -> None:
    answer = empty_door.post(INTENTS, payment(payment_method=None))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert [empty_door.get(f"{INTENTS}/{each}").body["status"] for each in empty_door.ids()] in (
        [],
        ["requires_payment_method"],
    )


@pytest.mark.parametrize(
    ("action", "params"),
    [("/confirm", {}), ("/confirm", {"payment_method": "pm_card_visa"}), ("/cancel", {})],
)
def test_a_paid_intent_is_final(door: Door, action: str, params: dict[str, str]) -> None:
    intent = paid(door)
    answer = door.post(f"{INTENTS}/{intent['id']}{action}", params)
    assert refusal(answer)[:3] == (400, "invalid_request_error", "payment_intent_unexpected_state")
    assert answer.body["error"]["payment_intent"]["id"] == intent["id"]
    assert door.get(f"{INTENTS}/{intent['id']}").body == intent


def test_a_paid_intent_keeps_its_amount(door: Door) -> None:
    intent = paid(door)
    answer = door.post(f"{INTENTS}/{intent['id']}", {"amount": 1})
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert door.get(f"{INTENTS}/{intent['id']}").body == intent


@pytest.mark.parametrize("reason", [None, "duplicate", "requested_by_customer", "abandoned"])
def test_an_open_intent_can_be_canceled_for_good(door: Door, reason: str | None) -> None:
    intent = created(door, payment_method="pm_card_visa")
    address = f"{INTENTS}/{intent['id']}"
    gone = door.post(f"{address}/cancel", {"cancellation_reason": reason} if reason else {})
    assert (gone.status, gone.body["status"]) == (200, "canceled")
    assert gone.body["cancellation_reason"] == reason
    assert gone.body["canceled_at"] >= intent["created"]
    for action in ("/confirm", "/cancel"):
        again = door.post(address + action)
        assert refusal(again)[:3] == (
            400,
            "invalid_request_error",
            "payment_intent_unexpected_state",
        )
    assert door.get(address).body == gone.body


def test_only_a_listed_reason_cancels(door: Door) -> None:
    intent = created(door)
    answer = door.post(f"{INTENTS}/{intent['id']}/cancel", {"cancellation_reason": "bored"})
    assert answer.status == 400
    assert answer.body["error"]["param"] == "cancellation_reason"
    assert door.get(f"{INTENTS}/{intent['id']}").body["status"] == "requires_payment_method"


def test_manual_capture_never_takes_the_money_at_once(empty_door: Door) -> None:
    # capture_method=manual only places a hold: a server that cannot do it must refuse.
    answer = empty_door.post(INTENTS, payment(capture_method="manual"))
    if answer.status == 200:
        assert answer.body["status"] == "requires_capture"
        assert answer.body["amount_received"] == 0
    else:
        assert refusal(answer)[:2] == (400, "invalid_request_error")
        assert empty_door.ids() == []


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("get", f"{INTENTS}/pi_unknown"),
        ("post", f"{INTENTS}/pi_unknown"),
        ("post", f"{INTENTS}/pi_unknown/confirm"),
        ("post", f"{INTENTS}/pi_unknown/cancel"),
        ("get", "/v1/charges/ch_unknown"),
    ],
)
def test_an_unknown_id_is_not_found(door: Door, verb: str, path: str) -> None:
    answer = door.get(path) if verb == "get" else door.post(path)
    assert refusal(answer)[:3] == (404, "invalid_request_error", "resource_missing")
    assert "unknown" in answer.body["error"]["message"]


@pytest.mark.parametrize("method", ["pm_card_nonsense", "pm_1NoSuchMethod", "visa", "tok_visa_x"])
def test_an_unknown_card_is_refused(empty_door: Door, method: str) -> None:
    answer = empty_door.post(INTENTS, payment(payment_method=method))
    # /error-codes#resource-missing; /api/errors allows 400 and 404 for it
    assert refusal(answer)[1:] == ("invalid_request_error", "resource_missing", "payment_method")
    assert answer.status in {400, 404}
    assert empty_door.ids() == []


def test_the_sdk_raises_for_an_unknown_id(sdk: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as caught:
        sdk.v1.payment_intents.retrieve("pi_unknown")
    assert (caught.value.http_status, caught.value.code) == (404, "resource_missing")
