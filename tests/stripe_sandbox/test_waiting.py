"""Payments that do not end at once: an authentication, a bank debit; and a payout's end.

Sources: docs.stripe.com/payments/3d-secure, /payments/ach-direct-debit, /api/payouts.
Paths that begin with /counterpart/ are this counterpart's own: at Stripe, people and banks act.
"""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import stripe

from tests.stripe_sandbox.conftest import ALPHA, serving
from tests.stripe_sandbox.door import FORM, INTENTS, Answer, Door, connected, pay, payment, refusal

THREE_D_SECURE = "pm_card_threeDSecure2Required"
OWNER = payment(payment_method=THREE_D_SECURE)
BACK = "https://example.com/back?run=1#top"
DEBIT = {"payment_method": "pm_usBankAccount_processing", "payment_method_types": None}


def _press(door: Door, page: str, outcome: str) -> Answer:
    """Press a button of a page, as a browser does: without a key."""
    body, headers = f"outcome={outcome}".encode(), {"Content-Type": FORM}
    return door.send("POST", urlsplit(page).path, body=body, headers=headers)


def _page(intent: Any) -> str:
    return str(intent["next_action"]["use_stripe_sdk"]["stripe_js"])


@pytest.mark.parametrize(("outcome", "ends"), [("complete", "succeeded"), ("fail", "failed")])
def test_the_owner_of_a_card_completes_or_fails_a_payment_once(
    sdk: stripe.StripeClient, empty_door: Door, outcome: str, ends: str
) -> None:
    given: Any = {"return_url": BACK, "transfer_data": {"destination": connected(sdk).id}}
    intent: Any = pay(sdk, payment_method=THREE_D_SECURE, **given)
    assert (intent.status, intent.amount_received) == ("requires_action", 0)
    page = intent.next_action.redirect_to_url.url
    shown = empty_door.send("GET", urlsplit(page).path, headers={})
    assert (shown.status, shown.raw.count(b"<button")) == (200, 2)
    assert _press(empty_door, page, "maybe").status == 400
    assert _press(empty_door, page[:-1], outcome).status == 404
    pressed = _press(empty_door, page, outcome)
    there = urlsplit(pressed.headers["location"])
    assert (pressed.status, there.netloc, there.fragment) == (303, "example.com", "top")
    told = parse_qs(there.query)
    assert (told["run"], told["payment_intent"]) == (["1"], [intent.id])
    assert told["redirect_status"] == [ends]
    after: Any = sdk.v1.payment_intents.retrieve(intent.id)
    is_paid = ends == "succeeded"
    assert after.amount_received == (after.amount if is_paid else 0)
    assert after.status == ("succeeded" if is_paid else "requires_payment_method")
    error = after.last_payment_error
    assert is_paid or error.code == "payment_intent_authentication_failure"
    assert len(sdk.v1.transfers.list().data) == int(is_paid)
    assert _press(empty_door, page, "complete").status == 404


def test_a_way_back_is_an_address_or_left_out(empty_door: Door) -> None:
    bad = ("javascript:alert(1)", "nowhere", "https://x.example/\r\nSet-Cookie: a=b", "http://")
    for url in bad:
        answer = empty_door.post(INTENTS, payment(return_url=url))
        assert refusal(answer)[2:] == ("url_invalid", "return_url"), url
    one, two = [empty_door.post(INTENTS, OWNER).body for _ in range(2)]
    assert b"succeeded" in _press(empty_door, _page(one), "complete").raw
    canceled = empty_door.post(f"{INTENTS}/{two['id']}/cancel").body
    assert (canceled["status"], canceled["next_action"]) == ("canceled", None)
    assert _press(empty_door, _page(two), "complete").status == 404


def test_the_page_is_found_again_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        intent = running.door(ALPHA).post(INTENTS, OWNER).body
    with serving(tmp_path) as again:
        door = again.door(ALPHA)
        page = _page(door.get(f"{INTENTS}/{intent['id']}").body)
        assert page.startswith(f"{door.url}/counterpart/")
        assert b"succeeded" in _press(door, page, "complete").raw


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_bank_debit_is_processing_until_it_is_settled(
    sdk: stripe.StripeClient, empty_door: Door, outcome: str
) -> None:
    to: Any = {"transfer_data": {"destination": connected(sdk).id}}
    automatic = {"automatic_payment_methods": {"enabled": True, "allow_redirects": "never"}}
    intent: Any = pay(sdk, **DEBIT, **automatic, **to)  # type: ignore[arg-type]
    assert (intent.status, intent.amount_received) == ("processing", 0)
    assert sdk.v1.charges.retrieve(intent.latest_charge).status == "pending"
    assert sdk.v1.transfers.list().data == []
    own = f"/counterpart/payment_intents/{intent.id}/settle"
    event = f"payment_intent.{'succeeded' if outcome == 'succeeded' else 'payment_failed'}"
    status = "succeeded" if outcome == "succeeded" else "requires_payment_method"
    assert empty_door.post(own, {"outcome": outcome}).body["status"] == status
    assert len(sdk.v1.transfers.list().data) == int(outcome == "succeeded")
    assert sdk.v1.charges.retrieve(intent.latest_charge).status == outcome
    kinds = [each.type for each in sdk.v1.events.list()]
    assert {event, "payment_intent.processing"} <= {*kinds}
    assert empty_door.post(own, {"outcome": outcome}).status == 400


def test_a_bank_debit_can_be_canceled_and_is_for_dollars_alone(
    sdk: stripe.StripeClient, empty_door: Door
) -> None:
    debit = payment(**DEBIT) | {"payment_method_types": ["us_bank_account"]}
    intent = empty_door.post(INTENTS, debit).body
    canceled = empty_door.post(f"{INTENTS}/{intent['id']}/cancel").body
    assert (intent["status"], canceled["status"]) == ("processing", "canceled")
    assert sdk.v1.charges.retrieve(intent["latest_charge"]).status == "failed"
    euros = empty_door.post(INTENTS, {**debit, "currency": "eur"})
    assert refusal(euros)[::3] == (400, "payment_method_types")
    cards_only = empty_door.post(INTENTS, {**debit, "payment_method_types": ["card"]})
    assert refusal(cards_only)[::3] == (400, "payment_method")


@pytest.mark.parametrize(("outcome", "status"), [("succeeded", "paid"), ("failed", "failed")])
def test_the_payout_of_a_connected_account_ends(
    sdk: stripe.StripeClient, empty_door: Door, outcome: str, status: str
) -> None:
    account = connected(sdk)
    pay(sdk, payment_method="pm_card_bypassPending", transfer_data={"destination": account.id})
    params: Any = {"amount": 1_000, "currency": "usd"}
    with pytest.raises(stripe.InvalidRequestError, match="insufficient"):
        sdk.v1.payouts.create(params)  # the platform has nothing left
    payout = sdk.v1.payouts.create(params, {"stripe_account": account.id})
    headers = {"Authorization": empty_door.basic(), "Stripe-Account": account.id}
    own, body = f"/counterpart/payouts/{payout.id}/settle", f"outcome={outcome}".encode()
    assert empty_door.send("POST", own, headers=headers, body=body).body["status"] == status
    (available,) = sdk.v1.balance.retrieve(options={"stripe_account": account.id}).available
    assert available.amount == (99 if status == "paid" else 1_099)
    kinds = [each.type for each in sdk.v1.events.list(options={"stripe_account": account.id})]
    assert kinds[:2] == [f"payout.{status}", "payout.created"]
