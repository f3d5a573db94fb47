"""Start the local Stripe counterpart, and stop it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from engine.ops.processes import Child, announced, running, serves, spawn

SANDBOX_ACCOUNTS = (
    "sk_test_nanovm_demo=acct_demo",
    "sk_test_nanovm_control=acct_control",
    "sk_test_nanovm_careful=acct_careful",
)


def spawn_stripe_counterpart(data_dir: Path, *options: str) -> Child:
    """The local Stripe counterpart, with an account for the runtime and one for each baseline."""
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
