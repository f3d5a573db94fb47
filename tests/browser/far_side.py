"""What the Stripe counterpart itself says was paid, asked by its published API."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.house.demo import Demo

KEY = "sk_test_nanovm_demo"
PAGE = 100


def payments(app: Demo, code: str) -> list[tuple[int, str, str]]:
    """Amount, currency and status of every PaymentIntent that names this run."""
    base = app.env["STRIPE_API_BASE"]
    return [
        (intent["amount"], intent["currency"], intent["status"])
        for intent in _all(base)
        if intent["metadata"].get("code") == code
    ]


def _all(base: str) -> Iterator[dict[str, Any]]:
    after: dict[str, str] = {}
    while True:
        query = urllib.parse.urlencode({"limit": str(PAGE), **after})
        request = urllib.request.Request(  # our own counterpart, by plain HTTP on loopback
            f"{base}/v1/payment_intents?{query}", headers={"Authorization": f"Bearer {KEY}"}
        )
        with urllib.request.urlopen(request) as answer:
            listed = json.load(answer)
        yield from listed["data"]
        if not listed["has_more"]:
            return
        after = {"starting_after": listed["data"][-1]["id"]}
