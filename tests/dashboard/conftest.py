"""Visitors with real runs: the real runtime, driven here, and the real Stripe counterpart."""

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from pipeline.ops.processes import stripe_counterpart
from tests.dashboard.visitor import Visitor


@pytest.fixture(scope="session")
def counterpart_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the local Stripe counterpart is, for as long as the tests of the pages run."""
    with stripe_counterpart(tmp_path_factory.mktemp("stripe")) as url:
        yield url


@pytest.fixture
def counterpart(counterpart_url: str) -> Iterator[None]:
    """The local Stripe counterpart, for one test."""
    before, settings.STRIPE["api_base"] = settings.STRIPE["api_base"], counterpart_url
    yield
    settings.STRIPE["api_base"] = before


@pytest.fixture
def arrive(db: None, counterpart: None) -> Callable[[], Visitor]:
    """Another visitor, without a workspace yet."""
    return Visitor


@pytest.fixture
def visitor(arrive: Callable[[], Visitor]) -> Visitor:
    return arrive()
