"""Stripe's test payment methods: the card of each name, and the outcome of a charge."""

import hashlib
import time
from dataclasses import dataclass

from stripe_sandbox.errors import JsonObject, error_fields
from stripe_sandbox.identifiers import object_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    """Why a card is refused, in the words of Stripe's error object."""

    code: str
    decline_code: str
    message: str
    advice_code: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A test card: ``decline`` None and no authentication means that its charges succeed.

    ``dispute`` is the reason for which each charge that succeeded is disputed; an inquiry
    takes no money back.
    """

    last4: str
    brand: str = "visa"
    funding: str = "credit"
    decline: Decline | None = None
    needs_authentication: bool = False
    dispute: str | None = None
    is_inquiry: bool = False
    is_available: bool = False


DECLINED = "Your card was declined."
AUTHENTICATION_REQUIRED = Decline(
    code="authentication_required",
    decline_code="authentication_required",
    message=DECLINED + " This transaction requires authentication.",
)
AUTHENTICATION_NOT_HANDLED = Decline(
    code="authentication_required",
    decline_code="authentication_not_handled",
    message=(
        "This payment required an authentication action to complete, but "
        "`error_on_requires_action` was set. When you're ready, you can upgrade your integration "
        "to handle actions at https://stripe.com/docs/payments/payment-intents/"
        "upgrade-to-handle-actions."
    ),
)


def _declined(decline_code: str, advice_code: str | None, message: str = DECLINED) -> Decline:
    return Decline(
        code="card_declined", decline_code=decline_code, message=message, advice_code=advice_code
    )


def _failed(code: str, advice_code: str, message: str, param: str | None = None) -> Decline:
    return Decline(
        code=code, decline_code=code, message=message, advice_code=advice_code, param=param
    )


_DECLINES = {
    "chargeDeclined": ("0002", _declined("generic_decline", "try_again_later")),
    "chargeDeclinedInsufficientFunds": (
        "9995",
        _declined("insufficient_funds", "try_again_later", "Your card has insufficient funds."),
    ),
    "chargeDeclinedLostCard": ("9987", _declined("lost_card", "do_not_try_again")),
    "chargeDeclinedStolenCard": ("9979", _declined("stolen_card", "do_not_try_again")),
    "chargeDeclinedFraudulent": ("0019", _declined("fraudulent", None)),
    "chargeDeclinedVelocityLimitExceeded": (
        "6975",
        _declined(
            "card_velocity_exceeded",
            "try_again_later",
            "Your card was declined for making repeated attempts too frequently or exceeding its "
            "amount limit.",
        ),
    ),
    "chargeDeclinedExpiredCard": (
        "0069",
        _failed("expired_card", "confirm_card_data", "Your card has expired.", "exp_month"),
    ),
    "chargeDeclinedIncorrectCvc": (
        "0127",
        _failed(
            "incorrect_cvc", "confirm_card_data", "Your card's security code is incorrect.", "cvc"
        ),
    ),
    "chargeDeclinedProcessingError": (
        "0119",
        _failed(
            "processing_error",
            "try_again_later",
            "An error occurred while processing your card. Try again in a little bit.",
        ),
    ),
}

TEST_CARDS: dict[str, Card] = {
    "pm_card_visa": Card(last4="4242"),
    "pm_card_visa_debit": Card(last4="5556", funding="debit"),
    "pm_card_mastercard": Card(last4="4444", brand="mastercard"),
    "pm_card_mastercard_debit": Card(last4="8210", brand="mastercard", funding="debit"),
    "pm_card_mastercard_prepaid": Card(last4="5100", brand="mastercard", funding="prepaid"),
    "pm_card_amex": Card(last4="8431", brand="amex"),
    "pm_card_discover": Card(last4="9424", brand="discover"),
    "pm_card_diners": Card(last4="0004", brand="diners"),
    "pm_card_jcb": Card(last4="0505", brand="jcb"),
    "pm_card_unionpay": Card(last4="0005", brand="unionpay"),
    "pm_card_bypassPending": Card(last4="0077", is_available=True),  # its charges, at once
    "pm_card_authenticationRequired": Card(last4="3184", needs_authentication=True),
    "pm_card_authenticationRequiredOnSetup": Card(last4="3155", needs_authentication=True),
    "pm_card_threeDSecure2Required": Card(last4="3220", needs_authentication=True),
    "pm_card_createDispute": Card(last4="0259", dispute="fraudulent"),
    "pm_card_createDisputeProductNotReceived": Card(last4="2685", dispute="product_not_received"),
    "pm_card_createDisputeInquiry": Card(last4="1976", dispute="fraudulent", is_inquiry=True),
    **{
        prefix + name: Card(last4=last4, decline=decline)
        for name, (last4, decline) in _DECLINES.items()
        for prefix in ("pm_card_", "pm_card_visa_")
    },
}
"""By the name Stripe's documentation gives them; declines also without or with the brand."""


def decline_error(decline: Decline, charge_id: str, payment_method: JsonObject) -> JsonObject:
    """Return the object under ``error`` and ``last_payment_error``, the intent not yet in it."""
    return error_fields(
        "card_error",
        decline.message,
        advice_code=decline.advice_code,
        charge=charge_id,
        code=decline.code,
        decline_code=decline.decline_code,
        param=decline.param,
        payment_method=payment_method,
    )


def new_payment_method(card: Card, now: int) -> JsonObject:
    """Return a PaymentMethod of its own for one use of a test card, as Stripe makes one."""
    return {
        "id": object_id("pm"),
        "object": "payment_method",
        "allow_redisplay": "unspecified",
        "billing_details": empty_billing_details(),
        "card": {
            **_card_facts(card, now),
            "display_brand": card.brand,
            "generated_from": None,
            "networks": {"available": [card.brand], "preferred": None},
            "three_d_secure_usage": {"supported": True},
        },
        "created": now,
        "customer": None,
        "customer_account": None,
        "livemode": False,
        "metadata": {},
        "type": "card",
    }


def payment_method_details(card: Card, amount_minor: int, now: int) -> JsonObject:
    """Return what a charge says about the card it was made on."""
    return {
        "card": {
            **_card_facts(card, now),
            "amount_authorized": None if card.decline else amount_minor,
            "authorization_code": None,
            "extended_authorization": {"status": "disabled"},
            "incremental_authorization": {"status": "unavailable"},
            "installments": None,
            "mandate": None,
            "multicapture": {"status": "unavailable"},
            "network": card.brand,
            "network_token": {"used": False},
            "network_transaction_id": None,
            "overcapture": {"maximum_amount_capturable": amount_minor, "status": "unavailable"},
            "three_d_secure": None,
        },
        "type": "card",
    }


def empty_billing_details() -> JsonObject:
    lines = ("city", "country", "line1", "line2", "postal_code", "state")
    address = dict.fromkeys(lines)
    return {"address": address, "email": None, "name": None, "phone": None, "tax_id": None}


def _card_facts(card: Card, now: int) -> JsonObject:
    checks = dict.fromkeys(("address_line1_check", "address_postal_code_check", "cvc_check"))
    return {
        "brand": card.brand,
        "checks": checks,
        "country": "US",
        "exp_month": 12,
        "exp_year": time.gmtime(now).tm_year + 1,
        "fingerprint": hashlib.sha256(f"{card.brand} {card.last4}".encode()).hexdigest()[:16],
        "funding": card.funding,
        "last4": card.last4,
        "regulated_status": "unregulated",
        "wallet": None,
    }
