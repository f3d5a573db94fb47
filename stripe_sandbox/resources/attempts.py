"""Attempts to pay a PaymentIntent, and what becomes of one that could not end at once."""

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.errors import ApiResult, JsonObject, error_fields, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.identifiers import random_text
from stripe_sandbox.resources import banks, charges
from stripe_sandbox.resources.cards import (
    AUTHENTICATION_NOT_HANDLED,
    AUTHENTICATION_REQUIRED,
    TEST_CARDS,
    Card,
    Decline,
    decline_error,
    payment_method_details,
)
from stripe_sandbox.resources.disputes import contest
from stripe_sandbox.resources.events import emit
from stripe_sandbox.resources.expansion import expanded
from stripe_sandbox.resources.intent_requests import Attempt
from stripe_sandbox.resources.transfers import transfer_of

_AUTHENTICATION_FAILED = (
    "payment_intent_authentication_failure",
    "The provided PaymentMethod has failed authentication. You can provide payment_method_data or "
    "a new PaymentMethod to attempt to fulfill this PaymentIntent again.",
)
AUTHENTICATIONS = "/counterpart/authentications"
"""Where this counterpart serves the page that stands for a bank's; no address of Stripe's."""


def attempted(
    context: Context, intent: JsonObject, attempt: Attempt, expand: tuple[str, ...]
) -> ApiResult:
    """Make one attempt on the intent's payment method and record what came of it."""
    method, name = _method(context, intent)
    if method["type"] not in intent["payment_method_types"]:
        raise invalid_request(
            f"The PaymentMethod provided ({method['type']}) is not allowed for this PaymentIntent. "
            "Please attach a PaymentMethod of one of the following types: "
            f"{', '.join(intent['payment_method_types'])}.",
            code="payment_intent_invalid_parameter",
            param="payment_method",
        )
    if name == banks.PROCESSING:
        _debited(context, intent, method)
        return ApiResult(status=200, body=expanded(context.account, intent, expand))
    card = TEST_CARDS[name]
    decline = _decline(card, attempt)
    if decline is None and card.needs_authentication:
        _await_authentication(context, intent, attempt)
        return ApiResult(status=200, body=expanded(context.account, intent, expand))
    charge = _charged(context, intent, method, card)
    if decline is None:
        _succeed(context, intent, charge, card)
        return ApiResult(status=200, body=expanded(context.account, intent, expand))
    error = decline_error(decline, charge["id"], method)
    _refuse(context, charge, decline)
    _fail(context, intent, error)
    return ApiResult(
        status=402, body={"error": dict(sorted({**error, "payment_intent": intent}.items()))}
    )


def authenticated(context: Context, intent: JsonObject, *, succeeded: bool) -> None:
    """End an attempt that waited for the card's owner, who has acted now."""
    method, name = _method(context, intent)
    if succeeded:
        card = TEST_CARDS[name]
        _succeed(context, intent, _charged(context, intent, method, card), card)
    else:
        _fail(context, intent, _error(*_AUTHENTICATION_FAILED, method))


def read_settlement(form: Form) -> bool:
    """Read this counterpart's own request to end what is under way: whether it ends well."""
    parameters.reject_unknown(form, ("outcome",))
    parameters.required(form, "outcome")
    return parameters.choice_of(form, "outcome", ("succeeded", "failed")) == "succeeded"


def settle(context: Context, intent: JsonObject, *, succeeded: bool) -> ApiResult:
    """End a bank debit that is processing."""
    if intent["status"] != "processing":
        raise invalid_request(f"This PaymentIntent is {intent['status']}, not processing.")
    method, _ = _method(context, intent)
    charge = context.account.find("charge", intent["latest_charge"])
    if charge is None:
        raise missing("charge", str(intent["latest_charge"]), "charge", 400)
    if succeeded:
        _succeed(context, intent, charge, None)
    else:
        returned = banks.DEBIT_RETURNED
        _refuse(context, charge, returned)
        _fail(context, intent, _error(returned.code, returned.message, method))
    return ApiResult(status=200, body=intent)


