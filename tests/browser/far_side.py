"""What the Stripe counterpart itself says was paid, asked by its published API."""

from pipeline.steps.charge import gateway
from tests.house.demo import Demo

KEY = "sk_test_nanovm_demo"


def payments(app: Demo, code: str) -> list[tuple[int, str, str]]:
    """Amount, currency and status of every PaymentIntent that names this run."""
    far = gateway.client(KEY, app.env["STRIPE_API_BASE"], 20).v1
    return [
        (intent.amount, intent.currency, intent.status)
        for intent in far.payment_intents.list({"limit": 100}).auto_paging_iter()
        if intent.metadata.to_dict().get("code") == code
    ]
