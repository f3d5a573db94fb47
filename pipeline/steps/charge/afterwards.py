"""What Stripe says of a payment after its run: refunds, disputes, one that no result has.

Each question raises TransientError (STR-007) where Stripe does not answer.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from uuid import UUID

import stripe

from engine.errors import OutcomeUnknownError, TransientError
from engine.store import sql
from pipeline.steps.charge.gateway import configured, is_unpaid, listed, metadata
from reader.currencies import STRIPE_UNITS

# In the place of a dispute's status: Stripe has a payment of a run that recorded none, or its list
# cannot be read to its end.
OF_NO_RESULT = UNEXPECTED, UNCLEAR = "unexpected payment", "unclear payment"
CHECKED = "checked"  # by a person, after one of these
UNCHECKED = (  # the runs with such a payment that no person has checked
    f"SELECT run_id FROM pipeline_farside f WHERE dispute IN {OF_NO_RESULT} AND id ="  # noqa: S608
    " (SELECT MAX(id) FROM pipeline_farside n WHERE n.run_id = f.run_id)"
)
AWAY = "Stripe's record could not be read; trying again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """How much of a payment was refunded, and the status of its newest dispute; empty: none."""

    refunded_minor: int = 0
    dispute: str = ""
    received_minor: int = 0  # by a payment that is unexpected


def is_unchecked(run: UUID) -> bool:
    """Whether a run has an unexpected or unclear payment that no person has checked."""
    return bool(sql.execute(f"{UNCHECKED} AND run_id = %s", (sql.key(run),)))


def run_of(payment: str) -> str:
    """The run that a payment names; empty where it names none, or there is no such payment."""
    try:
        intent = configured().v1.payment_intents.retrieve(payment).to_dict()
    except stripe.InvalidRequestError:
        return ""
    except stripe.StripeError as error:
        raise TransientError("STR-007", AWAY) from error
    return str(metadata(intent).get("run") or "")


def payment_record(payment: str, run: UUID, currency: str) -> Afterwards | None:
    """What Stripe's own record says of a run's payment; None where that is not the run's."""
    params: Any = {"expand": ["latest_charge"]}
    try:
        intent = configured().v1.payment_intents.retrieve(payment, params).to_dict()
        charge = intent.get("latest_charge")
        if metadata(intent).get("run") != str(run) or not isinstance(charge, dict):
            return None
        disputes = configured().v1.disputes.list({"payment_intent": payment, "limit": 1}).data
    except stripe.InvalidRequestError:
        return None
    except stripe.StripeError as error:
        raise TransientError("STR-007", AWAY) from error
    return Afterwards(
        refunded_minor=minor(charge.get("amount_refunded"), currency),
        dispute=str(disputes[0].status) if disputes else "",
    )


def unexpected(run: UUID, since_ms: int, currency: str) -> Afterwards | None:
    """A payment that Stripe has of a run which recorded none; None where it has none."""
    try:
        for intent in listed("payment_intents", since_ms):
            if metadata(intent).get("run") == str(run) and not is_unpaid(intent):
                received = minor(intent.get("amount_received"), currency)
                return Afterwards(dispute=UNEXPECTED, received_minor=received)
    except OutcomeUnknownError:
        return Afterwards(dispute=UNCLEAR)
    except stripe.StripeError as error:
        raise TransientError("STR-007", AWAY) from error
    return None


def minor(amount: Any, currency: str) -> int:
    """An amount as Stripe counts it, in the currency's minor units."""
    return int(Fraction(int(amount or 0)) / STRIPE_UNITS.get(currency, Fraction(1)))
