"""Lists: pages of objects, newest first, with Stripe's cursors and filters."""

from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.errors import Answer, ApiError, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.resources.expansion import expanded, expansions_of
from stripe_sandbox.resources.intent_requests import no_such_customer
from stripe_sandbox.store import Account, Window

LIMIT_DEFAULT = 10
LIMIT_MAX = 100

_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_KNOWN = ("created", "customer", "ending_before", "expand", "limit", "starting_after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A checked request for one page."""

    kind: str
    url: str
    window: Window
    expand: tuple[str, ...]


def read_intent_listing(form: Form) -> Listing:
    """Read GET /v1/payment_intents."""
    parameters.reject_unknown(form, _KNOWN, ("customer_account",))
    return _listing(form, "payment_intent", "/v1/payment_intents", None)


def read_charge_listing(form: Form) -> Listing:
    """Read GET /v1/charges."""
    parameters.reject_unknown(form, (*_KNOWN, "payment_intent"), ("transfer_group",))
    return _listing(form, "charge", "/v1/charges", parameters.text_of(form, "payment_intent"))


def read_payout_listing(form: Form) -> Listing:
    """Read GET /v1/payouts."""
    known = [name for name in _KNOWN if name != "customer"]
    parameters.reject_unknown(form, known, ("arrival_date", "destination", "status"))
    return _listing(form, "payout", "/v1/payouts", None)


def page(account: Account, listing: Listing) -> Answer:
    """Return one page; a cursor or a filter that names nothing of this account is refused."""
    window = listing.window
    for param, cursor in (("starting_after", window.after), ("ending_before", window.before)):
        _require(account, listing.kind, cursor, param)
    _require(account, "payment_intent", window.link, "payment_intent")
    objects, has_more = account.page(listing.kind, window)
    data = [expanded(account, body, listing.expand) for body in objects]
    body = {"object": "list", "data": data, "has_more": has_more, "url": listing.url}
    return Answer(status=200, body=body)


def _listing(form: Form, kind: str, url: str, link: str | None) -> Listing:
    customer = parameters.text_of(form, "customer")
    if customer is not None:
        raise no_such_customer(customer)
    after = parameters.text_of(form, "starting_after")
    before = parameters.text_of(form, "ending_before")
    if after is not None and before is not None:
        raise invalid_request(
            "Received both ending_before and starting_after parameters. Please pass in only one."
        )
    limit = parameters.integer_of(form, "limit", least=1, greatest=LIMIT_MAX)
    window = Window(
        limit=limit or LIMIT_DEFAULT,
        after=after,
        before=before,
        created=_created(form),
        link=link,
    )
    return Listing(
        kind=kind, url=url, window=window, expand=expansions_of(form, kind, in_list=True)
    )


def _created(form: Form) -> tuple[tuple[str, int], ...]:
    value = form.get("created")
    if not isinstance(value, dict):
        moment = parameters.integer_of(form, "created")
        return () if moment is None else (("=", moment),)
    named: Form = {f"created[{name}]": item for name, item in value.items()}
    parameters.reject_unknown(named, [f"created[{name}]" for name in _COMPARISONS])
    moments = {name: parameters.integer_of(named, f"created[{name}]") for name in value}
    return tuple((_COMPARISONS[name], at) for name, at in moments.items() if at is not None)


def _require(account: Account, kind: str, object_id: str | None, param: str) -> None:
    if object_id is not None and account.find(kind, object_id) is None:
        raise _no_such(kind, object_id, param)


def _no_such(kind: str, object_id: str, param: str) -> ApiError:
    return missing(kind, object_id, param, 400)
