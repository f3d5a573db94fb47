"""What a card's owner and a bank do at the counterpart."""

from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import stripe
from django.conf import settings

from engine.models import Run
from pipeline.steps.charge import gateway
from tests.kit.house import House, invoice, payments

THREE_D_SECURE = "pm_card_threeDSecure2Required"
DEBIT = "pm_usBankAccount_processing"
DOLLARS = invoice("Total  USD 120.00")


def asked(house: House, method: str = THREE_D_SECURE) -> Run:
    """A run whose payment waits for the card's owner, or for a bank."""
    return house.run(DOLLARS, payment_method=method)


def far(run: Run) -> Any:
    """Stripe's record of the run's one payment."""
    (intent,) = payments(run)
    return intent


def press(run: Run, outcome: str) -> None:
    """Press a button of the page that completes the payment: complete, fail."""
    _posted(gateway.page_of(far(run).to_dict()), outcome)


def settle(run: Run, outcome: str) -> None:
    """End a bank debit: succeeded, failed."""
    own = f"/counterpart/payment_intents/{far(run).id}/settle"
    _posted(f"{settings.STRIPE['api_base']}{own}", outcome)


def sdk() -> stripe.StripeClient:
    """The client that the application itself uses."""
    return gateway.configured()


def _posted(url: str, outcome: str) -> None:
    headers = {"Authorization": f"Bearer {settings.STRIPE['key']}"}
    request = Request(url, urlencode({"outcome": outcome}).encode(), headers)
    with urlopen(request, timeout=20) as answer:
        assert answer.status == 200
