"""What a request may say: amounts, currencies, unknown and malformed parameters.

Sources: docs.stripe.com/currencies, /error-codes, /api/errors, /metadata.
"""

from __future__ import annotations

import contextlib

import pytest
import stripe

from tests.stripe_sandbox.door import (
    FORM,
    INTENTS,
    Answer,
    Door,
    created,
    draft,
    paid,
    payment,
    refusal,
)
from tests.stripe_sandbox.sdk import pay

# docs.stripe.com/currencies#minimum-and-maximum-charge-amounts
MINIMUM = [("usd", 50), ("eur", 50), ("gbp", 30), ("chf", 50), ("jpy", 50)]
MAXIMUM = 99_999_999  # "up to eight digits"


def test_an_unknown_parameter_is_named(empty_door: Door) -> None:
    answer = empty_door.post(INTENTS, draft(colour="red"))
    assert refusal(answer) == (400, "invalid_request_error", "parameter_unknown", "colour")
    assert answer.body["error"]["message"] == "Received unknown parameter: colour"
    assert empty_door.ids() == []


@pytest.mark.parametrize("action", ["", "/confirm", "/cancel"])
def test_an_unknown_parameter_changes_nothing(door: Door, action: str) -> None:
    intent = created(door, payment_method="pm_card_visa")
    answer = door.post(f"{INTENTS}/{intent['id']}{action}", {"colour": "red"})
    assert refusal(answer) == (400, "invalid_request_error", "parameter_unknown", "colour")
    assert door.get(f"{INTENTS}/{intent['id']}").body == intent


def test_an_unknown_parameter_of_a_list_is_refused(door: Door) -> None:
    answer = door.get(INTENTS, {"colour": "red"})
    assert refusal(answer) == (400, "invalid_request_error", "parameter_unknown", "colour")


@pytest.mark.parametrize("name", ["amount", "currency"])
def test_a_missing_parameter_is_named(empty_door: Door, name: str) -> None:
    answer = empty_door.post(INTENTS, draft(**{name: None}))
    assert refusal(answer) == (400, "invalid_request_error", "parameter_missing", name)
    assert empty_door.ids() == []


@pytest.mark.parametrize("amount", ["abc", "10.50", "1e3", "0x10", "1,000", "1_000", "12 34", "٣"])
def test_an_amount_is_an_integer(empty_door: Door, amount: str) -> None:
    answer = empty_door.post(INTENTS, draft(amount=amount))
    assert refusal(answer) == (400, "invalid_request_error", "parameter_invalid_integer", "amount")
    assert empty_door.ids() == []


@pytest.mark.parametrize("amount", ["", "0", "-1", "-1099", "9" * 30, "9" * 5000])
def test_an_amount_is_positive_and_of_a_sane_size(empty_door: Door, amount: str) -> None:
    answer = empty_door.post(INTENTS, draft(amount=amount))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert answer.body["error"]["param"] == "amount"
    assert empty_door.ids() == []


@pytest.mark.parametrize(("currency", "least"), MINIMUM)
def test_the_least_amount_of_a_currency(empty_door: Door, currency: str, least: int) -> None:
    low = empty_door.post(INTENTS, draft(amount=least - 1, currency=currency))
    assert refusal(low) == (400, "invalid_request_error", "amount_too_small", "amount")
    assert empty_door.ids() == []
    assert created(empty_door, amount=least, currency=currency)["amount"] == least


def test_the_greatest_amount(empty_door: Door) -> None:
    high = empty_door.post(INTENTS, draft(amount=MAXIMUM + 1))
    assert refusal(high) == (400, "invalid_request_error", "amount_too_large", "amount")
    assert empty_door.ids() == []
    assert created(empty_door, amount=MAXIMUM)["amount"] == MAXIMUM


def test_an_update_obeys_the_same_limits(door: Door) -> None:
    intent = created(door)
    for amount in ("49", str(MAXIMUM + 1), "ten", "-5"):
        answer = door.post(f"{INTENTS}/{intent['id']}", {"amount": amount})
        assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert door.get(f"{INTENTS}/{intent['id']}").body == intent


def test_a_zero_decimal_currency_is_paid_in_whole_units(door: Door) -> None:
    # By docs.stripe.com/currencies#zero-decimal an amount of 500 is 500 yen and never 5.
    intent = paid(door, amount=500, currency="jpy")
    assert (intent["amount"], intent["amount_received"]) == (500, 500)
    charge = door.get(f"/v1/charges/{intent['latest_charge']}").body
    assert (charge["amount"], charge["currency"]) == (500, "jpy")


