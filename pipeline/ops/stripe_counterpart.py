"""Start the local Stripe counterpart, register this application's webhook endpoint, stop it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from engine.ops.processes import Child, ProcessError, announced, running, serves, spawn

ENDPOINT_PATH = "/webhooks/stripe/"
ENDPOINTS = "/v1/webhook_endpoints"
# Others are never looked at, or come with one of these (see MAKING of ``far_side``).
EVENTS = (
    *("charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.failed"),
    *("charge.refunded", "refund.created", "payment_intent.canceled"),
    *("payment_intent.payment_failed", "payment_intent.processing"),
    *("payment_intent.requires_action", "payment_intent.succeeded"),
)
ANSWER_SECONDS_MAX = 10
SANDBOX_ACCOUNTS = (
    "sk_test_nanovm_demo=acct_demo",
    "sk_test_nanovm_control=acct_control",
    "sk_test_nanovm_careful=acct_careful",
    "sk_test_nanovm_restored=acct_restored",
)


def spawn_stripe_counterpart(data_dir: Path, *options: str) -> Child:
    """The local Stripe counterpart, with the runtime's account and those of attacks."""
    command = [sys.executable, "-m", "stripe_sandbox", "--port", "0", "--die-with-parent"]
    command += ["--database", str(data_dir / "stripe_sandbox.sqlite3")]
    for account in SANDBOX_ACCOUNTS:
        command += ["--key", account]
    command += options
    child = spawn("stripe_sandbox", "the local Stripe counterpart", command, data_dir)

    def says_where() -> bool:
        child.url = announced(child.written()).get("url", "")
        return bool(child.url) and serves(urlsplit(child.url).port or 0)

    child.answers = says_where
    return child


@contextmanager
def stripe_counterpart(data_dir: Path, *options: str) -> Iterator[str]:
    """The address of a Stripe counterpart that runs for the length of the block."""
    with running(spawn_stripe_counterpart(data_dir, *options)) as child:
        yield child.url


@contextmanager
def stripe_in_reach() -> Iterator[None]:
    """Start the local Stripe counterpart for the time of a command, where none is configured."""
    if not settings.STRIPE["local"] or settings.STRIPE["api_base"] is not None:
        yield
        return
    with stripe_counterpart(settings.NANOVM_DATA) as url:
        settings.STRIPE["api_base"] = url
        try:
            yield
        finally:
            settings.STRIPE["api_base"] = None


def register_endpoint(api_base: str, key: str, here: str) -> str:
    """Register ``here`` in the place of what earlier starts registered; the signing secret.

    It asks without Stripe's client library, which is slow to load.

    Raises:
        ProcessError: the counterpart refused.
    """
    import httpx2  # takes 80 ms, and most commands register nothing

    asked = {"url": f"{here}{ENDPOINT_PATH}", "enabled_events[]": EVENTS}
    try:
        with httpx2.Client(
            base_url=api_base,
            auth=(key, ""),
            timeout=ANSWER_SECONDS_MAX,
            trust_env=False,
            event_hooks={"response": [httpx2.Response.raise_for_status]},
        ) as counterpart:
            for endpoint in counterpart.get(ENDPOINTS, params={"limit": 100}).json()["data"]:
                if str(endpoint["url"]).endswith(ENDPOINT_PATH):
                    counterpart.delete(f"{ENDPOINTS}/{endpoint['id']}")
            return str(counterpart.post(ENDPOINTS, data=asked).json()["secret"])
    except (httpx2.HTTPError, KeyError, ValueError) as error:
        why = f"took no webhook endpoint ({type(error).__name__}): see its log, and start again."
        raise ProcessError(f"The local Stripe counterpart {why}") from error
