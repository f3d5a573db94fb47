"""What a request may say: amounts, currencies, unknown and malformed parameters.

Sources: docs.stripe.com/currencies, /error-codes, /api/errors, /metadata.
"""

from __future__ import annotations

import contextlib

import pytest

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

INVALID = "invalid_request_error"
MAXIMUM = 99_999_999  # "up to eight digits"
UNKNOWN = (400, INVALID, "parameter_unknown", "colour")


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"colour": "red"}, "parameter_unknown", "colour"),
        ({"amount": None}, "parameter_missing", "amount"),
        ({"currency": None}, "parameter_missing", "currency"),
        *[
            ({"amount": amount}, "parameter_invalid_integer", "amount")
            for amount in ("abc", "10.50", "1e3", "0x10", "1,000", "1_000", "12 34", "٣")
        ],
        ({"amount": MAXIMUM + 1}, "amount_too_large", "amount"),
        *[({"amount": amount}, None, "amount") for amount in ("", "0", "-1", "9" * 30, "9" * 5000)],
        *[
            ({"currency": text}, None, "currency")
            for text in ("zzz", "us", "dollar", "", "€", "us$")
        ],
        ({"expand": ["nonsense"]}, None, None),
    ],
)
def test_a_wrong_parameter_is_named_and_creates_nothing(
    empty_door: Door, change: dict[str, object], code: str | None, param: str | None
) -> None:
    answer = empty_door.post(INTENTS, draft(**change))
    found = refusal(answer)
    assert found[:2] == (400, INVALID)
    assert code in (None, found[2])
    assert param in (None, found[3])
    assert empty_door.ids() == []


@pytest.mark.parametrize("action", ["", "/confirm", "/cancel"])
def test_an_unknown_parameter_changes_and_lists_nothing(door: Door, action: str) -> None:
    intent = created(door, payment_method="pm_card_visa")
    answer = door.post(f"{INTENTS}/{intent['id']}{action}", {"colour": "red"})
    assert refusal(answer) == UNKNOWN
    assert answer.body["error"]["message"] == "Received unknown parameter: colour"
    assert refusal(door.get(INTENTS, {"colour": "red"})) == UNKNOWN
    assert door.get(f"{INTENTS}/{intent['id']}").body == intent


# docs.stripe.com/currencies#minimum-and-maximum-charge-amounts
@pytest.mark.parametrize(
    ("currency", "least"), [("usd", 50), ("eur", 50), ("gbp", 30), ("chf", 50), ("jpy", 50)]
)
def test_the_least_amount_of_a_currency(empty_door: Door, currency: str, least: int) -> None:
    low = empty_door.post(INTENTS, draft(amount=least - 1, currency=currency))
    assert refusal(low) == (400, INVALID, "amount_too_small", "amount")
    assert empty_door.ids() == []
    assert created(empty_door, amount=least, currency=currency)["amount"] == least


def test_an_update_obeys_the_same_limits(door: Door) -> None:
    intent = created(door, amount=MAXIMUM)
    for amount in ("49", str(MAXIMUM + 1), "ten", "-5"):
        answer = door.post(f"{INTENTS}/{intent['id']}", {"amount": amount})
        assert refusal(answer)[:2] == (400, INVALID)
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
        ("capture_method", "manual"),  # which places a hold only, and never takes the money
    ],
)
def test_a_parameter_is_kept_or_refused_but_never_dropped(
    empty_door: Door, name: str, value: object
) -> None:
    answer = empty_door.post(INTENTS, draft(**{name: value}))
    if answer.status == 200:
        assert answer.body[name] == value
    else:
        assert refusal(answer)[:2] == (400, INVALID)
        assert empty_door.ids() == []


def _raw(door: Door, body: bytes, content_type: str = FORM) -> Answer:
    headers = {"Authorization": f"Bearer {door.key}", "Content-Type": content_type}
    return door.send("POST", INTENTS, body=body, headers=headers)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"&&&", b"=", b"amount", b"amount=%", b"amount=%ff%fe&currency=usd"),
        *(b"amount[=1099&currency=usd", b"amount[a]=1099&currency=usd"),
        *(b"amount[]=1099&currency=usd", b"\x00\x01\x02\xff", b"amount=1099&currency[]=usd"),
        b"amount=1099&currency=usd&metadata=flat",
        b"amount=1099&currency=usd&metadata[a][b]=deep",
        b"amount=1099&currency=usd&payment_method[id]=pm_card_visa",
    ],
)
def test_a_malformed_body_is_a_400(empty_door: Door, body: bytes) -> None:
    assert refusal(_raw(empty_door, body))[:2] == (400, INVALID)
    assert empty_door.ids() == []


def test_a_body_in_json_is_not_read_and_one_without_end_is_cut_off(empty_door: Door) -> None:
    # docs.stripe.com/api: "accepts form-encoded request bodies"
    answer = _raw(empty_door, b'{"amount": 1099, "currency": "usd"}', "application/json")
    assert refusal(answer)[:2] == (400, INVALID)
    with contextlib.suppress(ConnectionError):  # it may hang up before the rest was sent
        assert 400 <= _raw(empty_door, b"description=" + b"a" * 8_000_000).status < 500
    assert empty_door.ids() == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/nonsense"), ("GET", "/"), ("POST", "/v1/charges/ch_x/nonsense")],
)
def test_an_unknown_address_is_not_found(door: Door, method: str, path: str) -> None:
    answer = door.send(method, path, headers={"Authorization": f"Bearer {door.key}"})
    assert (answer.status, answer.body["error"]["type"]) == (404, INVALID)


def test_every_answer_names_its_request(door: Door) -> None:
    # docs.stripe.com/api/request_ids
    answers = [door.get(INTENTS), door.get(INTENTS), door.post(INTENTS, payment(amount=None))]
    names = {answer.headers["request-id"] for answer in answers}
    assert len(names) == 3
    assert all(name.startswith("req_") for name in names)
    types = {answer.headers["content-type"].partition(";")[0] for answer in answers}
    assert types == {"application/json"}
