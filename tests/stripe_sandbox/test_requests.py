"""What a request may say: a wrong one is refused with its code and parameter, and does nothing.

Sources: docs.stripe.com/currencies, /error-codes, /api/errors, /metadata, /api/pagination.
"""

import contextlib
from typing import Any

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

PAYOUTS, BALANCE = "/v1/payouts", "/v1/balance"
INVALID = "invalid_request_error"
MAXIMUM = 99_999_999  # "up to eight digits"
# At each limit of metadata at once: 50 keys, 40 characters in a name, 500 in a value; not bytes.
FULL = {f"key{number}": "v" for number in range(48)} | {"é" * 40: "v", "k": "😀" * 500}
OVER = ({**FULL, "one_more": "v"}, {"k" * 41: "v"}, {"k": "v" * 501})
NO_INTEGERS = ("abc", "10.50", "1e3", "0x10", "1,000", "1_000", "12 34", "٣")

UNKNOWN_CARDS = ("pm_card_nonsense", "pm_1NoSuchMethod", "visa", "tok_visa_x")

Changes = list[tuple[dict[str, Any], str | None, str]]
Row = tuple[str, dict[str, Any], str | None, str]  # None: no code is published
WRONG_INTENTS: Changes = [
    ({"colour": "red"}, "parameter_unknown", "colour"),
    ({"amount": None}, "parameter_missing", "amount"),
    ({"currency": None}, "parameter_missing", "currency"),
    *(({"amount": text}, "parameter_invalid_integer", "amount") for text in NO_INTEGERS),
    ({"amount": MAXIMUM + 1}, "amount_too_large", "amount"),
    *(({"amount": text}, None, "amount") for text in ("", "0", "-1", "9" * 30, "9" * 5000)),
    *(({"currency": x}, None, "currency") for x in ("zzz", "us", "dollar", "", "€", "us$")),
    ({"expand": ["nonsense"]}, None, ""),
    *(({"metadata": over}, None, "metadata") for over in OVER),
    ({"metadata[a[b]]": "v"}, None, "metadata"),
    ({"confirm": True}, None, ""),  # with what card?
    *(({"payment_method": x}, "resource_missing", "payment_method") for x in UNKNOWN_CARDS),
]
CREATE: list[Row] = [
    (f"POST {INTENTS}", draft(**change), code, param) for change, code, param in WRONG_INTENTS
]
CHANGE: list[Row] = [
    *(("POST {pi}", {"amount": x}, None, "amount") for x in ("49", MAXIMUM + 1, "ten", "-5")),
    *(("POST {pi}", {"metadata": over}, None, "metadata") for over in OVER[1:]),
    ("POST {pi}", {"metadata": {"one_more": "v"}}, None, "metadata"),  # it counts what is there
    ("POST {pi}/cancel", {"cancellation_reason": "bored"}, None, "cancellation_reason"),
    *(
        (f"POST {{pi}}{action}", {"colour": "red"}, "parameter_unknown", "colour")
        for action in ("", "/confirm", "/cancel")
    ),
]
LISTS: list[Row] = [
    (f"GET {INTENTS}", {"colour": "red"}, "parameter_unknown", "colour"),
    *(
        (f"GET {INTENTS}", {"limit": limit}, None, "limit")
        for limit in ("0", "101", "-1", "ten", "1.5", "")
    ),
    *(
        (f"GET {INTENTS}", {"created": when}, None, "created")
        for when in ("soon", {"gte": "x"}, {"about": 5}, {"gt": "1.5"})
    ),
]
WRONG_PAYOUTS: Changes = [
    ({"amount": None}, "parameter_missing", "amount"),
    ({"currency": None}, "parameter_missing", "currency"),
    *(({"amount": x}, "parameter_invalid_integer", "amount") for x in ("0", "1.5", "1e400")),
    ({"currency": "xxx"}, None, "currency"),
    *(({"method": method}, None, "method") for method in ("instant", "pigeon")),
    ({"destination": "ba_elsewhere"}, "resource_missing", "destination"),
    ({"statement_descriptor": "x" * 23}, None, "statement_descriptor"),
    ({"payout_method": "fa_1"}, None, "payout_method"),
    ({"to": "somebody"}, "parameter_unknown", "to"),
    ({"source_type": "fpx"}, "balance_insufficient", ""),
]
PAY_OUT: list[Row] = [
    (f"POST {PAYOUTS}", {"amount": 100, "currency": "usd", **change}, code, param)
    for change, code, param in WRONG_PAYOUTS
]


def state(door: Door) -> list[Any]:
    return [door.get(path).body for path in (INTENTS, PAYOUTS, BALANCE)]


@pytest.mark.parametrize("rows", [CREATE, CHANGE, LISTS, PAY_OUT], ids=len)
def test_wrong_requests_are_named_and_change_nothing(empty_door: Door, rows: list[Row]) -> None:
    paid(empty_door, amount=10_000, payment_method="pm_card_bypassPending")
    intent = created(empty_door, amount=MAXIMUM, payment_method="pm_card_visa", metadata=FULL)
    assert intent["metadata"] == FULL
    before = state(empty_door)
    for request, params, code, param in rows:
        method, path = request.format(pi=f"{INTENTS}/{intent['id']}").split()
        said = {name: value for name, value in params.items() if value is not None}
        answer = (empty_door.get if method == "GET" else empty_door.post)(path, said)
        found = refusal(answer)
        assert found[:2] == (400, INVALID), (request, params)
        assert code in (None, found[2]), (request, params)
        assert (found[3] or "").startswith(param), (request, params)
        if code == "parameter_unknown":
            assert answer.body["error"]["message"] == f"Received unknown parameter: {param}"
    assert state(empty_door) == before


