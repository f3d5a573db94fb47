"""Fixtures: the real counterpart on a temporary database, and two doors to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import stripe

from tests.stripe_sandbox.door import Door, no_check
from tests.stripe_sandbox.sdk import client_of
from tests.stripe_sandbox.server import Server, command, start
from tests.stripe_sandbox.shapes import Shapes, published

SPARE_ACCOUNTS = 100
ALPHA = "sk_test_alpha0001"
BETA = "sk_test_beta0001"
SPARES = [f"sk_test_spare{number:04d}" for number in range(SPARE_ACCOUNTS)]
ACCOUNTS = {key: f"acct_{key.removeprefix('sk_test_')}" for key in [ALPHA, BETA, *SPARES]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A running counterpart and its accounts that no test has used yet."""

    server: Server
    spares: list[str] = field(default_factory=lambda: list(SPARES))

    def door(self, key: str) -> Door:
        """Return the raw door of ``key``; it checks shapes where they are at hand."""
        shapes = published()
        return Door(url=self.server.url, key=key, check=shapes.check if shapes else no_check)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The counterpart, one process and database for the module."""
    folder = tmp_path_factory.mktemp("stripe")
    line = command(database=folder / "stripe.sqlite3", accounts=ACCOUNTS)
    server = start(line, log=folder / "stderr.log")
    yield Sandbox(server=server)
    assert server.terminate() == 0
    assert "Traceback" not in (folder / "stderr.log").read_text()


@pytest.fixture(scope="module")
def door(sandbox: Sandbox) -> Door:
    """The raw door of the first account."""
    return sandbox.door(ALPHA)


@pytest.fixture(scope="module")
def other_door(sandbox: Sandbox) -> Door:
    """The raw door of a second account."""
    return sandbox.door(BETA)


@pytest.fixture
def empty_door(sandbox: Sandbox) -> Door:
    """The raw door of an account in which nothing has happened yet."""
    return sandbox.door(sandbox.spares.pop())


@pytest.fixture
def sdk_http() -> Iterator[stripe.RequestsClient]:
    """The SDK's own HTTP client, closed at the end."""
    with contextlib.closing(stripe.RequestsClient()) as client:
        yield client


@pytest.fixture
def sdk(door: Door, sdk_http: stripe.RequestsClient) -> stripe.StripeClient:
    """The SDK on the first account."""
    return client_of(door, sdk_http)


@pytest.fixture
def empty_sdk(empty_door: Door, sdk_http: stripe.RequestsClient) -> stripe.StripeClient:
    """The SDK on an account in which nothing has happened yet."""
    return client_of(empty_door, sdk_http)


@pytest.fixture(scope="session")
def shapes() -> Shapes:
    """The published shapes; the test is skipped where the shared file is missing."""
    found = published()
    if found is None:
        pytest.skip("../shared/data/stripe/openapi.json is missing, so there is no shape to hold")
    return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database path for a test that starts and stops servers itself."""
    return tmp_path / "stripe.sqlite3"