def test_an_upper_case_currency_is_never_stored(empty_door: Door) -> None:
    # "Three-letter ISO currency code, in lowercase": refused, or lowered; not kept as it came
    answer = empty_door.post(INTENTS, draft(currency="USD"))
    if answer.status == 200:
        assert answer.body["currency"] == "usd"
    else:
        assert (answer.status, answer.body["error"]["param"]) == (400, "currency")
        assert empty_door.ids() == []


@pytest.mark.parametrize("currency", ["zzz", "us", "dollar", "", "€", "us$"])
def test_an_unknown_currency_is_refused(empty_door: Door, currency: str) -> None:
    answer = empty_door.post(INTENTS, draft(currency=currency))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert answer.body["error"]["param"] == "currency"
    assert empty_door.ids() == []


@pytest.mark.parametrize("confirm", ["yes", "1", "TRUE!", "2"])
def test_confirm_is_a_boolean_or_nothing_happens(empty_door: Door, confirm: str) -> None:
    answer = empty_door.post(INTENTS, draft(payment_method="pm_card_visa") | {"confirm": confirm})
    if answer.status == 200:  # what is not plainly true must not move money
        assert answer.body["status"] == "requires_confirmation"
    else:
        assert answer.body["error"]["param"] == "confirm"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("description", "Invoice 7"),
        ("receipt_email", "a@example.com"),
        ("statement_descriptor_suffix", "NANOVM"),
        ("transfer_group", "group-1"),
        ("setup_future_usage", "off_session"),
        ("application_fee_amount", 10),
        ("on_behalf_of", "acct_other"),
        ("customer", "cus_unknown"),
        ("capture_method", "manual"),
    ],
)
def test_a_parameter_is_kept_or_refused_but_never_dropped(
    empty_door: Door, name: str, value: object
) -> None:
    answer = empty_door.post(INTENTS, draft(**{name: value}))
    if answer.status == 200:
        assert answer.body[name] == value
    else:
        assert refusal(answer)[:2] == (400, "invalid_request_error")
        assert empty_door.ids() == []


def test_a_field_that_cannot_be_expanded_is_refused(empty_door: Door) -> None:
    answer = empty_door.post(INTENTS, payment(expand=["nonsense"]))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert empty_door.ids() == []


def test_the_sdk_raises_with_the_parameter(sdk: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as caught:
        pay(sdk, amount=49)
    assert (caught.value.http_status, caught.value.code) == (400, "amount_too_small")
    assert caught.value.param == "amount"


def _raw(door: Door, body: bytes, content_type: str = FORM) -> Answer:
    headers = {"Authorization": f"Bearer {door.key}", "Content-Type": content_type}
    return door.send("POST", INTENTS, body=body, headers=headers)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"&&&",
        b"=",
        b"amount",
        b"amount=%",
        b"amount=%ff%fe&currency=usd",
        b"amount[=1099&currency=usd",
        b"amount[a]=1099&currency=usd",
        b"amount[]=1099&currency=usd",
        b"\x00\x01\x02\xff",
        b"amount=1099&currency[]=usd",
        b"amount=1099&currency=usd&metadata=flat",
        b"amount=1099&currency=usd&metadata[a][b]=deep",
        b"amount=1099&currency=usd&payment_method[id]=pm_card_visa",
    ],
)
def test_a_malformed_body_is_a_400(empty_door: Door, body: bytes) -> None:
    answer = _raw(empty_door, body)
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert empty_door.ids() == []


def test_a_body_in_json_is_not_read_as_a_form(empty_door: Door) -> None:
    # docs.stripe.com/api: "accepts form-encoded request bodies"
    answer = _raw(empty_door, b'{"amount": 1099, "currency": "usd"}', "application/json")
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert empty_door.ids() == []


def test_a_body_without_end_is_cut_off(empty_door: Door) -> None:
    body = b"description=" + b"a" * 8_000_000
    with contextlib.suppress(ConnectionError):  # it may hang up before the rest was sent
        assert 400 <= _raw(empty_door, body).status < 500
    assert empty_door.ids() == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/nonsense"), ("GET", "/"), ("POST", "/v1/charges/ch_x/nonsense")],
)
def test_an_unknown_address_is_not_found(door: Door, method: str, path: str) -> None:
    answer = door.send(method, path, headers={"Authorization": f"Bearer {door.key}"})
    assert answer.status == 404
    assert answer.body["error"]["type"] == "invalid_request_error"


def test_every_answer_names_its_request(door: Door) -> None:
    # docs.stripe.com/api/request_ids
    answers = [door.get(INTENTS), door.get(INTENTS), door.post(INTENTS, draft(amount=None))]
    names = [answer.headers["request-id"] for answer in answers]
    assert all(name.startswith("req_") for name in names)
    assert len(set(names)) == len(names)
    assert {answer.headers["content-type"].partition(";")[0] for answer in answers} == {
        "application/json"
    }
