"""Idempotent requests, as docs.stripe.com/api/idempotent_requests and /error-low-level say."""

from tests.stripe_sandbox.door import (
    FORM,
    INTENTS,
    Answer,
    Door,
    created,
    encoded,
    payment,
    refusal,
)

KEY_CHARACTERS_MAX = 255
DECLINED = payment(payment_method="pm_card_chargeDeclined")


def told(answer: Answer) -> tuple[int, bool, object]:
    """Status, whether it is a replay, and body."""
    return answer.status, answer.replayed, answer.body


def test_a_replay_is_the_answer_of_then_not_of_now(empty_door: Door) -> None:
    first = empty_door.post(INTENTS, DECLINED, key="k-1")
    path = f"{INTENTS}/{first.body['error']['payment_intent']['id']}"
    done = empty_door.post(f"{path}/confirm", {"payment_method": "pm_card_visa"}, key="k-2")
    described = empty_door.post(path, {"description": "first"}, key="k-3")
    empty_door.post(path, {"description": "second"}, key="k-4")
    assert told(empty_door.post(INTENTS, DECLINED, key="k-1")) == (402, True, first.body)
    again = empty_door.post(f"{path}/confirm", {"payment_method": "pm_card_visa"}, key="k-2")
    assert told(again) == (200, True, done.body)
    again = empty_door.post(path, {"description": "first"}, key="k-3")
    assert told(again) == (200, True, described.body)
    now = empty_door.get(path, None, **{"Idempotency-Key": "k-3"})  # a GET ignores the key
    assert (now.replayed, now.body["description"], now.body["status"]) == (
        *(False, "second", "succeeded"),
    )


def test_the_order_of_parameters_is_no_difference(door: Door) -> None:
    first = door.post(INTENTS, payment(metadata={"a": "1", "b": "2"}), key="k-order")
    turned = dict(reversed(payment(metadata={"b": "2", "a": "1"}).items()))
    assert told(door.post(INTENTS, turned, key="k-order")) == (200, True, first.body)


def test_a_key_belongs_to_one_address(door: Door) -> None:
    intent, other = (created(door, payment_method="pm_card_visa") for _ in range(2))
    assert door.post(f"{INTENTS}/{intent['id']}/confirm", key="k-path").status == 200
    for path in (f"{INTENTS}/{other['id']}/confirm", f"{INTENTS}/{intent['id']}/cancel"):
        assert refusal(door.post(path, key="k-path"))[:2] == (400, "idempotency_error")
    assert door.get(f"{INTENTS}/{other['id']}").body == other


def test_accounts_do_not_share_keys(empty_door: Door, other_door: Door) -> None:
    mine = empty_door.post(INTENTS, payment(), key="k-shared")
    theirs = other_door.post(INTENTS, payment(amount=5000), key="k-shared")
    assert (theirs.status, theirs.replayed, theirs.body["amount"]) == (200, False, 5000)
    assert empty_door.ids() == [mine.body["id"]]


def test_a_request_that_fails_validation_or_has_no_good_key_is_not_stored(empty_door: Door) -> None:
    # "If incoming parameters fail validation ... no idempotent result is saved"
    faults: list[dict[str, object]] = [{"currency": None}, {"amount": "ten"}, {"colour": "red"}]
    for change in faults * 2:
        answer = empty_door.post(INTENTS, payment(**change), key="k-1")
        assert (refusal(answer)[:2], answer.replayed) == ((400, "invalid_request_error"), False)
    # /error-low-level: a 401 comes before the idempotency layer
    body, headers = encoded(payment()).encode(), {"Content-Type": FORM, "Idempotency-Key": "k-1"}
    assert empty_door.send("POST", INTENTS, headers=headers, body=body).status == 401
    good = empty_door.post(INTENTS, payment(), key="k-1")
    assert (good.status, good.replayed, empty_door.ids()) == (200, False, [good.body["id"]])


def test_a_key_of_255_characters_serves_and_one_of_256_is_refused(empty_door: Door) -> None:
    key = "k" * KEY_CHARACTERS_MAX
    first, second = (empty_door.post(INTENTS, payment(), key=key) for _ in range(2))
    assert (first.status, *told(second)) == (200, 200, True, first.body)
    longer = refusal(empty_door.post(INTENTS, payment(), key=f"{key}k"))
    assert longer[0] == 400
    assert longer[1] in {"invalid_request_error", "idempotency_error"}
    assert len(empty_door.ids()) == 1
