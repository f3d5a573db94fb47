"""Events and their signed deliveries (docs.stripe.com/webhooks, /webhooks/signatures, /api/events).

Stripe retries in a sandbox three times within hours; here the pauses are shorter.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stripe

from tests.stripe_sandbox.conftest import ALPHA, Sandbox, serving
from tests.stripe_sandbox.door import Door, client_of, connected, pay, refusal
from tests.stripe_sandbox.webhooks.receiver import Receiver, listening

ATTEMPTS = 4
PAID = "payment_intent.succeeded"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The counterpart without a pause before it sends an event again."""
    with serving(tmp_path_factory.mktemp("webhooks"), "--retry-ms", "0") as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint for events on loopback."""
    with listening() as found:
        yield found


def _subscribed(sdk: stripe.StripeClient, receiver: Receiver, *kinds: str, **more: object) -> Any:
    params: Any = {"url": receiver.url, "enabled_events": kinds, **more}
    return sdk.v1.webhook_endpoints.create(params)


def _kinds(sdk: stripe.StripeClient) -> list[str]:
    return [str(event.type) for event in sdk.v1.events.list({"limit": 100})][::-1]


def test_an_event_arrives_signed_and_its_secret_is_told_once(
    sdk: stripe.StripeClient, receiver: Receiver
) -> None:
    endpoint = _subscribed(sdk, receiver, PAID)
    intent = pay(sdk, key="k-1", metadata={"run": "r-1"})
    event: Any = receiver.event(endpoint.secret)
    assert (event.type, event.livemode, event.pending_webhooks) == (PAID, False, 1)
    assert (event.data.object["id"], event.data.object["status"]) == (intent.id, "succeeded")
    assert (event.request.idempotency_key, len(_kinds(sdk))) == ("k-1", 3)
    pay(sdk, key="k-1", metadata={"run": "r-1"})  # a replay is no new event
    assert len(_kinds(sdk)) == 3
    pay(sdk)
    receiver.event(endpoint.secret)  # by now the first delivery is recorded
    stored = sdk.v1.events.retrieve(event.id)
    assert (stored.data, stored.pending_webhooks) == (event.data, 0)
    (listed,) = sdk.v1.webhook_endpoints.list()
    assert (listed.id, "secret" in listed.to_dict()) == (endpoint.id, False)


def test_what_is_not_accepted_is_sent_again_and_at_last_given_up(
    sdk: stripe.StripeClient, receiver: Receiver
) -> None:
    receiver.statuses = [500, 400, 302, 200, *[503] * 2 * ATTEMPTS]
    endpoint = _subscribed(sdk, receiver, PAID)
    names: list[str] = []
    for _ in range(3):
        pay(sdk)
        names += {receiver.event(endpoint.secret).id for _ in range(ATTEMPTS)}
    pay(sdk)
    assert receiver.event(endpoint.secret).id not in names
    owed = [sdk.v1.events.retrieve(name).pending_webhooks for name in names]
    assert owed == [0, 1, 1]


def test_an_endpoint_that_hangs_holds_up_neither_a_request_nor_the_end(
    tmp_path: Path, receiver: Receiver, sdk_http: stripe.RequestsClient
) -> None:
    receiver.statuses = [0]
    with serving(tmp_path) as running:
        sdk = client_of(running.door(ALPHA), sdk_http)
        endpoint = _subscribed(sdk, receiver, PAID)
        pay(sdk)
        held = receiver.event(endpoint.secret)
        assert pay(sdk).status == "succeeded"
    with serving(tmp_path):  # what was not accepted is sent after the next start
        arrived = [receiver.event(endpoint.secret).id for _ in range(2)]
    assert arrived[0] == held.id != arrived[1]


def test_a_deleted_endpoint_hears_no_more(sdk: stripe.StripeClient, receiver: Receiver) -> None:
    gone, kept = [_subscribed(sdk, receiver, kind) for kind in (PAID, "*")]
    assert sdk.v1.webhook_endpoints.delete(gone.id).deleted
    pay(sdk)
    for kind in _kinds(sdk):
        event = receiver.event(kept.secret)
        assert (event.type, event.pending_webhooks) == (kind, 1)


def test_no_event_leaves_this_machine(empty_door: Door) -> None:
    path, every = "/v1/webhook_endpoints", {"enabled_events": ["*"]}
    for url in (
        *("https://127.0.0.1/x", "http://example.com/x", "http://192.0.2.1/x", "http://0.0.0.0/"),
        *("ftp://127.0.0.1/x", "http://127.0.0.1@example.com/", "http://127.0.0.1:x/", "nowhere"),
        *("http://u:p@127.0.0.1/", "http://127.0.0.1.example.com/", "http://127.0.0.1/a b"),
    ):
        answer = empty_door.post(path, {"url": url, **every})
        assert refusal(answer) == (400, "invalid_request_error", "url_invalid", "url"), url
    good = {"url": "http://[::1]:9/x", "enabled_events": ["payout.paid"]}
    unknown = empty_door.post(path, {**good, "enabled_events": ["invoice.paid"]})
    assert refusal(unknown)[::3] == (400, "enabled_events")
    made = [empty_door.post(path, good).status for _ in range(17)]
    assert made == [200] * 16 + [400]


def test_an_event_of_a_connected_account_goes_to_the_platform_that_asked(
    sdk: stripe.StripeClient, receiver: Receiver
) -> None:
    ours = _subscribed(sdk, receiver, "account.updated", "transfer.created")
    theirs = _subscribed(sdk, receiver, "account.updated", connect=True)
    account = connected(sdk)
    event = receiver.event(theirs.secret)
    assert (event.account, event.data.object["id"]) == (account.id, account.id)
    pay(sdk, transfer_data={"destination": account.id})
    assert receiver.event(ours.secret).type == "transfer.created"


def test_each_turn_of_a_payment_is_an_event(sdk: stripe.StripeClient) -> None:
    to: Any = {"transfer_data": {"destination": connected(sdk).id}}
    intent = pay(sdk, payment_method="pm_card_createDisputeInquiry", **to)
    sdk.v1.refunds.create({"payment_intent": intent.id, "reverse_transfer": True})
    with pytest.raises(stripe.CardError):
        pay(sdk, payment_method="pm_card_chargeDeclined")
    assert _kinds(sdk) == [
        *("payment_intent.created", "transfer.created", "charge.succeeded", PAID),
        *("charge.dispute.created", "transfer.reversed", "refund.created", "charge.refunded"),
        *("payment_intent.created", "charge.failed", "payment_intent.payment_failed"),
    ]
    pay(sdk, payment_method="pm_card_createDispute")
    assert len(sdk.v1.events.list({"type": "charge.dispute.funds_withdrawn"}).data) == 1
