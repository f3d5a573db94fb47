"""The endpoints: which path and method are answered by what."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from stripe_sandbox import lists, search
from stripe_sandbox.context import Context
from stripe_sandbox.errors import ApiError, ApiResult, missing, unrecognized_url
from stripe_sandbox.forms import Form
from stripe_sandbox.parameters import reject_unknown
from stripe_sandbox.resources import (
    accounts,
    attempts,
    balances,
    intent_requests,
    payment_intents,
    payouts,
    refunds,
)
from stripe_sandbox.resources.expansion import expanded, expansions_of
from stripe_sandbox.webhooks import endpoints

Execution = Callable[[Context], ApiResult]
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


def _search_intents(_: str, form: Form) -> Execution:
    asked = search.read_search(form)
    return lambda context: search.search_page(context, asked)


def _settle_intent(intent_id: str, form: Form) -> Execution:
    succeeded = attempts.read_settlement(form)

    def execution(context: Context) -> ApiResult:
        intent = payment_intents.find_intent(context.account, intent_id)
        return attempts.settle(context, intent, succeeded=succeeded)

    return execution


def _create_payout(_: str, form: Form) -> Execution:
    creation = payouts.read_creation(form)
    return lambda context: payouts.create(context, creation)


def _cancel_payout(payout: str, form: Form) -> Execution:
    reject_unknown(form, ("expand",))
    expand = expansions_of(form, "payout")
    return lambda context: payouts.cancel(context, payout, expand)


def _settle_payout(payout: str, form: Form) -> Execution:
    succeeded = attempts.read_settlement(form)
    return lambda context: payouts.settle(context, payout, succeeded=succeeded)


def _create_refund(_: str, form: Form) -> Execution:
    creation = refunds.read_creation(form)
    return lambda context: refunds.create(context, creation)


def _create_account(_: str, form: Form) -> Execution:
    creation = accounts.read_creation(form)
    return lambda context: accounts.create(context, creation)


def _update_account(account: str, form: Form) -> Execution:
    change = accounts.read_update(form)
    return lambda context: accounts.update(context, account, change)


def _create_endpoint(_: str, form: Form) -> Execution:
    creation = endpoints.read_creation(form)
    return lambda context: endpoints.create(context, creation)


def _delete_endpoint(endpoint: str, form: Form) -> Execution:
    reject_unknown(form, ())
    return lambda context: endpoints.delete(context, endpoint)


def _balance(_: str, form: Form) -> Execution:
    reject_unknown(form, ("expand",))
    return lambda context: ApiResult(status=200, body=balances.balance(context.account))


def _list(kind: str) -> Endpoint:
    def prepare(_: str, form: Form) -> Execution:
        listing = lists.read_listing(kind, form)
        return lambda context: lists.page(context, listing)

    return prepare


def _retrieve(kind: str, refusal: Callable[[Context, str], ApiError], *extra: str) -> Endpoint:
    def prepare(object_id: str, form: Form) -> Execution:
        reject_unknown(form, ("expand", *extra))
        expand = expansions_of(form, kind)

        def execution(context: Context) -> ApiResult:
            body = context.account.find(kind, object_id)
            if body is None:
                raise refusal(context, object_id)
            return ApiResult(status=200, body=expanded(context.account, body, expand))

        return execution

    return prepare


def _missing(noun: str, param: str) -> Callable[[Context, str], ApiError]:
    """Stripe's 404 for an object that a path names."""
    return lambda _, name: missing(noun, name, param, 404)


def _route(method: str, path: str, endpoint: Endpoint) -> Route:
    pattern = re.compile(path.replace("{id}", "(?P<id>[^/]+)"))
    return Route(method=method, path=pattern, endpoint=endpoint)


_RETRIEVED = {
    "/v1/accounts": _retrieve("account", accounts.no_such_account),
    "/v1/charges": _retrieve("charge", _missing("charge", "id")),
    "/v1/disputes": _retrieve("dispute", _missing("dispute", "dispute")),
    "/v1/events": _retrieve("event", _missing("event", "id")),
    "/v1/payment_intents": _retrieve(
        "payment_intent", _missing("payment_intent", "intent"), "client_secret"
    ),
    "/v1/payment_methods": _retrieve("payment_method", _missing("PaymentMethod", "payment_method")),
    "/v1/payouts": _retrieve("payout", _missing("payout", "payout")),
    "/v1/refunds": _retrieve("refund", _missing("refund", "refund")),
    "/v1/transfers": _retrieve("transfer", _missing("transfer", "transfer")),
    "/v1/webhook_endpoints": _retrieve(
        "webhook_endpoint", _missing("webhook endpoint", "webhook_endpoint")
    ),
}
_ROUTES = (
    _route("POST", "/v1/payment_intents", _create_intent),
    _route("GET", "/v1/payment_intents/search", _search_intents),
    _route("POST", "/v1/payment_intents/{id}", _update_intent),
    _route("POST", "/v1/payment_intents/{id}/confirm", _confirm_intent),
    _route("POST", "/v1/payment_intents/{id}/cancel", _cancel_intent),
    _route("POST", "/counterpart/payment_intents/{id}/settle", _settle_intent),
    _route("POST", "/v1/refunds", _create_refund),
    _route("POST", "/v1/accounts", _create_account),
    _route("POST", "/v1/accounts/{id}", _update_account),
    _route("GET", "/v1/balance", _balance),
    _route("POST", "/v1/payouts", _create_payout),
    _route("POST", "/v1/payouts/{id}/cancel", _cancel_payout),
    _route("POST", "/counterpart/payouts/{id}/settle", _settle_payout),
    _route("POST", "/v1/webhook_endpoints", _create_endpoint),
    _route("DELETE", "/v1/webhook_endpoints/{id}", _delete_endpoint),
    *(_route("GET", kind.url, _list(name)) for name, kind in lists.KINDS.items()),
    *(_route("GET", f"{url}/{{id}}", endpoint) for url, endpoint in _RETRIEVED.items()),
)
