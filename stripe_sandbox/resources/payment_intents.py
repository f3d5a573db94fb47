"""PaymentIntents: what creating, updating, confirming and canceling one does."""

from stripe_sandbox.context import Context
from stripe_sandbox.currencies import check_amount, currency_named
from stripe_sandbox.errors import ApiResult, JsonObject, missing, unexpected_state
from stripe_sandbox.identifiers import client_secret, payment_intent_id
from stripe_sandbox.parameters import merged_metadata
from stripe_sandbox.resources import accounts, banks
from stripe_sandbox.resources import intent_requests as requests
from stripe_sandbox.resources.attempts import attempted
from stripe_sandbox.resources.cards import TEST_CARDS, new_payment_method
from stripe_sandbox.resources.events import emit
from stripe_sandbox.resources.expansion import expanded
from stripe_sandbox.store import Account

_OPEN = ("requires_payment_method", "requires_confirmation", "requires_action")
_CANCELABLE = (
    *("requires_payment_method", "requires_capture", "requires_confirmation"),
    *("requires_action", "processing"),
)


def create(context: Context, creation: requests.Creation) -> ApiResult:
    """Make a PaymentIntent, and attempt the payment at once where ``confirm`` says so.

    A decline is an answer, not an exception: the intent stays, to be tried again.
    """
    account = context.account
    _require_accounts(context, creation)
    method = _method(context, creation.attempt.payment_method)
    intent = _new_intent(context, creation, method)
    if creation.confirm and method is None:
        raise _without_method(None)
    account.add(intent)
    emit(context, "payment_intent.created", intent)
    if creation.confirm:
        return attempted(context, intent, creation.attempt, creation.changes.expand)
    return ApiResult(status=200, body=expanded(account, intent, creation.changes.expand))


def update(context: Context, intent_id: str, change: requests.Update) -> ApiResult:
    """Change a PaymentIntent; what it takes and from where only while it is open."""
    intent = find_intent(context.account, intent_id)
    for name in ("amount", "currency", "payment_method"):
        field = "amount_minor" if name == "amount" else name
        if getattr(change, field) is not None and intent["status"] not in _OPEN:
            raise _closed(intent, name)
    intent = _described(intent, change.changes)
    if change.amount_minor is not None or change.currency is not None:
        intent = _repriced(intent, change)
    if change.payment_method == "":
        intent |= {"payment_method": None, "status": "requires_payment_method"}
    elif change.payment_method is not None:
        method = _method(context, change.payment_method)
        intent |= {"payment_method": method, "status": "requires_confirmation"}
    if intent["status"] != "requires_action":
        intent["next_action"] = None
    context.account.replace(intent)
    return ApiResult(status=200, body=expanded(context.account, intent, change.changes.expand))


def confirm(context: Context, intent_id: str, confirmation: requests.Confirmation) -> ApiResult:
    """Attempt the payment of an open PaymentIntent."""
    intent = find_intent(context.account, intent_id)
    attempt = confirmation.attempt
    if intent["status"] == "succeeded":
        raise unexpected_state(
            "You cannot confirm this PaymentIntent because it has already succeeded after being "
            "previously confirmed.",
            intent,
        )
    if intent["status"] not in _OPEN:
        raise _unconfirmable(intent, attempt)
    method = _method(context, attempt.payment_method) or intent["payment_method"]
    if method is None:
        raise _without_method(intent)
    requests.require_return_url(intent["automatic_payment_methods"], attempt)
    intent["payment_method"] = method
    if confirmation.receipt_email is not None:
        intent["receipt_email"] = confirmation.receipt_email or None
    return attempted(context, intent, attempt, confirmation.expand)


def cancel(context: Context, intent_id: str, cancellation: requests.Cancellation) -> ApiResult:
    """Cancel a PaymentIntent that has taken no money."""
    intent = find_intent(context.account, intent_id)
    if intent["status"] not in _CANCELABLE:
        raise unexpected_state(
            f"You cannot cancel this PaymentIntent because it has a status of {intent['status']}. "
            "Only a PaymentIntent with one of the following statuses may be canceled: "
            f"{', '.join(_CANCELABLE)}.",
            intent,
        )
    if intent["status"] == "processing":
        _cancel_debit(context, intent)
    intent |= {
        "canceled_at": context.now,
        "cancellation_reason": cancellation.reason,
        "next_action": None,
        "status": "canceled",
    }
    context.account.replace(intent)
    emit(context, "payment_intent.canceled", intent)
    return ApiResult(status=200, body=expanded(context.account, intent, cancellation.expand))


def find_intent(account: Account, intent_id: str) -> JsonObject:
    """Return the PaymentIntent that a path names, or raise Stripe's 404."""
    intent = account.find("payment_intent", intent_id)
    if intent is None:
        raise missing("payment_intent", intent_id, "intent", 404)
    return intent


def _cancel_debit(context: Context, intent: JsonObject) -> None:
    charge = context.account.find("charge", intent["latest_charge"])
    if charge is not None:
        context.account.replace({**charge, "status": "failed"})


