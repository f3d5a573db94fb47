"""Connected accounts, destination charges, their transfers and balances, refunds and disputes.

Sources: docs.stripe.com/connect/destination-charges, /api/accounts, /api/transfers, /api/refunds,
/api/disputes, /connect/authentication, /testing#disputes.
"""

from typing import Any

import pytest
import stripe

from tests.stripe_sandbox.door import INTENTS, Door, connected, paid, pay, payment, refusal


def _to(account: stripe.Account, amount: int | None = None) -> dict[str, Any]:
    share = {} if amount is None else {"amount": amount}
    return {"transfer_data": {"destination": account.id, **share}}


def _charged(sdk: stripe.StripeClient, account: stripe.Account, **changes: Any) -> Any:
    """A destination charge of 100.00 that succeeded, with its charge and transfer."""
    given = {"amount": 10_000, "payment_method": "pm_card_bypassPending", **_to(account), **changes}
    return pay(sdk, expand=["latest_charge.transfer"], **given)


def _balances(sdk: stripe.StripeClient, *accounts: stripe.Account) -> list[int]:
    """What the platform has, and what each account has: available and pending, all dollars."""
    found: list[Any] = [sdk.v1.balance.retrieve()]
    found += [sdk.v1.balance.retrieve(options={"stripe_account": each.id}) for each in accounts]
    return [sum(one.amount for one in [*each.available, *each.pending]) for each in found]


def _refund(sdk: stripe.StripeClient, intent: Any, **params: Any) -> stripe.Refund:
    params["payment_intent"] = intent.id
    return sdk.v1.refunds.create(params)  # type: ignore[arg-type]


def test_an_account_is_usable_at_once_and_another_key_does_not_reach_it(
    sdk: stripe.StripeClient, empty_door: Door, other_door: Door
) -> None:
    made: Any = connected(sdk, email="a@example.com", metadata={"supplier": "s-1"})
    assert (made.charges_enabled, made.payouts_enabled, made.country) == (True, True, "DE")
    changed: Any = sdk.v1.accounts.update(made.id, {"metadata": {"supplier": "s-2"}})
    assert (changed.email, changed.metadata.supplier) == ("a@example.com", "s-2")
    controlled = {"controller": {"stripe_dashboard": {"type": "none"}}}
    first, again = [empty_door.post("/v1/accounts", controlled, key="once") for _ in range(2)]
    assert (again.replayed, again.body) == (True, first.body)
    assert (first.body["type"], first.body["charges_enabled"]) == ("none", False)
    assert [each.id for each in sdk.v1.accounts.list()] == [first.body["id"], made.id]
    for answer in (
        other_door.get(f"/v1/accounts/{made.id}"),
        other_door.post(f"/v1/accounts/{made.id}", {"email": "x@example.com"}),
        other_door.get("/v1/balance", **{"Stripe-Account": made.id}),
    ):
        assert refusal(answer)[::2] == (403, "account_invalid")
        assert other_door.key not in answer.body["error"]["message"]
    assert refusal(other_door.post(INTENTS, payment(**_to(made))))[2] == "resource_missing"


def test_a_destination_charge_pays_the_account_and_says_so(sdk: stripe.StripeClient) -> None:
    account = connected(sdk)
    intent = _charged(sdk, account)
    charge, transfer = intent.latest_charge, intent.latest_charge.transfer
    assert intent.transfer_data.to_dict() == {"destination": account.id}
    assert charge.transfer_data.to_dict() == {"amount": None, "destination": account.id}
    assert (transfer.amount, transfer.destination) == (intent.amount_received, account.id)
    assert transfer.source_transaction == charge.id
    assert transfer.transfer_group == charge.transfer_group == f"group_{intent.id}"
    assert _balances(sdk, account) == [0, 10_000]
    received: Any = sdk.v1.charges.retrieve(
        transfer.destination_payment, options={"stripe_account": account.id}
    )
    assert (received.amount, received.source_transfer) == (10_000, transfer.id)


def test_a_share_is_transferred_and_the_rest_stays(sdk: stripe.StripeClient) -> None:
    one, two = connected(sdk), connected(sdk)
    _charged(sdk, one, **_to(one, 2_500), transfer_group="g-1", on_behalf_of=one.id)
    _charged(sdk, two, payment_method="pm_card_visa")
    with pytest.raises(stripe.CardError):
        _charged(sdk, one, payment_method="pm_card_chargeDeclined")
    assert _balances(sdk, one, two) == [7_500, 2_500, 10_000]
    for filters in ({"transfer_group": "g-1"}, {"destination": one.id}):
        (transfer,) = sdk.v1.transfers.list(filters)  # type: ignore[arg-type]
        assert (transfer.destination, transfer.amount) == (one.id, 2_500)


