"""Events: what happened to an object, kept to be listed and sent to the webhook endpoints."""

from stripe_sandbox import API_VERSION
from stripe_sandbox.context import Context
from stripe_sandbox.errors import JsonObject
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.store import Account, Window

ENDPOINTS_MAX = 16
"""Webhook endpoints that one account may have, as Stripe limits them."""


def emit(context: Context, kind: str, body: JsonObject) -> None:
    """Record an event with the object as it is now, for each endpoint that asked for its kind.

    Both are part of the transaction that made it happen. What happens on a connected
    account is sent to the endpoints that its platform registered with ``connect``.
    """
    wanted = [
        (owner, endpoint["id"])
        for owner, endpoint in _endpoints(context)
        if kind in endpoint["enabled_events"] or "*" in endpoint["enabled_events"]
    ]
    event: JsonObject = {
        "id": object_id("evt"),
        "object": "event",
        "api_version": API_VERSION,
        "created": context.now,
        "data": {"object": body},
        "livemode": False,
        "pending_webhooks": len(wanted),
        "request": {"id": context.request_id, "idempotency_key": context.idempotency_key},
        "type": kind,
    }
    if context.is_connected:
        event["account"] = context.account.name
    context.account.add(event)
    for owner, endpoint_id in wanted:
        context.account.store.rows(
            "INSERT INTO delivery (account, event, owner, endpoint, attempts, due) "
            "VALUES (?,?,?,?,0,0)",
            (context.account.name, event["id"], owner.name, endpoint_id),
        )


def _endpoints(context: Context) -> list[tuple[Account, JsonObject]]:
    """The endpoints that hear of the account's events, each with the account that owns it."""
    window = Window(limit=ENDPOINTS_MAX)
    own, _ = context.account.page("webhook_endpoint", window)
    found = [(context.account, each) for each in own if each["application"] is None]
    if context.is_connected:
        of_platform, _ = context.platform.page("webhook_endpoint", window)
        found += [(context.platform, each) for each in of_platform if each["application"]]
    return found