def _method(context: Context, intent: JsonObject) -> tuple[JsonObject, str]:
    """Return the intent's payment method, and the name of the test method it was made of."""
    method_id = str(intent["payment_method"])
    method = context.account.find("payment_method", method_id)
    name = context.account.link("payment_method", method_id)
    if method is None or name not in {*TEST_CARDS, banks.PROCESSING}:
        raise missing("PaymentMethod", method_id, "payment_method", 400)
    return method, str(name)


def _charged(context: Context, intent: JsonObject, method: JsonObject, card: Card) -> JsonObject:
    details = payment_method_details(card, intent["amount"], context.now)
    return _pending(context, intent, method, details)


def _pending(
    context: Context, intent: JsonObject, method: JsonObject, details: JsonObject
) -> JsonObject:
    charge = charges.new_charge(intent, method, details, context.now)
    context.account.add(charge)
    intent |= {"latest_charge": charge["id"], "next_action": None}
    return charge


def _debited(context: Context, intent: JsonObject, method: JsonObject) -> None:
    charge = _pending(context, intent, method, banks.payment_method_details())
    intent |= {"last_payment_error": None, "status": "processing"}
    context.account.replace(intent)
    emit(context, "charge.pending", charge)
    emit(context, "payment_intent.processing", intent)


def _await_authentication(context: Context, intent: JsonObject, attempt: Attempt) -> None:
    source = "src_1" + random_text(23)
    page = f"{context.url}{AUTHENTICATIONS}/{context.account.name}/{intent['id']}/{source}"
    action: JsonObject = {
        "redirect_to_url": {"return_url": attempt.return_url, "url": page},
        "type": "redirect_to_url",
    }
    if attempt.return_url is None:
        sdk = {"source": source, "stripe_js": page, "type": "three_d_secure_redirect"}
        action = {"type": "use_stripe_sdk", "use_stripe_sdk": sdk}
    intent |= {"next_action": action, "status": "requires_action"}
    context.account.replace(intent)
    emit(context, "payment_intent.requires_action", intent)


def _succeed(context: Context, intent: JsonObject, charge: JsonObject, card: Card | None) -> None:
    """Take the money: book it, transfer the destination's share, and have it disputed."""
    charge |= charges.succeeded(charge)
    is_available = card is not None and card.is_available
    context.account.move(
        charge["amount"], charge["currency"], is_available=is_available, source=charge["id"]
    )
    if charge["transfer_data"] is not None:
        charge["transfer"] = transfer_of(context, charge, is_available=is_available)["id"]
    intent |= {
        "amount_received": intent["amount"],
        "last_payment_error": None,
        "next_action": None,
        "status": "succeeded",
    }
    context.account.replace(charge)
    context.account.replace(intent)
    emit(context, "charge.succeeded", charge)
    emit(context, "payment_intent.succeeded", intent)
    if card is not None and card.dispute is not None:
        contest(context, charge, card)


def _error(code: str, message: str, method: JsonObject) -> JsonObject:
    return error_fields("invalid_request_error", message, code=code, payment_method=method)


def _refuse(context: Context, charge: JsonObject, decline: Decline) -> None:
    charge |= charges.failed(charge, decline)
    context.account.replace(charge)
    emit(context, "charge.failed", charge)


def _fail(context: Context, intent: JsonObject, error: JsonObject) -> None:
    intent |= {
        "last_payment_error": error,
        "next_action": None,
        "payment_method": None,
        "status": "requires_payment_method",
    }
    context.account.replace(intent)
    emit(context, "payment_intent.payment_failed", intent)


def _decline(card: Card, attempt: Attempt) -> Decline | None:
    if card.needs_authentication and attempt.off_session:
        return AUTHENTICATION_REQUIRED
    if card.needs_authentication and attempt.error_on_requires_action:
        return AUTHENTICATION_NOT_HANDLED
    return card.decline
