"""Connected accounts: who can receive a transfer, usable as soon as they are made."""

from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.errors import ApiError, ApiResult, JsonObject, invalid_request
from stripe_sandbox.forms import Form
from stripe_sandbox.identifiers import object_id
from stripe_sandbox.resources.events import emit

CAPABILITIES = ("card_payments", "transfers")
# The countries where accounts can be connected (stripe.com/global), and their own currencies.
_EURO_COUNTRIES = (
    *("AT", "BE", "BG", "CY", "DE", "EE", "ES", "FI", "FR", "GR", "HR", "IE", "IT", "LT", "LU"),
    *("LV", "MT", "NL", "PT", "SI", "SK"),
)
_CURRENCIES = dict.fromkeys(_EURO_COUNTRIES, "eur") | {
    "AE": "aed", "AU": "aud", "BR": "brl", "CA": "cad", "CH": "chf", "CZ": "czk", "DK": "dkk",
    "GB": "gbp", "GI": "gbp", "HK": "hkd", "HU": "huf", "JP": "jpy", "LI": "chf", "MX": "mxn",
    "MY": "myr", "NO": "nok", "NZ": "nzd", "PL": "pln", "RO": "ron", "SE": "sek", "SG": "sgd",
    "TH": "thb", "US": "usd",
}  # fmt: skip
_CREATE = (
    *("business_type", "capabilities", "controller", "country", "default_currency", "email"),
    *("expand", "metadata", "type"),
)
_UNSUPPORTED = (
    *("account_token", "business_profile", "company", "documents", "external_account", "groups"),
    *("individual", "risk_controls", "settings", "tos_acceptance"),
)
_CONTROLS = {
    "fees": ("payer", ("account", "application")),
    "losses": ("payments", ("stripe", "application")),
    "stripe_dashboard": ("type", ("full", "express", "none")),
}
"""What a platform may say of who controls an account; the first value is the default."""
_NO_CONNECT = (
    "You can only create new accounts if you've signed up for Connect, which you can learn how to "
    "do at https://stripe.com/docs/connect."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A checked request for a connected account."""

    kind: str
    controller: JsonObject
    country: str
    currency: str
    business_type: str | None
    email: str | None
    capabilities: tuple[str, ...]
    metadata: dict[str, str]


def read_creation(form: Form) -> Creation:
    """Read POST /v1/accounts."""
    parameters.reject_unknown(form, _CREATE, _UNSUPPORTED)
    kind = parameters.choice_of(form, "type", ("custom", "express", "standard"))
    controller = parameters.object_of(form, "controller")
    if kind is not None and controller is not None:
        raise invalid_request(
            "You may only specify one of these parameters: type, controller.", param="type"
        )
    if kind is None and controller is None:
        kind = "standard"
    country = parameters.text_of(form, "country") or "US"
    if country not in _CURRENCIES:
        raise invalid_request(
            f"Country '{country}' is unknown. Try using a 2-character alphanumeric country code "
            "instead, such as 'US', 'EG', or 'GB'.",
            code="country_unsupported",
            param="country",
        )
    return Creation(
        kind=kind or "none",
        controller=_controller(controller or {}),
        country=country,
        currency=parameters.choice_of(form, "default_currency", _own(country)) or _own(country)[0],
        business_type=parameters.choice_of(
            form, "business_type", ("company", "government_entity", "individual", "non_profit")
        ),
        email=parameters.text_of(form, "email"),
        capabilities=_requested(form) or (CAPABILITIES if kind == "standard" else ()),
        metadata=parameters.merged_metadata({}, parameters.metadata_of(form)),
    )


def create(context: Context, creation: Creation) -> ApiResult:
    """Connect a test account; the capabilities that were requested are active at once."""
    if not context.has_connect:
        raise invalid_request(_NO_CONNECT)
    if context.is_connected:
        raise invalid_request("Only a platform can connect accounts; leave Stripe-Account out.")
    account: JsonObject = {
        "id": object_id("acct"),
        "object": "account",
        "business_type": creation.business_type,
        "capabilities": dict.fromkeys(creation.capabilities, "active"),
        "charges_enabled": "card_payments" in creation.capabilities,
        "controller": creation.controller,
        "country": creation.country,
        "created": context.now,
        "default_currency": creation.currency,
        "details_submitted": True,
        "email": creation.email,
        "metadata": creation.metadata,
        "payouts_enabled": True,
        "type": creation.kind,
    }
    account["external_accounts"] = {
        "object": "list",
        "data": [],
        "has_more": False,
        "url": f"/v1/accounts/{account['id']}/external_accounts",
    }
    context.account.add(account)
    emit(context.acting_for(account["id"]), "account.updated", account)
    return ApiResult(status=200, body=account)


def update(context: Context, name: str, form: Form) -> ApiResult:
    """Change what a platform may say of a connected account: its email and its metadata."""
    account = context.account.find("account", name)
    if account is None:
        raise no_such_account(context, name)
    email = parameters.clearable_text_of(form, "email")
    if email is not None:
        account["email"] = email or None
    change = parameters.metadata_of(form)
    account["metadata"] = parameters.merged_metadata(account["metadata"], change)
    context.account.replace(account)
    emit(context.acting_for(name), "account.updated", account)
    return ApiResult(status=200, body=account)


def read_update(form: Form) -> Form:
    """Check POST /v1/accounts/{account}; its metadata are merged when it is executed."""
    unsupported = (*_UNSUPPORTED, "business_type", "capabilities", "default_currency")
    parameters.reject_unknown(form, ("email", "expand", "metadata"), unsupported)
    parameters.merged_metadata({}, parameters.metadata_of(form))
    return form


def require_destination(context: Context, name: str, param: str) -> None:
    """Raise ApiError unless the account is connected, not ourselves, and can take transfers."""
    if name == context.account.name:
        raise invalid_request(
            f"The '{param}' param cannot be set to your own account.", param=param
        )
    account = context.account.find("account", name)
    if account is None:
        raise invalid_request(
            f"No such destination: '{name}'", code="resource_missing", param=param
        )
    if account["capabilities"].get("transfers") != "active":
        raise invalid_request(
            "Your destination account needs to have at least one of the following capabilities "
            "enabled: transfers, crypto_transfers, legacy_payments",
            code="insufficient_capabilities_for_transfer",
        )


def no_such_account(context: Context, name: str) -> ApiError:
    """Return Stripe's 403 for an account that the key does not reach, or that does not exist."""
    message = (
        f"The provided key '{context.key}' does not have access to account '{name}' (or that "
        "account does not exist). Application access may have been revoked."
    )
    return ApiError(403, "invalid_request_error", message, code="account_invalid")


def _own(country: str) -> tuple[str]:
    return (_CURRENCIES[country],)


def _requested(form: Form) -> tuple[str, ...]:
    """The capabilities that are asked for, of those that there are here."""
    asked = parameters.object_of(form, "capabilities") or {}
    label = "capabilities[{}]".format
    unsupported = [label(name) for name in asked if name not in CAPABILITIES]
    parameters.reject_unknown(dict.fromkeys(unsupported, ""), (), unsupported)
    found = []
    for name in asked:
        inner = parameters.object_of(asked, name) or {}
        parameters.reject_unknown(inner, ("requested",))
        if parameters.boolean_of(inner, "requested", label=f"{label(name)}[requested]"):
            found.append(name)
    return tuple(found)


def _controller(form: Form) -> JsonObject:
    parameters.reject_unknown(form, (*_CONTROLS, "requirement_collection"))
    collection = parameters.choice_of(form, "requirement_collection", ("stripe", "application"))
    controller: JsonObject = {
        "is_controller": True,
        "requirement_collection": collection or "stripe",
        "type": "application",
    }
    for name, (field, values) in _CONTROLS.items():
        inner = parameters.object_of(form, name) or {}
        parameters.reject_unknown(inner, (field,))
        label = f"controller[{name}][{field}]"
        controller[name] = {field: parameters.choice_of(inner, field, values, label) or values[0]}
    return controller
