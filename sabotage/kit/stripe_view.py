"""Stripe's own records: every payment for a run, by any caller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from engine.errors import OutcomeUnknownError
from engine.models import Run

UNREACHABLE = "far side not reachable"
SUCCEEDED, PAYOUT = "succeeded", "payout"
KINDS = "payment_intents", "payouts"
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

    api_base, timeout_s = settings.STRIPE["api_base"], gateway.TIMEOUT_S
    try:
        of = gateway.client(key or settings.STRIPE["key"], api_base, timeout_s)
        paid, sent = ([*gateway.listed(each, since_ms, of)] for each in KINDS)
    except (stripe.StripeError, OutcomeUnknownError):
        return StripeView(reachable=False)
    made = [_paid(each) for each in paid if gateway.metadata(each).get("run") == run_id]
    made += [_paid_out(each) for each in sent if gateway.metadata(each).get("run") == run_id]
    return StripeView(reachable=True, payments=tuple(made))


def _paid(intent: Mapping[str, Any]) -> StripePayment:
    transfer = intent.get("transfer_data") or {}
    return _made(intent, str(intent["status"]), account=str(transfer.get("destination") or ""))


def _paid_out(payout: Mapping[str, Any]) -> StripePayment:
    status = str(payout["status"])
    return _made(payout, SUCCEEDED if status in LEFT else status, kind=PAYOUT)


def _made(listed: Mapping[str, Any], status: str, **more: str) -> StripePayment:
    key = str((listed.get("metadata") or {}).get("key", ""))
    amount_minor, currency = listed["amount"], listed["currency"].upper()
    return StripePayment(
        amount_minor=amount_minor, currency=currency, status=status, key=key, **more
    )
