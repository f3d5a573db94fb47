"""Stripe's own records: every payment for a run, by any caller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings

from engine.models import Run

if TYPE_CHECKING:
    import stripe

UNREACHABLE = "far side not reachable"
SUCCEEDED, PAYOUT = "succeeded", "payout"
LEFT = ("pending", "in_transit", "paid")  # a payout that took the money out of the balance


@dataclass(frozen=True, slots=True, kw_only=True)
class StripePayment:
    """A PaymentIntent or a payout that bears the run's id, without its own id, which is personal.

    ``account``: the connected account that got it; empty for a plain charge and for a payout. It
    is for comparing only: evidence says whose it is, not which.
    """

    amount_minor: int
    currency: str
    status: str
    key: str
    account: str = field(default="", repr=False)
    kind: str = "payment"  # or PAYOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeView:
    """What was found there. ``reachable`` False: nothing is known, which is not zero."""

    reachable: bool
    payments: tuple[StripePayment, ...] = ()

    @property
    def succeeded(self) -> tuple[StripePayment, ...]:
        return tuple(each for each in self.payments if each.status == SUCCEEDED)

    def in_words(self) -> str:
        """How many payments, in a few words."""
        if not self.reachable:
            return UNREACHABLE
        sums = ", ".join(f"{each.amount_minor} minor {each.currency}" for each in self.succeeded)
        return f"{len(self.succeeded)} succeeded" + (f" ({sums})" if sums else "")

    def as_facts(self) -> dict[str, object]:
        """The records as evidence keeps them."""
        if not self.reachable:
            return {"reachable": False}
        payments = [
            {
                "amount_minor": each.amount_minor,
                "currency": each.currency,
                "status": each.status,
                "key": each.key,
                "kind": each.kind,
            }
            for each in self.payments
        ]
        return {"reachable": True, "succeeded": len(self.succeeded), "payments": payments}


def stripe_view(run: Run) -> StripeView:
    """Every payment and payout of this run since its creation, from all pages of Stripe's lists."""
    return payments_of(str(run.id), run.created_ms)


def is_down() -> bool:
    """Whether the local counterpart is what would be asked, and does not run."""
    return bool(settings.STRIPE["local"] and settings.STRIPE["api_base"] is None)


def payments_of(run_id: str, since_ms: int, key: str = "") -> StripeView:
    """The same for a run that is not in this database, in the account of another key."""
    if is_down():
        return StripeView(reachable=False)  # the counterpart does not run
    import stripe  # half of the time that importing this package would take

    from pipeline.steps.charge import gateway

    since = since_ms // 1000 - gateway.LOOK_BACK_S
    try:
        stripe_client = gateway.client(
            key or settings.STRIPE["key"], settings.STRIPE["api_base"], gateway.TIMEOUT_S
        )
        client, window = stripe_client.v1, {"created": {"gte": since}, "limit": 100}
        paid = client.payment_intents.list(window).auto_paging_iter()  # type: ignore[arg-type]
        sent = client.payouts.list(window).auto_paging_iter()  # type: ignore[arg-type]
        payments = [_paid(each) for each in paid if _metadata(each).get("run") == run_id]
        payments += [_paid_out(each) for each in sent if _metadata(each).get("run") == run_id]
    except stripe.StripeError:
        return StripeView(reachable=False)
    return StripeView(reachable=True, payments=tuple(payments))


def _paid(intent: "stripe.PaymentIntent") -> StripePayment:
    return StripePayment(
        amount_minor=intent.amount,
        currency=intent.currency.upper(),
        status=str(intent.status),
        key=str(_metadata(intent).get("key", "")),
        account=str(intent.transfer_data.destination) if intent.transfer_data else "",
    )


def _paid_out(payout: "stripe.Payout") -> StripePayment:
    return StripePayment(
        amount_minor=payout.amount,
        currency=payout.currency.upper(),
        status=SUCCEEDED if payout.status in LEFT else str(payout.status),
        key=str(_metadata(payout).get("key", "")),
        kind=PAYOUT,
    )


def _metadata(made: "stripe.PaymentIntent | stripe.Payout") -> Mapping[str, object]:
    return dict(made.metadata.to_dict()) if made.metadata else {}