# docs.stripe.com/currencies#minimum-and-maximum-charge-amounts
@pytest.mark.parametrize(
    ("currency", "least"), [("usd", 50), ("eur", 50), ("gbp", 30), ("chf", 50), ("jpy", 50)]
)
def test_the_least_amount_of_a_currency(empty_door: Door, currency: str, least: int) -> None:
    low = empty_door.post(INTENTS, draft(amount=least - 1, currency=currency))
    assert refusal(low) == (400, INVALID, "amount_too_small", "amount")
    assert empty_door.ids() == []
    assert created(empty_door, amount=least, currency=currency)["amount"] == least


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        # "Three-letter ISO currency code, in lowercase": refused, or lowered
        (draft(currency="USD"), {"currency": "usd"}),
        # what is not plainly true must not move money
        *(
            (draft(payment_method="pm_card_visa", confirm=x), {"status": "requires_confirmation"})
            for x in ("yes", "1", "TRUE!", "2")
        ),
        # which places a hold only, and never takes the money
        (payment(capture_method="manual"), {"status": "requires_capture", "amount_received": 0}),
        *(
            (draft(**given), given)
            for given in (
                {"description": "Invoice 7"},
                {"receipt_email": "a@example.com"},
                {"statement_descriptor_suffix": "NANOVM"},
                {"transfer_group": "group-1"},
                {"setup_future_usage": "off_session"},
                {"application_fee_amount": 10},
                {"on_behalf_of": "acct_other"},
                {"customer": "cus_unknown"},
            )
        ),
    ],
)
def test_a_parameter_is_kept_or_refused_but_never_dropped(
    empty_door: Door, params: dict[str, Any], kept: dict[str, Any]
) -> None:
    answer = empty_door.post(INTENTS, params)
    if answer.status == 200:
        assert {name: answer.body[name] for name in kept} == kept
    else:
        assert refusal(answer)[:2] == (400, INVALID)
        assert empty_door.ids() == []


def _raw(door: Door, body: bytes, content_type: str = FORM) -> Answer:
    headers = {"Authorization": f"Bearer {door.key}", "Content-Type": content_type}
    return door.send("POST", INTENTS, body=body, headers=headers)


MALFORMED = (
    *(b"", b"&&&", b"=", b"amount", b"amount=%", b"amount=%ff%fe&currency=usd"),
    *(b"amount[=1099&currency=usd", b"amount[a]=1099&currency=usd", b"\x00\x01\x02\xff"),
    *(b"amount[]=1099&currency=usd", b"amount=1099&currency[]=usd"),
    b"amount=1099&currency=usd&metadata=flat",
    b"amount=1099&currency=usd&metadata[a][b]=deep",
    b"amount=1099&currency=usd&payment_method[id]=pm_card_visa",
)


def test_a_malformed_body_is_refused_and_one_without_end_is_cut_off(empty_door: Door) -> None:
    # docs.stripe.com/api: "accepts form-encoded request bodies"
    for body in MALFORMED:
        assert refusal(_raw(empty_door, body))[:2] == (400, INVALID), body
    answer = _raw(empty_door, b'{"amount": 1099, "currency": "usd"}', "application/json")
    assert refusal(answer)[:2] == (400, INVALID)
    with contextlib.suppress(ConnectionError):  # it may hang up before the rest was sent
        assert 400 <= _raw(empty_door, b"description=" + b"a" * 8_000_000).status < 500
    assert empty_door.ids() == []


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/v1/nonsense", None),
        ("GET", "/", None),
        ("POST", "/v1/charges/ch_x/nonsense", None),
        ("GET", "/v1/charges/ch_unknown", "resource_missing"),
        ("GET", f"{INTENTS}/pi_unknown", "resource_missing"),
        *(
            ("POST", f"{INTENTS}/pi_unknown{action}", "resource_missing")
            for action in ("", "/confirm", "/cancel")
        ),
    ],
)
def test_an_unknown_address_or_id_is_not_found(
    door: Door, method: str, path: str, code: str | None
) -> None:
    answer = door.send(method, path, headers={"Authorization": f"Bearer {door.key}"})
    found = refusal(answer)
    assert (*found[:2], code in (None, found[2])) == (404, INVALID, True)
    assert code is None or "unknown" in answer.body["error"]["message"]


@pytest.mark.parametrize(
    ("update", "left"),
    [
        ({"b": "2"}, {"a": "1", "b": "2"}),  # merged
        ({"a": "9"}, {"a": "9"}),  # replaced
        ({"a": "", "b": "2"}, {"b": "2"}),  # an empty value unsets
        ("", {}),  # an empty parameter unsets all
        ({"note": "späť & =+%"}, {"a": "1", "note": "späť & =+%"}),
    ],
)
def test_an_update_merges_and_unsets_metadata(door: Door, update: Any, left: object) -> None:
    """Also of a payment that is made."""
    for intent in (created(door, metadata={"a": "1"}), paid(door, metadata={"a": "1"})):
        answer = door.post(f"{INTENTS}/{intent['id']}", {"metadata": update})
        assert (answer.status, answer.body["metadata"]) == (200, left)
        assert answer.body["status"] == intent["status"]
