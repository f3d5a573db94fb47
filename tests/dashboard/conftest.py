"""Visitors with real runs: the real runtime, driven here, and the real Stripe counterpart."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from dashboard.start import sample_files
from engine.queries.runs import RunHead
from pipeline.application import INVOICES
from pipeline.steps import extract as extract_step
from sabotage import run_baseline
from tests.dashboard.visitor import Visitor
from tests.kit.databases import Database
from tests.kit.house import Counterpart
from tests.kit.reading import read_here


@pytest.fixture(scope="module")
def counterpart(counterpart: Counterpart) -> Iterator[None]:
    """The local Stripe counterpart in reach; a module lists its own account's payments alone.

    Reading is a pure function: the same bytes are read once a session, and in this process.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.STRIPE, "api_base", counterpart.url)
        patch.setitem(settings.STRIPE, "key", next(counterpart.keys))
        patch.setattr(extract_step, "extract", read_here)
        patch.setattr(run_baseline, "extract", read_here)
        patch.setattr(sample_files, "new_digits", digits_from(0))
        yield


@pytest.fixture(autouse=True)
def same_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples that a test draws bear the same numbers as those of other tests.

    Its runs are rolled back, so they are no duplicates; and no document is read a second time.
    """
    if "db" in request.fixturenames:
        monkeypatch.setattr(sample_files, "new_digits", digits_from(1_000))


@pytest.fixture
def four_eyes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's policy wants another person than the requester."""
    shipped = INVOICES.policy_file("default").read_text("utf-8")
    policy = tmp_path / "policy.toml"
    policy.write_text(shipped.replace("\nname =", "\nfour_eyes = true\nname =", 1), "utf-8")
    monkeypatch.setattr(settings, "NANOVM_POLICY", policy)


def digits_from(first: int) -> Callable[[], str]:
    """Draws digits that differ each time, and are the same in each session."""
    places = count(first)
    return lambda: str(int(sha256(str(next(places)).encode()).hexdigest(), 16))[:10]


@pytest.fixture(scope="module")
def own_database(
    migrated: Database,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """A database of this module's own: its fixtures commit once what its tests only read."""
    own = migrated.fresh(tmp_path_factory.mktemp("module"))
    with django_db_blocker.unblock(), own.in_use():
        yield


@pytest.fixture(scope="module")
def owner(own_database: None, counterpart: None) -> Visitor:
    """A visitor whose runs are made once for the module. A test's own changes are rolled back
    with the database; what it erases it makes itself, because keys and files stay erased.
    """
    return Visitor()


@pytest.fixture(scope="module")
def paid(owner: Visitor) -> RunHead:
    """The owner's run of the plain invoice, which paid."""
    return owner.make()


@pytest.fixture(scope="module")
def held(owner: Visitor) -> RunHead:
    """The owner's run of an invoice over the limit, which waits for a person."""
    return owner.make("over_limit")


@pytest.fixture(scope="module")
def ready(owner: Visitor) -> RunHead:
    """The owner's run that has not started."""
    return owner.make(hold=True)


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keys and memory of the signer for a module's tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "NANOVM_DATA", tmp_path_factory.mktemp("data"))
        yield


@pytest.fixture
def arrive(db: None, counterpart: None) -> Callable[[], Visitor]:
    """Another visitor, without a workspace yet."""
    return Visitor


@pytest.fixture
def visitor(arrive: Callable[[], Visitor]) -> Visitor:
    return arrive()
