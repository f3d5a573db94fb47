"""What a caller asks of a PaymentIntent, read and checked before anything is executed."""

import re
from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.currencies import Currency, check_amount, currency_named
from stripe_sandbox.errors import ApiError, JsonObject, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.resources.expansion import expansions_of

BANK_CURRENCY = "usd"
CANCELLATION_REASONS = ("duplicate", "fraudulent", "requested_by_customer", "abandoned")

_ADDRESS = re.compile(r"https?://[^\s/]")
_ATTEMPT = ("error_on_requires_action", "off_session", "return_url")
_DESCRIBING = ("description", "expand", "metadata", "receipt_email", "statement_descriptor_suffix")
_CREATE = (
    *("amount", "automatic_payment_methods", "capture_method", "confirm", "confirmation_method"),
    *("currency", "customer", "on_behalf_of", "payment_method", "payment_method_types"),
    *("transfer_data", "transfer_group", *_ATTEMPT, *_DESCRIBING),
)
_UPDATE = ("amount", "currency", "customer", "payment_method", *_DESCRIBING)
_CONFIRM = ("expand", "payment_method", "receipt_email", *_ATTEMPT)
# Published at this version, and refused by name here until something needs them.
_CONFIRM_UNSUPPORTED = (
    *("amount_details", "amount_to_confirm", "capture_method", "confirmation_token", "hooks"),
    *("excluded_payment_method_types", "mandate", "mandate_data", "payment_details"),
    *("payment_method_data", "payment_method_options", "payment_method_types", "radar_options"),
    *("setup_future_usage", "shipping", "use_stripe_sdk"),
)
_CREATE_UNSUPPORTED = (
    *("allowed_payment_method_types", "amount_details", "application_fee_amount"),
    *("confirmation_token", "customer_account", "excluded_payment_method_types", "hooks"),
    *("mandate", "mandate_data", "payment_details", "payment_method_data"),
    *("payment_method_configuration", "payment_method_options", "radar_options"),
    *("setup_future_usage", "shipping", "statement_descriptor", "use_stripe_sdk"),
)
_UPDATE_UNSUPPORTED = (
    *(*_CREATE_UNSUPPORTED, "capture_method", "payment_method_types", "transfer_data"),
    "transfer_group",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How a payment is to be attempted."""

    payment_method: str | None
    return_url: str | None
    off_session: bool
    error_on_requires_action: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What both a creation and an update may say; None is "not mentioned", "" is "unset"."""

    description: str | None
    metadata: dict[str, str] | None
    receipt_email: str | None
    statement_descriptor_suffix: str | None
    expand: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    amount_minor: int
    currency: Currency
    automatic_payment_methods: JsonObject | None
    on_behalf_of: str | None
    transfer_data: JsonObject | None
    transfer_group: str | None
    payment_method_types: tuple[str, ...]
    capture_method: str
    confirmation_method: str
    confirm: bool
    attempt: Attempt
    changes: Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    amount_minor: int | None
    currency: Currency | None
    payment_method: str | None
    changes: Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    attempt: Attempt
    receipt_email: str | None
    expand: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    reason: str | None
    expand: tuple[str, ...]


def read_creation(form: Form) -> Creation:
    """Read POST /v1/payment_intents; raises ApiError for what Stripe would not execute."""
    parameters.reject_unknown(form, _CREATE, _CREATE_UNSUPPORTED)
    for name in ("amount", "currency"):
        parameters.required(form, name)
    amount_minor = parameters.integer_of(form, "amount", least=1) or 0
    currency = currency_named(parameters.text_of(form, "currency") or "")
    check_amount(amount_minor, currency)
    _reject_customer(form)
    confirm = parameters.boolean_of(form, "confirm") or False
    if not confirm:
        _reject_without_confirm(form)
    automatic, types = _accepted_methods(form, currency)
    creation = Creation(
        amount_minor=amount_minor,
        currency=currency,
        automatic_payment_methods=automatic,
        on_behalf_of=parameters.text_of(form, "on_behalf_of"),
        transfer_data=_transfer_data(form, amount_minor),
        transfer_group=parameters.text_of(form, "transfer_group"),
        payment_method_types=types,
        capture_method=_capture_method(form),
        confirmation_method=parameters.choice_of(
            form, "confirmation_method", ("automatic", "manual")
        )
        or "automatic",
        confirm=confirm,
        attempt=_attempt(form),
        changes=_changes(form),
    )
    if confirm:
        require_return_url(automatic, creation.attempt)
    return creation


def read_update(form: Form) -> Update:
    """Read POST /v1/payment_intents/{intent}."""
    parameters.reject_unknown(form, _UPDATE, _UPDATE_UNSUPPORTED)
    _reject_customer(form)
    currency = parameters.text_of(form, "currency")
    return Update(
        amount_minor=parameters.integer_of(form, "amount", least=1),
        currency=currency_named(currency) if currency else None,
        payment_method=parameters.clearable_text_of(form, "payment_method"),
        changes=_changes(form),
    )


def read_confirmation(form: Form) -> Confirmation:
    """Read POST /v1/payment_intents/{intent}/confirm."""
    parameters.reject_unknown(form, _CONFIRM, _CONFIRM_UNSUPPORTED)
    return Confirmation(
        attempt=_attempt(form),
        receipt_email=parameters.clearable_text_of(form, "receipt_email"),
        expand=expansions_of(form, "payment_intent"),
    )


def read_cancellation(form: Form) -> Cancellation:
    """Read POST /v1/payment_intents/{intent}/cancel."""
    parameters.reject_unknown(form, ("cancellation_reason", "expand"))
    return Cancellation(
        reason=parameters.choice_of(form, "cancellation_reason", CANCELLATION_REASONS),
        expand=expansions_of(form, "payment_intent"),
    )


def require_return_url(automatic: JsonObject | None, attempt: Attempt) -> None:
    """Raise ApiError where methods that redirect may be used and there is no way back.

    Not for attempts that cannot redirect: off session, or with an error instead.
    """
    redirects = automatic is not None and automatic["allow_redirects"] == "always"
    if not redirects or attempt.return_url or attempt.off_session:
        return
    if not attempt.error_on_requires_action:
        raise invalid_request(
            "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. "
            "Because some of these payment methods might redirect your customer off of your page, "
            "you must provide a `return_url`. If you don't want to accept redirect-based payment "
            "methods, set `automatic_payment_methods[enabled]` to `true` and "
            "`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents "
            "and Payment Intents.",
        )


def _changes(form: Form) -> Changes:
    change = parameters.metadata_of(form)
    parameters.merged_metadata({}, change)
    return Changes(
        description=parameters.clearable_text_of(form, "description"),
        metadata=change,
        receipt_email=parameters.clearable_text_of(form, "receipt_email"),
        statement_descriptor_suffix=parameters.clearable_text_of(
            form, "statement_descriptor_suffix", length_max=22
        ),
        expand=expansions_of(form, "payment_intent"),
    )


def _attempt(form: Form) -> Attempt:
    off_session = form.get("off_session") in ("one_off", "recurring") or (
        parameters.boolean_of(form, "off_session") or False
    )
    return Attempt(
        payment_method=parameters.text_of(form, "payment_method"),
        return_url=_return_url(form),
        off_session=off_session,
        error_on_requires_action=parameters.boolean_of(form, "error_on_requires_action") or False,
    )


def _return_url(form: Form) -> str | None:
    """Read where the card's owner is sent afterwards: an address that is safe in a header."""
    url = parameters.text_of(form, "return_url")
    if url is not None and not (_ADDRESS.match(url) and url.isascii() and url.isprintable()):
        raise invalid_request("Not a valid URL", code="url_invalid", param="return_url")
    return url


def check_transfer(transfer_data: JsonObject | None, amount_minor: int) -> None:
    """Raise ApiError where more is to be transferred than is paid."""
    if transfer_data is not None and transfer_data.get("amount", 0) > amount_minor:
        raise invalid_request(
            "transfer_data[amount] must be less than or equal to the amount of the PaymentIntent.",
            code="amount_too_large",
            param="transfer_data[amount]",
        )


def _transfer_data(form: Form, amount_minor: int) -> JsonObject | None:
    """Return whom a destination charge is for, and how much of it where that is named."""
    data = parameters.object_of(form, "transfer_data")
    if data is None:
        return None
    named: Form = {f"transfer_data[{name}]": value for name, value in data.items()}
    destination, amount = "transfer_data[destination]", "transfer_data[amount]"
    others = [f"transfer_data[{name}]" for name in ("description", "metadata", "payment_data")]
    parameters.reject_unknown(named, (destination, amount), others)
    parameters.required(named, destination)
    read: JsonObject = {"destination": parameters.text_of(named, destination)}
    share = parameters.integer_of(named, amount, least=1)
    if share is not None:
        read["amount"] = share
    check_transfer(read, amount_minor)
    return read


def _accepted_methods(form: Form, currency: Currency) -> tuple[JsonObject | None, tuple[str, ...]]:
    """Return what Stripe calls automatic_payment_methods, and the list of types."""
    types = parameters.array_of(form, "payment_method_types")
    automatic = parameters.object_of(form, "automatic_payment_methods")
    if automatic is None:
        if types is not None:
            return None, _known_types(types, currency)
        return {"allow_redirects": "always", "enabled": True}, _all_types(currency)
    label = "automatic_payment_methods"
    known = {"enabled", "allow_redirects"}
    parameters.reject_unknown(
        {f"{label}[{name}]": "" for name in automatic if name not in known}, ()
    )
    if "enabled" not in automatic:
        parameters.required({}, f"{label}[enabled]")
    enabled = parameters.boolean_of(automatic, "enabled", label=f"{label}[enabled]")
    redirects = parameters.choice_of(
        automatic, "allow_redirects", ("always", "never"), f"{label}[allow_redirects]"
    )
    if not enabled:
        return None, ("card",) if types is None else _known_types(types, currency)
    if types is not None:
        raise invalid_request(
            "You may only specify one of these parameters: automatic_payment_methods, "
            "payment_method_types."
        )
    return {"allow_redirects": redirects or "always", "enabled": True}, _all_types(currency)


def _all_types(currency: Currency) -> tuple[str, ...]:
    """What may pay in a currency: a bank account in the United States pays in its own alone."""
    return ("card", "us_bank_account") if currency.code == BANK_CURRENCY else ("card",)


def _known_types(types: tuple[str, ...], currency: Currency) -> tuple[str, ...]:
    for name in types:
        if name not in ("card", "us_bank_account"):
            raise invalid_request(
                f"The payment method type provided: {name} is invalid. The local Stripe "
                "counterpart knows the types card and us_bank_account alone.",
                code="payment_intent_invalid_parameter",
                param="payment_method_types",
            )
        if name not in _all_types(currency):
            raise invalid_request(
                f"The currency provided ({currency.code}) is invalid for one or more payment "
                f"method types: {name}. Payments with {name} support the following currencies: "
                f"{BANK_CURRENCY}.",
                param="payment_method_types",
            )
    return tuple(sorted(set(types))) or ("card",)


def _capture_method(form: Form) -> str:
    method = parameters.choice_of(
        form, "capture_method", ("automatic", "automatic_async", "manual")
    )
    if method == "manual":
        raise invalid_request(
            "The local Stripe counterpart does not support capture_method 'manual' yet.",
            param="capture_method",
        )
    return method or "automatic_async"


def _reject_without_confirm(form: Form) -> None:
    for name in _ATTEMPT:
        if name in form:
            raise invalid_request(
                f"The parameter `{name}` cannot be passed when creating a PaymentIntent unless "
                "`confirm` is set to true.",
                param=name,
            )


def _reject_customer(form: Form) -> None:
    customer = parameters.text_of(form, "customer")
    if customer is not None:
        raise no_such_customer(customer)


def no_such_customer(customer: str) -> ApiError:
    """Return the refusal of any customer: there are none here."""
    return missing("customer", customer, "customer", 400)
