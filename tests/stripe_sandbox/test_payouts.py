"""Payouts and the balance they come from (docs.stripe.com/api/payouts, /balance, /testing)."""

from tests.stripe_sandbox.door import INTENTS, Answer, Door, paid, payment, refusal

PAYOUTS = "/v1/payouts"
INSUFFICIENT = (400, "invalid_request_error", "balance_insufficient", None)


def _funded(door: Door, amount: int = 10_000, currency: str = "usd") -> Door:
    paid(door, amount=amount, currency=currency, payment_method="pm_card_bypassPending")
    return door


def _pay_out(
    door: Door, amount: object = 2_500, *, key: str | None = None, **more: object
) -> Answer:
    return door.post(PAYOUTS, {"amount": amount, "currency": "usd", **more}, key=key)


def _balance(door: Door, which: str = "available") -> dict[str, int]:
    body = door.get("/v1/balance").body
    return {each["currency"]: each["amount"] for each in body[which]}


def test_a_payout_is_pending_and_says_what_was_asked(empty_door: Door) -> None:
    body = _pay_out(_funded(empty_door), metadata={"run": "r-1"}, description="d").body
    told = [body[name] for name in ("amount", "currency", "status", "automatic", "method")]
    assert told == [2_500, "usd", "pending", False, "standard"]
    assert (body["metadata"], body["description"]) == ({"run": "r-1"}, "d")
    assert body["id"].startswith("po_1")
    assert body["arrival_date"] >= body["created"]


def test_what_a_plain_card_brings_is_pending_and_a_declined_one_brings_nothing(
    empty_door: Door,
) -> None:
    paid(empty_door, amount=9_000)
    declined = payment(amount=5_000, payment_method="pm_card_chargeDeclined")
    assert empty_door.post(INTENTS, declined).status == 402
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


def test_a_canceled_payout_gives_its_money_back_once(empty_door: Door) -> None:
    payout = _pay_out(_funded(empty_door), 10_000).body
    canceled = empty_door.post(f"{PAYOUTS}/{payout['id']}/cancel")
    assert canceled.body == {**payout, "status": "canceled"}
    assert _balance(empty_door) == {"usd": 10_000}
    assert refusal(empty_door.post(f"{PAYOUTS}/{payout['id']}/cancel"))[0] == 400
    assert _balance(empty_door) == {"usd": 10_000}


def test_each_account_sees_its_own(empty_door: Door, other_door: Door) -> None:
    made = _pay_out(_funded(empty_door), 100).body
    path = f"{PAYOUTS}/{made['id']}"
    assert empty_door.get(PAYOUTS).body["data"] == [made] == [empty_door.get(path).body]
    for answer in (other_door.get(path), other_door.post(f"{path}/cancel")):
        assert refusal(answer)[::2] == (404, "resource_missing")
    assert made not in other_door.get(PAYOUTS).body["data"]
