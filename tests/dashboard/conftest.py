"""Visitors with real runs: the real runtime, driven here, and the real Stripe counterpart."""

from collections.abc import Callable, Iterator
from functools import lru_cache

import pytest
from django.conf import settings

from pipeline.ops.processes import stripe_counterpart
from pipeline.steps.extract import extract
from pipeline.steps.extract import step as extract_step
from tests.dashboard.visitor import Visitor

READ = lru_cache(maxsize=64)(extract)


@pytest.fixture(scope="session")
def counterpart_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the local Stripe counterpart is, for as long as the tests of the pages run."""
    with stripe_counterpart(tmp_path_factory.mktemp("stripe")) as url:
        yield url


@pytest.fixture
def counterpart(counterpart_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local Stripe counterpart, for one test.

    Reading is a pure function in a child process: the same bytes are read once a session.
    """
    monkeypatch.setattr(extract_step, "extract", READ)
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
