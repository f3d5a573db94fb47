"""Fixtures: the real counterpart on a temporary database, and two doors to it."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import stripe

from engine.ops.processes import Child, ready, stop
from mutations.patching import ROOT, installed
from pipeline.ops.stripe_counterpart import spawn_stripe_counterpart
from tests.stripe_sandbox.door import Door, client_of, no_check
from tests.stripe_sandbox.shapes import published

ALPHA, BETA = "sk_test_alpha0001", "sk_test_beta0001"
SPARES = [f"sk_test_spare{number:04d}" for number in range(100)]
KEYS = [
    word
    for key in [ALPHA, BETA, *SPARES]
    for word in ("--key", f"{key}=acct_{key.removeprefix('sk_test_')}")
]
RESTLESS_S = 0.000001  # threads take turns 5000 times as often as usual
WRAPPED = """
import sys, time
real = time.time
time.time = lambda: real() + {later_s}
sys.setswitchinterval({switch_s:f})
"""
UNGUARDED = """
from mutations.patching import install, named
install(*map(named, {ids}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A running counterpart and its accounts that no test has used yet."""

    child: Child
    spares: list[str] = field(default_factory=lambda: list(SPARES))

    def door(self, key: str = "") -> Door:
        """The raw door of ``key``, or of an unused account; it checks shapes where it can."""
        shapes = published()
        check = shapes.check if shapes else no_check
        return Door(url=self.child.url, key=key or self.spares.pop(), check=check)


@contextlib.contextmanager
def serving(
    folder: Path, *options: str, later_s: int = 0, switch_s: float = 0.005
) -> Iterator[Sandbox]:
    """The counterpart on the folder's database; it ends as it was told, without a traceback.

    Its clock is ``later_s`` ahead; its threads take turns every ``switch_s``. Guards that this
    process has removed are removed there too.
    """
    wrapper = WRAPPED.format(later_s=later_s, switch_s=switch_s)
    if ids := [each.id for each in installed()]:
        wrapper += UNGUARDED.format(ids=ids)
    (folder / "sitecustomize.py").write_text(wrapper)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT}")
        # Byte code would be taken for a file of the same size that was written in the same second.
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        child = spawn_stripe_counterpart(folder, *KEYS, *options)
    try:
        yield Sandbox(child=ready(child))
    finally:
        stop([child])
    assert child.popen.returncode in (0, -9)
    assert "Traceback" not in child.written()


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The counterpart, one process and database for the module."""
    with serving(tmp_path_factory.mktemp("stripe")) as running:
        yield running


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
    return sandbox.door()


@pytest.fixture
def sdk_http() -> Iterator[stripe.RequestsClient]:
    """The SDK's own HTTP client, closed at the end."""
    with contextlib.closing(stripe.RequestsClient()) as client:
        yield client


@pytest.fixture
def sdk(empty_door: Door, sdk_http: stripe.RequestsClient) -> stripe.StripeClient:
    """The SDK on the account of ``empty_door``."""
    return client_of(empty_door, sdk_http)
