"""Lists: pages of objects, newest first, with Stripe's cursors and filters."""

from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.errors import ApiResult, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.resources.expansion import expanded, expansions_of
from stripe_sandbox.resources.intent_requests import no_such_customer
from stripe_sandbox.store import Account, Condition, Window, created, field_is

LIMIT_DEFAULT = 10
LIMIT_MAX = 100

_COMPARISONS = ("gt", "gte", "lt", "lte")
_PAGING = ("ending_before", "expand", "limit", "starting_after")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListKind:
    """A list as Stripe publishes it: its address, and what it may be filtered by.

    ``fields`` are those of the object itself; ``others`` are known to Stripe and refused here.
    """

    url: str
    fields: tuple[str, ...] = ()
    known: tuple[str, ...] = ("created",)
    others: tuple[str, ...] = ()


_OF_PAYMENT = ("charge", "payment_intent")
KINDS = {
    "account": ListKind(url="/v1/accounts"),
    "charge": ListKind(
        url="/v1/charges",
        fields=("payment_intent", "transfer_group"),
        known=("created", "customer"),
    ),
    "dispute": ListKind(url="/v1/disputes", fields=_OF_PAYMENT),
    "event": ListKind(url="/v1/events", fields=("type",), others=("delivery_success", "types")),
    "payment_intent": ListKind(
        url="/v1/payment_intents", known=("created", "customer"), others=("customer_account",)
    ),
    "payout": ListKind(url="/v1/payouts", others=("arrival_date", "destination", "status")),
    "refund": ListKind(url="/v1/refunds", fields=_OF_PAYMENT),
    "transfer": ListKind(url="/v1/transfers", fields=("destination", "transfer_group")),
    "webhook_endpoint": ListKind(url="/v1/webhook_endpoints", known=()),
}
_IDS = {"charge": "charge", "destination": "account", "payment_intent": "payment_intent"}
"""Filters that name an object, by the kind of the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A checked request for one page."""

    kind: str
    window: Window
    named: tuple[tuple[str, str], ...]
    expand: tuple[str, ...]


def read_listing(kind: str, form: Form) -> Listing:
    """Read the request for a page of one kind of object."""
    published = KINDS[kind]
    known = (*_PAGING, *published.known, *published.fields)
    parameters.reject_unknown(form, known, published.others)
    customer = parameters.text_of(form, "customer")
    if customer is not None:
        raise no_such_customer(customer)
    after = parameters.text_of(form, "starting_after")
    before = parameters.text_of(form, "ending_before")
    if after is not None and before is not None:
        raise invalid_request(
            "Received both ending_before and starting_after parameters. Please pass in only one."
        )
    given = {name: parameters.text_of(form, name) for name in published.fields}
    named = tuple((name, value) for name, value in given.items() if value is not None)
    window = Window(
        limit=limit_of(form),
        after=after,
        before=before,
        conditions=(*_created(form), *(field_is(name, value) for name, value in named)),
    )
    expand = expansions_of(form, kind, in_list=True)
    return Listing(kind=kind, window=window, named=named, expand=expand)


def limit_of(form: Form) -> int:
    """How many objects a page may have."""
    return parameters.integer_of(form, "limit", least=1, greatest=LIMIT_MAX) or LIMIT_DEFAULT


def page(context: Context, listing: Listing) -> ApiResult:
    """Return one page; a cursor or a filter that names nothing of this account is refused."""
    account, window = context.account, listing.window
    for param, cursor in (("starting_after", window.after), ("ending_before", window.before)):
        _require(account, listing.kind, cursor, param)
    for param, value in listing.named:
        if param in _IDS:
            _require(account, _IDS[param], value, param)
    objects, has_more = account.page(listing.kind, window)
    data = [expanded(account, body, listing.expand) for body in objects]
    body = {"object": "list", "data": data, "has_more": has_more, "url": KINDS[listing.kind].url}
    return ApiResult(status=200, body=body)


def _created(form: Form) -> tuple[Condition, ...]:
    value = form.get("created")
    if not isinstance(value, dict):
        moment = parameters.integer_of(form, "created")
        return () if moment is None else (created("eq", moment),)
    named: Form = {f"created[{name}]": item for name, item in value.items()}
    parameters.reject_unknown(named, [f"created[{name}]" for name in _COMPARISONS])
    moments = {name: parameters.integer_of(named, f"created[{name}]") for name in value}
    return tuple(created(name, at) for name, at in moments.items() if at is not None)


def _require(account: Account, kind: str, object_id: str | None, param: str) -> None:
    if object_id is not None and account.find(kind, object_id) is None:
        raise missing(kind, object_id, param, 400)
