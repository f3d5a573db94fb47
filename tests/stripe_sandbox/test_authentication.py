"""Who may ask, and that one account never sees or moves another's.

Source: docs.stripe.com/api/authentication.
"""

from dataclasses import replace

import pytest
import stripe

from tests.stripe_sandbox.door import (
    FORM,
    INTENTS,
    Door,
    client_of,
    created,
    encoded,
    paid,
    pay,
    payment,
    refusal,
)

WRONG = [
    *("", "Bearer", "Bearer ", "Bearer sk_test_nobody0001", "Bearer sk_live_alpha0001"),
    "Bearer pk_test_alpha0001",
    "Bearer sk_test_alpha000",  # a prefix of a good key
    *("Bearer sk_test_alpha00011", "Bearer SK_TEST_ALPHA0001"),
    "sk_test_alpha0001",  # no scheme
    *("Digest sk_test_alpha0001", "Basic !!!not base64!!!"),
    "Basic c2tfdGVzdF9ub2JvZHk6",  # sk_test_nobody:
]
PAYMENT = encoded(payment()).encode()


@pytest.mark.parametrize("headers", [{}, *({"Authorization": each} for each in WRONG)], ids=str)
def test_without_a_good_key_nothing_is_answered_and_nothing_done(
    door: Door, headers: dict[str, str]
) -> None:
    before = door.ids()
    read = door.send("GET", INTENTS, headers=headers)
    assert (read.status, read.body["error"]["type"]) == (401, "invalid_request_error")
    assert "www-authenticate" in read.headers  # RFC 9110 §15.5.2
    form = {**headers, "Content-Type": FORM}
    assert door.send("POST", INTENTS, headers=form, body=PAYMENT).status == 401
    assert door.ids() == before


def test_a_refused_key_is_not_repeated_in_full(door: Door, sdk_http: stripe.RequestsClient) -> None:
    secret = "sk_test_" + "verysecret" * 3
    stranger = replace(door, key=secret)
    assert secret.encode() not in stranger.get(INTENTS).raw
    with pytest.raises(stripe.AuthenticationError) as caught:
        pay(client_of(stranger, sdk_http))
    assert caught.value.http_status == 401


def test_basic_and_bearer_are_one_account_and_health_needs_no_key(door: Door) -> None:
    intent = created(door)
    answer = door.send("GET", f"{INTENTS}/{intent['id']}", headers={"Authorization": door.basic()})
    assert (answer.status, answer.body) == (200, intent)
    assert door.send("GET", "/healthz", headers={}).status == 200


def test_an_intent_and_its_charge_are_out_of_another_accounts_reach(
    door: Door, empty_door: Door
) -> None:
    intent, draft = paid(door), created(door, payment_method="pm_card_visa")
    path, mine = f"{INTENTS}/{draft['id']}", {"metadata": {"mine": "now"}}
    asked = [
        empty_door.post(path, mine),
        *(empty_door.post(path + x) for x in ("/confirm", "/cancel")),
    ]
    asked += [
        empty_door.get(INTENTS, {x: intent["id"]}) for x in ("starting_after", "ending_before")
    ]
    for seen in (f"{INTENTS}/{intent['id']}", f"/v1/charges/{intent['latest_charge']}"):
        assert door.get(seen).status == 200
        asked.append(empty_door.get(seen))
    found = [refusal(answer) for answer in asked]
    assert [(status in {400, 404}, code) for status, _, code, _ in found] == [
        (True, "resource_missing")
    ] * len(asked)
    assert (door.get(path).body, empty_door.ids()) == (draft, [])
    # and a refusal does not tell whether the id exists elsewhere
    nowhere = empty_door.get(f"{INTENTS}/pi_nowhere").raw
    here = empty_door.get(path).raw.replace(draft["id"].encode(), b"pi_nowhere")
    assert here.split(b"request_log_url")[0] == nowhere.split(b"request_log_url")[0]
