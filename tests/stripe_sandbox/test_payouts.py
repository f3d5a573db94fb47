"""Payouts and the balance they come from (docs.stripe.com/api/payouts, /balance, /testing)."""

from __future__ import annotations

from typing import Any

import pytest
import stripe

from tests.stripe_sandbox.door import Answer, Door, paid, refusal
from tests.stripe_sandbox.shapes import Shapes

PAYOUTS = "/v1/payouts"
AT_ONCE = "pm_card_bypassPending"
INSUFFICIENT = (400, "invalid_request_error", "balance_insufficient", None)


def _funded(door: Door, amount: int = 10_000, currency: str = "usd") -> Door:
    paid(door, amount=amount, currency=currency, payment_method=AT_ONCE)
    return door


def _pay_out(
    door: Door, amount: object = 2_500, *, key: str | None = None, **more: object
) -> Answer:
    return door.post(PAYOUTS, {"amount": amount, "currency": "usd", **more}, key=key)


def _balance(door: Door, which: str = "available") -> dict[str, int]:
    body = door.get("/v1/balance").body
    return {each["currency"]: each["amount"] for each in body[which]}


def test_a_payout_has_the_published_shape(shapes: Shapes, empty_door: Door) -> None:
    body = _pay_out(_funded(empty_door), metadata={"run": "r-1"}, description="d").body
    assert shapes.faults("payout", body) == []
    assert shapes.faults("payout", {**body, "type": "wallet"}) != []
    assert shapes.faults("payout", {**body, "to": "somebody"}) != []
    told = {name: body[name] for name in ("amount", "currency", "status", "automatic", "method")}
    assert told == {
        "amount": 2_500,
        "currency": "usd",
        "status": "pending",
        "automatic": False,
        "method": "standard",
    }
    assert (body["metadata"], body["description"]) == ({"run": "r-1"}, "d")
    assert body["id"].startswith("po_1")
    assert body["arrival_date"] >= body["created"]


def test_the_balance_has_the_published_shape(shapes: Shapes, empty_door: Door) -> None:
    assert _balance(empty_door) == {"usd": 0}
    body = _funded(empty_door).get("/v1/balance").body
    assert shapes.faults("balance", body) == []
    assert shapes.faults("balance", {**body, "available": 7}) != []


def test_what_a_plain_card_brings_is_pending_and_cannot_be_paid_out(empty_door: Door) -> None:
    paid(empty_door, amount=9_000)
    assert (_balance(empty_door), _balance(empty_door, "pending")) == ({"usd": 0}, {"usd": 9_000})
    assert refusal(_pay_out(empty_door, 1)) == INSUFFICIENT


def test_the_balance_covers_its_last_cent_and_no_more(empty_door: Door) -> None:
    _funded(empty_door, 10_000)
    assert refusal(_pay_out(empty_door, 10_001)) == INSUFFICIENT
    assert _pay_out(empty_door, 10_000).status == 200
    assert _balance(empty_door) == {"usd": 0}
    assert refusal(_pay_out(empty_door, 1)) == INSUFFICIENT


def test_one_currency_does_not_cover_another(empty_door: Door) -> None:
    _funded(empty_door, 10_000, "eur")
    assert refusal(_pay_out(empty_door, 1)) == INSUFFICIENT
    assert empty_door.post(PAYOUTS, {"amount": 1, "currency": "EUR"}).body["currency"] == "eur"


def test_a_declined_card_brings_nothing(empty_door: Door) -> None:
    empty_door.post(
        "/v1/payment_intents",
        {
            "amount": 5_000,
            "currency": "usd",
            "payment_method": "pm_card_chargeDeclined",
            "payment_method_types": ["card"],
            "confirm": True,
        },
    )
    assert (_balance(empty_door), _balance(empty_door, "pending")) == ({"usd": 0}, {"usd": 0})


def test_a_canceled_payout_gives_its_money_back_once(empty_door: Door) -> None:
    payout = _pay_out(_funded(empty_door), 10_000).body
    canceled = empty_door.post(f"{PAYOUTS}/{payout['id']}/cancel")
    assert canceled.body == {**payout, "status": "canceled"}
    assert _balance(empty_door) == {"usd": 10_000}
    assert refusal(empty_door.post(f"{PAYOUTS}/{payout['id']}/cancel"))[0] == 400
    assert _balance(empty_door) == {"usd": 10_000}