def test_a_destination_that_cannot_take_money_is_refused(
    sdk: stripe.StripeClient, empty_door: Door
) -> None:
    good, without = connected(sdk), connected(sdk, capabilities={})
    own = "acct_" + empty_door.key.removeprefix("sk_test_")
    to, share = "transfer_data[destination]", "transfer_data[amount]"
    for data, code, param in [
        ({"destination": "acct_1Unknown"}, "resource_missing", to),
        ({"destination": own}, None, to),
        ({"destination": without.id}, "insufficient_capabilities_for_transfer", None),
        ({"amount": 5}, "parameter_missing", to),
        ({"destination": good.id, "amount": 1_100}, "amount_too_large", share),
        ({"destination": good.id, "amount": 0}, "parameter_invalid_integer", share),
        ({"destination": good.id, "to": "x"}, "parameter_unknown", "transfer_data[to]"),
    ]:
        answer = empty_door.post(INTENTS, payment(transfer_data=data))
        assert refusal(answer) == (400, "invalid_request_error", code, param), data
    for name, value in (("application_fee_amount", 10), ("on_behalf_of", "acct_1Unknown")):
        answer = empty_door.post(INTENTS, payment(**_to(good), **{name: value}))
        assert refusal(answer)[::3] == (400, name)
    assert empty_door.ids() == []
    draft = empty_door.post(INTENTS, payment(confirm=False, **_to(good, 1_099))).body
    path = f"{INTENTS}/{draft['id']}"  # from here on the destination is fixed
    other = _to(connected(sdk))
    assert refusal(empty_door.post(f"{path}/confirm", other))[2] == "parameter_unknown"
    assert refusal(empty_door.post(path, other))[::3] == (400, "transfer_data")
    assert refusal(empty_door.post(path, {"amount": 500}))[2] == "amount_too_large"
    assert empty_door.post(f"{path}/confirm").body["transfer_data"]["destination"] == good.id


def test_a_refund_takes_the_transfer_back_in_proportion_if_asked(sdk: stripe.StripeClient) -> None:
    account = connected(sdk)
    intent = _charged(sdk, account, amount=999, **_to(account, 500))
    refunds = [_refund(sdk, intent, amount=333, reverse_transfer=True) for _ in range(3)]
    transfer = sdk.v1.transfers.retrieve(intent.latest_charge.transfer.id)
    reversals = transfer.reversals.data[::-1]
    assert [each.amount for each in reversals] == [166, 167, 167]
    assert [each.id for each in reversals] == [each.transfer_reversal for each in refunds]
    assert (transfer.amount_reversed, transfer.reversed) == (500, True)
    assert _balances(sdk, account) == [0, 0]
    alone = _charged(sdk, account)
    _refund(sdk, alone)  # the platform bears it
    assert _balances(sdk, account) == [-10_000, 10_000]
    charge = sdk.v1.charges.retrieve(alone.latest_charge.id)
    assert (charge.refunded, charge.amount_refunded) == (True, 10_000)


def test_what_cannot_be_refunded_is_refused(sdk: stripe.StripeClient, empty_door: Door) -> None:
    account = connected(sdk)
    intent = _charged(sdk, account)
    by_intent = {"payment_intent": intent.id}
    first = _refund(sdk, intent, amount=4_000, reason="duplicate")
    plain = {"payment_intent": paid(empty_door)["id"]}
    for params, code, param in [
        ({**by_intent, "amount": 6_001}, None, "amount"),
        ({"charge": "ch_unknown"}, "resource_missing", "charge"),
        ({"payment_intent": "pi_unknown"}, "resource_missing", "payment_intent"),
        ({}, None, None),
        ({**by_intent, "refund_application_fee": True}, None, "refund_application_fee"),
        ({**plain, "reverse_transfer": True}, None, "reverse_transfer"),
    ]:
        answer = empty_door.post("/v1/refunds", params)
        assert refusal(answer) == (400, "invalid_request_error", code, param), params
    last = _refund(sdk, intent)
    again = empty_door.post("/v1/refunds", {"charge": intent.latest_charge.id})
    assert refusal(again)[2] == "charge_already_refunded"
    listed = sdk.v1.refunds.list({"payment_intent": intent.id})
    assert [(each.id, each.amount) for each in listed] == [(last.id, 6_000), (first.id, 4_000)]


def test_a_dispute_withdraws_from_the_platform_and_an_inquiry_does_not(
    sdk: stripe.StripeClient,
) -> None:
    account, intent = connected(sdk), None
    for card, reason, status, owed in (
        ("Inquiry", "fraudulent", "warning_needs_response", 0),
        ("ProductNotReceived", "product_not_received", "needs_response", -10_000),
    ):
        intent = _charged(sdk, account, payment_method=f"pm_card_createDispute{card}")
        (dispute,) = sdk.v1.disputes.list({"payment_intent": intent.id})
        assert (dispute.reason, dispute.status, dispute.amount) == (reason, status, 10_000)
        assert _balances(sdk)[0] == owed
    with pytest.raises(stripe.InvalidRequestError, match="charged back"):
        _refund(sdk, intent)


def test_every_object_has_its_published_shape(sdk: stripe.StripeClient, empty_door: Door) -> None:
    """The door holds each answer to its shape."""
    account = connected(sdk, email="a@example.com")
    _refund(sdk, _charged(sdk, account), amount=100, reverse_transfer=True)
    _charged(sdk, account, payment_method="pm_card_createDispute")
    sdk.v1.webhook_endpoints.create({"url": "http://127.0.0.1:9/x", "enabled_events": ["*"]})
    pay(sdk, payment_method="pm_usBankAccount_processing", payment_method_types=["us_bank_account"])
    names = ["accounts", "charges", "disputes", "events", "payment_intents", "refunds", "transfers"]
    for name in (*names, "webhook_endpoints"):
        listed = empty_door.get(f"/v1/{name}", {"limit": 100}).body["data"]
        assert empty_door.get(f"/v1/{name}/{listed[0]['id']}").body == listed[0]
        assert refusal(empty_door.get(f"/v1/{name}/x_unknown"))[0] in (403, 404)
    of_account: dict[str, Any] = {"Stripe-Account": account.id}
    assert len(empty_door.get("/v1/charges", **of_account).body["data"]) == 2
