"""Idempotent requests, as docs.stripe.com/api/idempotent_requests and /error-low-level have them.

That a key lasts 24 hours is held in test_durability, what a crowd does in test_concurrency. That a
stored 500 is replayed is not held here: nothing that a client can send makes the counterpart fail.
"""

from __future__ import annotations

import pytest
import stripe

from tests.stripe_sandbox.door import FORM, INTENTS, Door, created, draft, encoded, payment, refusal
from tests.stripe_sandbox.sdk import header, pay

KEY_CHARACTERS_MAX = 255


def test_a_repeat_returns_the_first_answer_and_says_so(empty_door: Door) -> None:
    first = empty_door.post(INTENTS, payment(), key="k-1")
    second = empty_door.post(INTENTS, payment(), key="k-1")
    assert (first.status, first.replayed) == (200, False)
    assert (second.status, second.replayed) == (200, True)
    assert second.body == first.body
    assert empty_door.ids() == [first.body["id"]]


def test_a_replay_is_the_answer_of_then_not_of_now(door: Door) -> None:
    first = door.post(INTENTS, draft(), key="k-then")
    door.post(f"{INTENTS}/{first.body['id']}/cancel")
    assert door.post(INTENTS, draft(), key="k-then").body == first.body
    assert door.get(f"{INTENTS}/{first.body['id']}").body["status"] == "canceled"


def test_the_order_of_parameters_is_no_difference(door: Door) -> None:
    first = door.post(INTENTS, payment(metadata={"a": "1", "b": "2"}), key="k-order")
    turned = dict(reversed(payment(metadata={"b": "2", "a": "1"}).items()))
    second = door.post(INTENTS, turned, key="k-order")
    assert (second.status, second.replayed) == (200, True)
    assert second.body["id"] == first.body["id"]


def test_without_a_key_every_post_counts(empty_door: Door) -> None:
    ids = [empty_door.post(INTENTS, payment()).body["id"] for _ in range(2)]
    assert empty_door.ids() == ids[::-1]


def test_two_keys_are_two_payments(empty_door: Door) -> None:
    ids = [empty_door.post(INTENTS, payment(), key=key).body["id"] for key in ("k", "K")]
    assert empty_door.ids() == ids[::-1]


@pytest.mark.parametrize(
    "change",
    [
        {"amount": 1100},
        {"currency": "eur"},
        {"metadata": {"a": "1"}},
        {"payment_method": "pm_card_chargeDeclined"},
        {"confirm": False},
        {"description": "more"},
    ],
)
def test_changed_parameters_are_an_idempotency_error(
    empty_door: Door, change: dict[str, object]
) -> None:
    first = empty_door.post(INTENTS, payment(), key="k-1")
    answer = empty_door.post(INTENTS, payment(**change), key="k-1")
    assert (answer.status, answer.body["error"]["type"]) == (400, "idempotency_error")
    assert "same parameters" in answer.body["error"]["message"]
    assert not answer.replayed
    assert empty_door.ids() == [first.body["id"]]
    again = empty_door.post(INTENTS, payment(), key="k-1")
    assert (again.replayed, again.body) == (True, first.body)


def test_a_key_belongs_to_one_address(door: Door) -> None:
    intent = created(door, payment_method="pm_card_visa")
    other = created(door, payment_method="pm_card_visa")
    assert door.post(f"{INTENTS}/{intent['id']}/confirm", key="k-path").status == 200
    for path in (f"{INTENTS}/{other['id']}/confirm", f"{INTENTS}/{intent['id']}/cancel"):
        answer = door.post(path, key="k-path")
        assert (answer.status, answer.body["error"]["type"]) == (400, "idempotency_error")
    assert door.get(f"{INTENTS}/{other['id']}").body == other


def test_accounts_do_not_share_keys(empty_door: Door, other_door: Door) -> None:
    mine = empty_door.post(INTENTS, payment(), key="k-shared")
    theirs = other_door.post(INTENTS, payment(amount=5000), key="k-shared")
    assert (theirs.status, theirs.replayed, theirs.body["amount"]) == (200, False, 5000)
    assert theirs.body["id"] != mine.body["id"]
    assert empty_door.ids() == [mine.body["id"]]


def test_a_confirmation_is_replayed(door: Door) -> None:
    intent = created(door, payment_method="pm_card_visa")
    path = f"{INTENTS}/{intent['id']}/confirm"
    first, second = door.post(path, key="k-confirm"), door.post(path, key="k-confirm")
    assert (first.status, first.replayed) == (200, False)
    assert (second.status, second.replayed, second.body) == (200, True, first.body)