def test_a_key_pays_out_once(empty_door: Door) -> None:
    first = _pay_out(_funded(empty_door), key="once")
    again = _pay_out(empty_door, key="once")
    assert (again.replayed, again.body) == (True, first.body)
    assert refusal(_pay_out(empty_door, 2_501, key="once"))[1] == "idempotency_error"
    assert _balance(empty_door) == {"usd": 7_500}


def test_the_list_shows_them_newest_first(empty_door: Door) -> None:
    made = [_pay_out(_funded(empty_door), amount).body for amount in (100, 200, 300)][::-1]
    page = empty_door.get(PAYOUTS, {"limit": 2}).body
    assert (page["url"], page["has_more"], page["data"]) == (PAYOUTS, True, made[:2])
    rest = empty_door.get(PAYOUTS, {"starting_after": made[1]["id"]}).body
    assert (rest["has_more"], rest["data"]) == (False, made[2:])
    assert empty_door.get(f"{PAYOUTS}/{made[0]['id']}").body == made[0]
    since = {"created": {"gte": made[0]["created"]}}
    assert made[0] in empty_door.get(PAYOUTS, since).body["data"]
    assert refusal(empty_door.get(PAYOUTS, {"starting_after": "po_none"}))[2] == "resource_missing"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"amount": None}, ("parameter_missing", "amount")),
        ({"currency": None}, ("parameter_missing", "currency")),
        ({"amount": "0"}, ("parameter_invalid_integer", "amount")),
        ({"amount": "1.5"}, ("parameter_invalid_integer", "amount")),
        ({"amount": "1e400"}, ("parameter_invalid_integer", "amount")),
        ({"currency": "xxx"}, (None, "currency")),
        ({"method": "instant"}, (None, "method")),
        ({"method": "pigeon"}, (None, "method")),
        ({"destination": "ba_elsewhere"}, ("resource_missing", "destination")),
        ({"statement_descriptor": "x" * 23}, (None, "statement_descriptor")),
        ({"payout_method": "fa_1"}, (None, "payout_method")),
        ({"to": "somebody"}, ("parameter_unknown", "to")),
        ({"source_type": "fpx"}, ("balance_insufficient", None)),
    ],
)
def test_what_is_wrong_is_refused_and_pays_nothing(
    empty_door: Door, changes: dict[str, object], says: tuple[str | None, str | None]
) -> None:
    wanted: dict[str, Any] = {"amount": 100, "currency": "usd", **changes}
    params = {name: value for name, value in wanted.items() if value is not None}
    answer = _funded(empty_door).post(PAYOUTS, params)
    assert refusal(answer) == (400, "invalid_request_error", *says)
    assert empty_door.get(PAYOUTS).body["data"] == []
    assert _balance(empty_door) == {"usd": 10_000}


def test_another_account_neither_sees_nor_calls_back_a_payout(
    empty_door: Door, other_door: Door
) -> None:
    payout = _pay_out(_funded(empty_door)).body
    for answer in (
        other_door.get(f"{PAYOUTS}/{payout['id']}"),
        other_door.post(f"{PAYOUTS}/{payout['id']}/cancel"),
    ):
        assert refusal(answer)[::2] == (404, "resource_missing")
    assert payout["id"] not in [each["id"] for each in other_door.get(PAYOUTS).body["data"]]
    assert empty_door.get(f"{PAYOUTS}/{payout['id']}").body == payout


def test_the_sdk_pays_out_and_lists(empty_door: Door, empty_sdk: stripe.StripeClient) -> None:
    _funded(empty_door)
    payout = empty_sdk.v1.payouts.create({"amount": 2_500, "currency": "usd"})
    assert (payout.amount, payout.status) == (2_500, "pending")
    assert [each.id for each in empty_sdk.v1.payouts.list().auto_paging_iter()] == [payout.id]
    with pytest.raises(stripe.InvalidRequestError) as caught:
        empty_sdk.v1.payouts.create({"amount": 7_501, "currency": "usd"})
    assert caught.value.code == "balance_insufficient"
