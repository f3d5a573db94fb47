"""The endpoints: which path and method are answered by what."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from stripe_sandbox import lists
from stripe_sandbox.errors import Answer, ApiError, missing, unrecognized_url
from stripe_sandbox.forms import Form
from stripe_sandbox.parameters import reject_unknown
from stripe_sandbox.resources import balances, intent_requests, payment_intents, payouts
from stripe_sandbox.resources.expansion import expanded, expansions_of
from stripe_sandbox.resources.payment_intents import Context
from stripe_sandbox.store import Account

Execution = Callable[[Context], Answer]
Endpoint = Callable[[str, Form], Execution]
"""Checks the id in the path and the parameters, and returns what is then to be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: re.Pattern[str]
    endpoint: Endpoint


def endpoint_for(method: str, path: str) -> tuple[Endpoint, str]:
    """Return what answers the request, and the id in its path ("" where there is none)."""
    for route in _ROUTES:
        match = route.path.fullmatch(path)
        if match is not None and route.method == method:
            return route.endpoint, match.groupdict().get("id") or ""
    raise unrecognized_url(method, path)


def _create_intent(_: str, form: Form) -> Execution:
    creation = intent_requests.read_creation(form)
    return lambda context: payment_intents.create(context, creation)


def _update_intent(intent_id: str, form: Form) -> Execution:
    change = intent_requests.read_update(form)
    return lambda context: payment_intents.update(context, intent_id, change)


def _confirm_intent(intent_id: str, form: Form) -> Execution:
    confirmation = intent_requests.read_confirmation(form)
    return lambda context: payment_intents.confirm(context, intent_id, confirmation)


def _cancel_intent(intent_id: str, form: Form) -> Execution:
    cancellation = intent_requests.read_cancellation(form)
    return lambda context: payment_intents.cancel(context, intent_id, cancellation)


def _list_intents(_: str, form: Form) -> Execution:
    listing = lists.read_intent_listing(form)
    return lambda context: lists.page(context.account, listing)


def _list_charges(_: str, form: Form) -> Execution:
    listing = lists.read_charge_listing(form)
    return lambda context: lists.page(context.account, listing)


def _create_payout(_: str, form: Form) -> Execution:
    creation = payouts.read_creation(form)
    return lambda context: payouts.create(context, creation)


def _cancel_payout(payout: str, form: Form) -> Execution:
    reject_unknown(form, ("expand",))
    expand = expansions_of(form, "payout")
    return lambda context: payouts.cancel(context, payout, expand)


def _list_payouts(_: str, form: Form) -> Execution:
    listing = lists.read_payout_listing(form)
    return lambda context: lists.page(context.account, listing)


def _balance(_: str, form: Form) -> Execution:
    reject_unknown(form, ("expand",))
    return lambda context: Answer(status=200, body=balances.balance(context.account))


def _retrieve(kind: str, refusal: Callable[[str], ApiError], *extra: str) -> Endpoint:
    def prepare(object_id: str, form: Form) -> Execution:
        reject_unknown(form, ("expand", *extra))
        expand = expansions_of(form, kind)
        return lambda context: _retrieved(context.account, kind, object_id, expand, refusal)

    return prepare


def _retrieved(
    account: Account,
    kind: str,
    object_id: str,
    expand: tuple[str, ...],
    refusal: Callable[[str], ApiError],
) -> Answer:
    body = account.find(kind, object_id)
    if body is None:
        raise refusal(object_id)
    return Answer(status=200, body=expanded(account, body, expand))


def _route(method: str, path: str, endpoint: Endpoint) -> Route:
    pattern = re.compile(path.replace("{id}", "(?P<id>[^/]+)"))
    return Route(method=method, path=pattern, endpoint=endpoint)


_ROUTES = (
    _route("POST", "/v1/payment_intents", _create_intent),
    _route("GET", "/v1/payment_intents", _list_intents),
    _route(
        "GET",
        "/v1/payment_intents/{id}",
        _retrieve(
            "payment_intent",
            lambda name: missing("payment_intent", name, "intent", 404),
            "client_secret",
        ),
    ),
    _route("POST", "/v1/payment_intents/{id}", _update_intent),
    _route("POST", "/v1/payment_intents/{id}/confirm", _confirm_intent),
    _route("POST", "/v1/payment_intents/{id}/cancel", _cancel_intent),
    _route("GET", "/v1/balance", _balance),
    _route("POST", "/v1/payouts", _create_payout),
    _route("GET", "/v1/payouts", _list_payouts),
    _route("GET", "/v1/payouts/{id}", _retrieve("payout", payouts.no_such_payout)),
    _route("POST", "/v1/payouts/{id}/cancel", _cancel_payout),
    _route("GET", "/v1/charges", _list_charges),
    _route(
        "GET",
        "/v1/charges/{id}",
        _retrieve("charge", lambda name: missing("charge", name, "id", 404)),
    ),
    _route(
        "GET",
        "/v1/payment_methods/{id}",
        _retrieve(
            "payment_method",
            lambda name: missing("PaymentMethod", name, "payment_method", 404),
        ),
    ),
)