def test_an_update_is_replayed_and_not_done_again(door: Door) -> None:
    path = f"{INTENTS}/{created(door)['id']}"
    first = door.post(path, {"description": "first"}, key="k-update")
    door.post(path, {"description": "second"}, key="k-update-2")
    again = door.post(path, {"description": "first"}, key="k-update")
    assert (again.status, again.replayed, again.body) == (200, True, first.body)
    assert door.get(path).body["description"] == "second"


def test_a_decline_is_stored_and_replayed(empty_door: Door) -> None:
    # "saving the resulting status code and body ... regardless of whether it succeeds or fails"
    declined = payment(payment_method="pm_card_chargeDeclined")
    first = empty_door.post(INTENTS, declined, key="k-1")
    second = empty_door.post(INTENTS, declined, key="k-1")
    assert (first.status, first.replayed) == (402, False)
    assert (second.status, second.replayed, second.body) == (402, True, first.body)
    assert empty_door.ids() == [first.body["error"]["payment_intent"]["id"]]


def test_a_decline_is_replayed_after_the_intent_was_paid(empty_door: Door) -> None:
    declined = payment(payment_method="pm_card_chargeDeclined")
    first = empty_door.post(INTENTS, declined, key="k-1")
    intent = first.body["error"]["payment_intent"]
    empty_door.post(f"{INTENTS}/{intent['id']}/confirm", {"payment_method": "pm_card_visa"})
    again = empty_door.post(INTENTS, declined, key="k-1")
    assert (again.status, again.replayed, again.body) == (402, True, first.body)


@pytest.mark.parametrize(
    "bad",
    [payment(currency=None), payment(amount=None), payment(amount="ten"), payment(colour="red")],
)
def test_a_request_that_fails_validation_is_not_stored(
    empty_door: Door, bad: dict[str, object]
) -> None:
    # "If incoming parameters fail validation ... no idempotent result is saved"
    for _ in range(2):
        answer = empty_door.post(INTENTS, bad, key="k-1")
        assert (refusal(answer)[:2], answer.replayed) == ((400, "invalid_request_error"), False)
    good = empty_door.post(INTENTS, payment(), key="k-1")
    assert (good.status, good.replayed) == (200, False)
    assert empty_door.ids() == [good.body["id"]]


def test_a_request_without_a_good_key_is_not_stored(empty_door: Door) -> None:
    # /error-low-level: a 401 comes before the idempotency layer
    body = encoded(payment()).encode()
    headers = {"Content-Type": FORM, "Idempotency-Key": "k-1"}
    assert empty_door.send("POST", INTENTS, headers=headers, body=body).status == 401
    good = empty_door.post(INTENTS, payment(), key="k-1")
    assert (good.status, good.replayed) == (200, False)


def test_a_get_ignores_the_key(door: Door) -> None:
    intent = door.post(INTENTS, draft(), key="k-get").body
    path = f"{INTENTS}/{intent['id']}"
    door.post(path, {"description": "changed"})
    answer = door.get(path, None, **{"Idempotency-Key": "k-get"})
    assert (answer.status, answer.replayed, answer.body["description"]) == (200, False, "changed")


def test_a_key_of_255_characters_serves(empty_door: Door) -> None:
    key = "k" * KEY_CHARACTERS_MAX
    first, second = (empty_door.post(INTENTS, payment(), key=key) for _ in range(2))
    assert (first.status, second.replayed, second.body) == (200, True, first.body)


def test_a_key_of_256_characters_is_refused(empty_door: Door) -> None:
    answer = empty_door.post(INTENTS, payment(), key="k" * (KEY_CHARACTERS_MAX + 1))
    assert answer.status == 400
    assert answer.body["error"]["type"] in {"invalid_request_error", "idempotency_error"}
    assert empty_door.ids() == []


def test_the_sdk_sees_the_replay_and_the_misuse(empty_sdk: stripe.StripeClient) -> None:
    first = pay(empty_sdk, key="k-sdk")
    again = pay(empty_sdk, key="k-sdk")
    assert again.id == first.id
    assert header(first, "Idempotent-Replayed") is None
    assert header(again, "Idempotent-Replayed") == "true"
    with pytest.raises(stripe.IdempotencyError) as caught:
        pay(empty_sdk, key="k-sdk", amount=1)
    assert caught.value.http_status == 400
