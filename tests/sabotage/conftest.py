"""A database file of its own, kept between a module's tests, and the real Stripe counterpart."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from pipeline.steps import extract as extract_step
from sabotage import run_baseline
from sabotage.baseline import comparison
from tests.kit.databases import Database
from tests.kit.house import Counterpart
from tests.kit.reading import read_here

LEFT_OUT = comparison.not_run("Left out of this test.")


@pytest.fixture(scope="module")
def stripe_url(counterpart: Counterpart) -> Iterator[str]:
    """Where the counterpart is; a module lists the payments of its own account alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.STRIPE, "key", next(counterpart.keys))
        yield counterpart.url


@pytest.fixture(scope="module")
def database(
    migrated: Database, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """A real file with real transactions: threads see what was committed, and locks count.

    It is never emptied: every test makes workspaces of its own, and envelopes cannot be deleted.
    Reading is a pure function: the same bytes are read once, and in this process.
    """
    own = migrated.fresh(tmp_path_factory.mktemp("database"))
    with django_db_blocker.unblock(), own.in_use(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract_step, "extract", read_here)
        patch.setattr(run_baseline, "extract", read_here)
        yield


@pytest.fixture
def compared() -> None:
    """Have the baselines attacked as well, which other tests leave out."""


@pytest.fixture
def no_stripe(
    database: None,
    django_db_blocker: DjangoDbBlocker,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """The database alone: nothing answers for Stripe."""
    if "compared" not in request.fixturenames:
        monkeypatch.setattr(run_baseline, "run_baseline", lambda *_: LEFT_OUT)
    with django_db_blocker.unblock():
        before = settings.STRIPE["api_base"]
        settings.STRIPE["api_base"] = None
        yield
        settings.STRIPE["api_base"] = before


@pytest.fixture
def runtime_here(no_stripe: None, stripe_url: str) -> None:
    """The runtime, driven by the test itself, and a Stripe counterpart in reach."""
    settings.STRIPE["api_base"] = stripe_url
