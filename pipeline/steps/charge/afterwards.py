"""What Stripe says of a payment after it was made: refunds and disputes. They change no result."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from uuid import UUID

import stripe

from pipeline.errors import TransientError
from pipeline.steps.charge.gateway import configured
from pipeline.steps.currencies import STRIPE_UNITS

AWAY = "Stripe's record could not be read; trying again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """How much of a payment was refunded, and the status of its newest dispute; empty: none."""

    refunded_minor: int = 0
    dispute: str = ""


def run_of(payment: str) -> str:
    """The run that a payment names; empty where it names none, or there is no such payment.

    Raises:
        TransientError: Stripe did not answer.
    """
    try:
        intent = configured().v1.payment_intents.retrieve(payment).to_dict()
    except stripe.InvalidRequestError:
        return ""
    except stripe.StripeError as error:
        raise TransientError("STR-007", AWAY) from error
    return str((intent.get("metadata") or {}).get("run") or "")


def read(payment: str, run: UUID, currency: str) -> Afterwards | None:
    """What Stripe's own record says of a run's payment; None where that is not the run's.

    Raises:
        TransientError: Stripe did not answer.
    """
    params: Any = {"expand": ["latest_charge"]}
    try:
        intent = configured().v1.payment_intents.retrieve(payment, params).to_dict()
        named = (intent.get("metadata") or {}).get("run")
        charge = intent.get("latest_charge")
        if named != str(run) or not isinstance(charge, dict):
            return None
        disputes = configured().v1.disputes.list({"payment_intent": payment, "limit": 1}).data
    except stripe.InvalidRequestError:
        return None
    except stripe.StripeError as error:
        raise TransientError("STR-007", AWAY) from error
    refunded = Fraction(int(charge.get("amount_refunded") or 0))
    unit = STRIPE_UNITS.get(currency, Fraction(1))
    return Afterwards(
        refunded_minor=int(refunded / unit), dispute=str(disputes[0].status) if disputes else ""
    )
