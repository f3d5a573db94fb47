"""A data folder and a database of its own for each test, and the real Stripe counterpart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from engine.management import schema
from pipeline.ops.stripe_counterpart import stripe_counterpart
from pipeline.steps import extract as extract_step
from tests.kit.clock import Leap, leaping
from tests.kit.databases import Database
from tests.kit.house import Counterpart, House
from tests.kit.reading import read_here

ACCOUNTS = 1_500


@pytest.fixture(scope="session")
def counterpart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counterpart]:
    """The counterpart, with more accounts than there are tests."""
    folder = tmp_path_factory.mktemp("stripe")
    keys = [f"sk_test_{number:04d}" for number in range(ACCOUNTS)]
    options = [word for key in keys for word in ("--key", f"{key}=acct_{key[-4:]}")]
    with stripe_counterpart(folder, *options) as url:
        yield Counterpart(url, folder, iter(keys))


@pytest.fixture(scope="session")
def migrated(
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
    database_server: None,
) -> Database:
    """An empty database with every table and trigger, and its version."""
    template = Database.named(tmp_path_factory.mktemp("template"), "app")
    template.make()
    with django_db_blocker.unblock(), template.in_use():
        schema.migrate()
    return template


@pytest.fixture(scope="session")
def django_db_setup(
    migrated: Database, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """What a test's transaction is rolled back in: a copy, so that nothing is migrated twice."""
    own = migrated.beside("rolled_back")
    migrated.fresh(tmp_path_factory.mktemp("rolled_back")).copy_to(own)
    with django_db_blocker.unblock(), own.in_use():
        yield


@pytest.fixture
def house(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counterpart: Counterpart,
    migrated: Database,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[House]:
    """The pipeline on a data folder of its own, committing for real: no test transaction.

    It pays from an account of its own, so that the far side's records are those of the test.
    Reading is a pure function: the same bytes are read once a session, and in this process.
    """
    own = migrated.fresh(tmp_path)
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    monkeypatch.setitem(settings.STRIPE, "api_base", counterpart.url)
    monkeypatch.setitem(settings.STRIPE, "key", next(counterpart.keys))
    monkeypatch.setattr(extract_step, "extract", read_here)
    if own.url:
        monkeypatch.setenv("DATABASE_URL", own.url)  # for the processes that a test starts
    with django_db_blocker.unblock(), own.in_use():
        yield House(folder=tmp_path, database=own, counterpart=counterpart)


@pytest.fixture
def leap(monkeypatch: pytest.MonkeyPatch) -> Leap:
    """Move this process's clock on."""
    return leaping(monkeypatch)
