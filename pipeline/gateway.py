"""Stripe: one payment under one key, in test mode or at the local counterpart, by the same code."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import stripe
from django.conf import settings

from nanovm_core.messages import Scalar
from pipeline.errors import OutcomeUnknownError, PermanentError, TransientError

LOOK_BACK_S = 300  # the two clocks may differ by this much (DESIGN.md, "Effects")
KEY_LIFE_MS = 24 * 3_600_000  # Stripe forgets an idempotency key after this
TIMEOUT_S = 20
API_VERSION = "2026-08-26.dahlia"  # the version whose shapes the counterpart answers with
# Stripe counts these in other units than ISO 4217 does (its documentation, "Special cases").
UNITS: Mapping[str, Fraction] = {
    "ISK": Fraction(100),
    "UGX": Fraction(100),
    "MGA": Fraction(1, 100),
}
THREE_DECIMALS = ("BHD", "JOD", "KWD", "OMR", "TND")  # Stripe takes them rounded to ten
CANNOT_TELL = "Stripe did not say whether the payment happened; look at its dashboard, then decide."


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One authorized payment: what is sent, and nothing personal in it."""

    key: str
    run: str
    code: str
    amount_minor: int
    currency: str
    payment_method: str
    intent_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """What Stripe says of a payment that succeeded."""

    id: str
    status: str


@lru_cache(maxsize=4)
def client(key: str, api_base: str | None) -> stripe.StripeClient:
    """A client for this key: real test mode, or the counterpart at ``api_base``."""
    http = stripe.RequestsClient(timeout=TIMEOUT_S)
    elsewhere: dict[str, Any] = {"base_addresses": {"api": api_base}} if api_base else {}
    return stripe.StripeClient(
        key, http_client=http, max_network_retries=0, stripe_version=API_VERSION, **elsewhere
    )


def configured() -> stripe.StripeClient:
    """The client that the settings name."""
    return client(settings.STRIPE["key"], settings.STRIPE["api_base"])


def stripe_amount(amount_minor: int, currency: str) -> int:
    """The amount as Stripe counts it, exactly.

    Raises:
        PermanentError: STR-003, where Stripe has no unit that small; nothing is rounded.
    """
    amount = amount_minor * UNITS.get(currency, Fraction(1))
    if amount.denominator != 1 or (currency in THREE_DECIMALS and amount % 10):
        text = f"Stripe cannot take this amount of {currency} exactly; nothing was paid."
        raise PermanentError("STR-003", text)
    return int(amount)


def pay(charge: Charge, *, begun_before: bool, at_ms: int) -> Payment:
    """Make the payment, or find it where an earlier try made it.

    One POST with ``confirm=true`` under the derived key. After a try whose outcome nobody saw,
    Stripe's own list is asked first; only the identical request is ever sent again.

    Raises:
        PermanentError: STR-001 to STR-003, nothing was paid.
        TransientError: Stripe could not be reached or asks to come again; same key, later.
        OutcomeUnknownError: STR-004 or STR-005; a person decides.
    """
    if begun_before:
        found = _find(charge)
        if found is not None:
            return _checked(charge, found)
        if at_ms - charge.intent_ms >= KEY_LIFE_MS:
            raise OutcomeUnknownError("STR-004", CANNOT_TELL)
    return _checked(charge, _post(charge))


def _post(charge: Charge) -> stripe.PaymentIntent:
    params = {
        "amount": stripe_amount(charge.amount_minor, charge.currency),
        "currency": charge.currency.lower(),
        "confirm": True,
        "payment_method": charge.payment_method,
        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        "metadata": {"run": charge.run, "code": charge.code, "key": charge.key},
    }
    try:
        return configured().v1.payment_intents.create(
            params,  # type: ignore[arg-type]
            {"idempotency_key": charge.key},
        )
    except stripe.CardError as error:
        raise _declined(error) from error
    except (stripe.APIConnectionError, stripe.RateLimitError) as error:
        raise TransientError("STR-004", "Stripe could not be reached; trying again.") from error
    except stripe.InvalidRequestError as error:
        text = f"Stripe refused the request ({error.code or error.http_status}); nothing was paid."
        raise PermanentError("STR-003", text) from error
    except (stripe.AuthenticationError, stripe.PermissionError) as error:
        raise PermanentError("STR-003", "Stripe refused the key; nothing was paid.") from error
    except stripe.StripeError as error:
        if error.http_status == 409:
            raise TransientError("STR-004", "Another request holds this key.") from error
        return _after_error(charge, error)


def _after_error(charge: Charge, error: stripe.StripeError) -> stripe.PaymentIntent:
    """After a 500, which may be a replayed one: look once more, then a person decides."""
    found = _find(charge)
    if found is None:
        raise OutcomeUnknownError("STR-004", CANNOT_TELL) from error
    return found


def _find(charge: Charge) -> stripe.PaymentIntent | None:
    """The payment of this key in Stripe's own list, all pages of it."""
    since = charge.intent_ms // 1000 - LOOK_BACK_S
    try:
        page = configured().v1.payment_intents.list({"created": {"gte": since}, "limit": 100})
        for intent in page.auto_paging_iter():
            if _metadata(intent).get("key") == charge.key:
                return intent
    except stripe.StripeError as error:
        raise TransientError("STR-004", "Stripe's list could not be read; trying again.") from error
    return None


def _checked(charge: Charge, intent: stripe.PaymentIntent) -> Payment:
    """A payment is one only if it came back as it was authorized."""
    amount = stripe_amount(charge.amount_minor, charge.currency)
    sent = (amount, charge.currency.lower(), charge.run)
    got = (intent.amount, intent.currency, _metadata(intent).get("run"))
    if sent != got:
        text = "Stripe's answer is not the payment that was authorized; compare both, then decide."
        raise OutcomeUnknownError("STR-005", text)
    if intent.status == "succeeded":
        return Payment(id=intent.id, status=intent.status)
    if intent.status == "processing":
        raise TransientError("STR-004", "Stripe is still processing the payment.")
    if intent.status == "requires_action":
        raise PermanentError("STR-002", "The card asks for its owner; nothing was paid.")
    raise PermanentError("STR-001", f"The payment ended as {intent.status}; nothing was paid.")


def _metadata(intent: stripe.PaymentIntent) -> Mapping[str, Scalar]:
    return dict(intent.metadata.to_dict()) if intent.metadata else {}


def _declined(error: stripe.CardError) -> PermanentError:
    if error.code == "authentication_required":
        return PermanentError("STR-002", "The card asks for its owner; nothing was paid.")
    cause = getattr(error.error, "decline_code", None) or error.code or "declined"
    return PermanentError("STR-001", f"The card was declined ({cause}); nothing was paid.")
