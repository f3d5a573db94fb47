"""Visitors with real runs: the real runtime, driven here, and the real Stripe counterpart."""

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from pipeline.processes import stripe_counterpart
from tests.dashboard.visitor import Visitor


@pytest.fixture(scope="session")
def counterpart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The local Stripe counterpart, for as long as the tests of the pages run."""
    with stripe_counterpart(tmp_path_factory.mktemp("stripe")) as url:
        settings.STRIPE["api_base"] = url
        yield
        settings.STRIPE["api_base"] = None


@pytest.fixture
def arrive(db: None, counterpart: None) -> Callable[[], Visitor]:
    """Another visitor, without a workspace yet."""
    return Visitor


@pytest.fixture
def visitor(arrive: Callable[[], Visitor]) -> Visitor:
    return arrive()
