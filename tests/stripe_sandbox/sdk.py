"""The second door: Stripe's official SDK, pointed at the counterpart."""

from typing import Any, cast

import stripe

from tests.stripe_sandbox.door import Door, payment


def client_of(door: Door, http: stripe.RequestsClient) -> stripe.StripeClient:
    """Return the SDK's client of a door's account, without retries of its own."""
    return stripe.StripeClient(
        door.key, base_addresses={"api": door.url}, max_network_retries=0, http_client=http
    )


def pay(
    client: stripe.StripeClient, *, key: str | None = None, **changes: object
) -> stripe.PaymentIntent:
    """Create and confirm a payment; what is refused raises the SDK's own error."""
    # The SDK types its parameters as one TypedDict per call; the builder is shared by both doors.
    params = cast(Any, payment(**changes))
    options: stripe.RequestOptions = {} if key is None else {"idempotency_key": key}
    return client.v1.payment_intents.create(params, options)


def header(intent: stripe.PaymentIntent, name: str) -> str | None:
    """Return a header of the answer that ``intent`` came with."""
    response = intent.last_response
    assert response is not None
    headers = {key.lower(): value for key, value in response.headers.items()}
    return headers.get(name.lower())
