"""Webhook endpoints: where an account's events are sent, and the secret they are signed with."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.errors import ApiError, ApiResult, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.identifiers import object_id, random_text
from stripe_sandbox.resources.events import ENDPOINTS_MAX
from stripe_sandbox.store import Window

KINDS = (
    *("account.updated", "charge.dispute.created", "charge.dispute.funds_withdrawn"),
    *("charge.failed", "charge.pending", "charge.refunded", "charge.succeeded"),
    *("payment_intent.canceled", "payment_intent.created", "payment_intent.payment_failed"),
    *("payment_intent.processing", "payment_intent.requires_action", "payment_intent.succeeded"),
    *("payout.canceled", "payout.created", "payout.failed", "payout.paid", "refund.created"),
    *("transfer.created", "transfer.reversed"),
)
"""The kinds of event that happen here."""

_KNOWN = ("connect", "description", "enabled_events", "expand", "metadata", "url")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddress:
    """Where an endpoint is on this machine."""

    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A checked request for an endpoint."""

    url: str
    enabled_events: tuple[str, ...]
    connect: bool
    description: str | None
    metadata: dict[str, str]


def read_creation(form: Form) -> Creation:
    """Read POST /v1/webhook_endpoints; an endpoint on another machine is refused."""
    parameters.reject_unknown(form, _KNOWN, ("api_version",))
    for name in ("url", "enabled_events"):
        parameters.required(form, name)
    url = parameters.text_of(form, "url") or ""
    target_of(url)
    kinds = parameters.array_of(form, "enabled_events") or ()
    unknown = [kind for kind in kinds if kind not in (*KINDS, "*")]
    if unknown or not kinds:
        raise invalid_request(
            f"The local Stripe counterpart has no event '{', '.join(unknown)}'. Its events are: "
            f"*, {', '.join(KINDS)}.",
            param="enabled_events",
        )
    return Creation(
        url=url,
        enabled_events=kinds,
        connect=parameters.boolean_of(form, "connect") or False,
        description=parameters.text_of(form, "description"),
        metadata=parameters.merged_metadata({}, parameters.metadata_of(form)),
    )


def create(context: Context, creation: Creation) -> ApiResult:
    """Register an endpoint. This answer alone holds its signing secret."""
    account = context.account
    present, _ = account.page("webhook_endpoint", Window(limit=ENDPOINTS_MAX))
    if len(present) == ENDPOINTS_MAX:
        raise invalid_request(
            f"You have reached the maximum of {ENDPOINTS_MAX} test webhook endpoints."
        )
    secret = "whsec_" + random_text(32)
    endpoint = {
        "id": object_id("we"),
        "object": "webhook_endpoint",
        "api_version": None,
        "application": object_id("ca") if creation.connect else None,
        "created": context.now,
        "description": creation.description,
        "enabled_events": list(creation.enabled_events),
        "livemode": False,
        "metadata": creation.metadata,
        "status": "enabled",
        "url": creation.url,
    }
    account.add(endpoint, link=secret)
    return ApiResult(status=200, body={**endpoint, "secret": secret})


def delete(context: Context, name: str) -> ApiResult:
    """Remove an endpoint; what was still to be sent to it is not sent."""
    if context.account.find("webhook_endpoint", name) is None:
        raise no_such_endpoint(name)
    context.account.remove("webhook_endpoint", name)
    context.account.store.rows("DELETE FROM delivery WHERE endpoint = ?", (name,))
    body = {"id": name, "object": "webhook_endpoint", "deleted": True}
    return ApiResult(status=200, body=body)


def no_such_endpoint(name: str) -> ApiError:
    """Return Stripe's 404 for the endpoint that a path names."""
    return missing("webhook endpoint", name, "webhook_endpoint", 404)


def target_of(url: str) -> EndpointAddress:
    """Return where an address points, or raise ApiError: plain HTTP on this machine alone.

    The name ``localhost`` is not resolved, so that no resolver can send events elsewhere.
    """
    try:
        parts = urlsplit(url)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        is_local = ipaddress.ip_address(host).is_loopback
        port = parts.port or 80
    except ValueError:
        raise _elsewhere(url) from None
    plain = url.isascii() and url.isprintable() and " " not in url
    if not (is_local and plain and parts.scheme == "http") or parts.username is not None:
        raise _elsewhere(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return EndpointAddress(host=host, port=port, path=path)


def _elsewhere(url: str) -> ApiError:
    return invalid_request(
        f"Invalid URL: {url[:200]}. The local Stripe counterpart sends events to "
        "http://127.0.0.1, http://localhost or http://[::1] alone.",
        code="url_invalid",
        param="url",
    )