def _require_accounts(context: Context, creation: requests.Creation) -> None:
    """Raise ApiError unless the accounts that the intent names are connected."""
    if creation.transfer_data is not None:
        destination = creation.transfer_data["destination"]
        accounts.require_destination(context, destination, "transfer_data[destination]")
    on_behalf_of = creation.on_behalf_of
    if on_behalf_of is not None and context.account.find("account", on_behalf_of) is None:
        raise missing("account", on_behalf_of, "on_behalf_of", 400)


def _method(context: Context, name: str | None) -> str | None:
    """Return the id of the PaymentMethod that ``name`` names; a test card gets a new one."""
    if not name:
        return None
    card = TEST_CARDS.get(name)
    if card is not None or name == banks.PROCESSING:
        now = context.now
        method = banks.new_payment_method(now) if card is None else new_payment_method(card, now)
        context.account.add(method, link=name)
        return str(method["id"])
    if context.account.find("payment_method", name) is None:
        raise missing("PaymentMethod", name, "payment_method", 400)
    return name


def _new_intent(context: Context, creation: requests.Creation, method: str | None) -> JsonObject:
    intent_id = payment_intent_id()
    intent: JsonObject = {
        "id": intent_id,
        "object": "payment_intent",
        "amount": creation.amount_minor,
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": 0,
        "automatic_payment_methods": creation.automatic_payment_methods,
        "capture_method": creation.capture_method,
        "client_secret": client_secret(intent_id),
        "confirmation_method": creation.confirmation_method,
        "created": context.now,
        "currency": creation.currency.code,
        "livemode": False,
        "metadata": {},
        "payment_method": method,
        "on_behalf_of": creation.on_behalf_of,
        "payment_method_options": {
            name: _METHOD_OPTIONS[name] for name in creation.payment_method_types
        },
        "payment_method_types": list(creation.payment_method_types),
        "status": "requires_payment_method" if method is None else "requires_confirmation",
        "transfer_data": creation.transfer_data,
        "transfer_group": creation.transfer_group,
    }
    return _described({**dict.fromkeys(_NULL_AT_FIRST), **intent}, creation.changes)


_METHOD_OPTIONS: dict[str, JsonObject] = {
    "card": {
        **dict.fromkeys(("installments", "mandate_options", "network")),
        "request_three_d_secure": "automatic",
    },
    "us_bank_account": {"verification_method": "automatic"},
}
_NULL_AT_FIRST = (
    *("id", "object", "amount", "amount_capturable", "amount_details", "amount_received"),
    *("application", "application_fee_amount", "automatic_payment_methods", "canceled_at"),
    *("cancellation_reason", "capture_method", "client_secret", "confirmation_method", "created"),
    *("currency", "customer", "customer_account", "description", "last_payment_error"),
    *("latest_charge", "livemode", "metadata", "next_action", "on_behalf_of", "payment_method"),
    *("payment_method_configuration_details", "payment_method_options", "payment_method_types"),
    *("processing", "receipt_email", "review", "setup_future_usage", "shipping"),
    *("statement_descriptor", "statement_descriptor_suffix", "status", "transfer_data"),
    "transfer_group",
)


def _described(intent: JsonObject, changes: requests.Changes) -> JsonObject:
    """Return the intent with the descriptive fields changed; an empty text unsets."""
    texts = {
        "description": changes.description,
        "receipt_email": changes.receipt_email,
        "statement_descriptor_suffix": changes.statement_descriptor_suffix,
    }
    changed = {name: text or None for name, text in texts.items() if text is not None}
    return {**intent, **changed, "metadata": merged_metadata(intent["metadata"], changes.metadata)}


def _repriced(intent: JsonObject, change: requests.Update) -> JsonObject:
    currency = change.currency or currency_named(intent["currency"])
    amount_minor = change.amount_minor or intent["amount"]
    check_amount(amount_minor, currency)
    requests.check_transfer(intent["transfer_data"], amount_minor)
    status = "requires_confirmation" if intent["payment_method"] else "requires_payment_method"
    return {**intent, "amount": amount_minor, "currency": currency.code, "status": status}


def _without_method(intent: JsonObject | None) -> Exception:
    return unexpected_state(
        "You cannot confirm this PaymentIntent because it's missing a payment method. You can "
        "either update the PaymentIntent with a payment method and then confirm it again, or "
        "confirm it again directly with a payment method or ConfirmationToken.",
        intent,
    )


def _unconfirmable(intent: JsonObject, attempt: requests.Attempt) -> Exception:
    if attempt.payment_method is not None:
        return _closed(intent, "payment_method")
    return unexpected_state(
        f"You cannot confirm this PaymentIntent because it has a status of {intent['status']}. "
        "Only a PaymentIntent with one of the following statuses may be confirmed: "
        "requires_confirmation, requires_action.",
        intent,
    )


def _closed(intent: JsonObject, name: str) -> Exception:
    return unexpected_state(
        f"This PaymentIntent's {name} could not be updated because it has a status of "
        f"{intent['status']}. You may only update the {name} of a PaymentIntent with one of the "
        f"following statuses: {', '.join(_OPEN)}.",
        intent,
        param=name,
    )
