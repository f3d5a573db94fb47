"""A data folder and a database file of its own for each test, and the real Stripe counterpart."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from pytest_django import DjangoDbBlocker

from pipeline import effects
from pipeline.extract import extract
from pipeline.processes import stripe_counterpart
from tests.pipeline.house import House

READ = lru_cache(maxsize=64)(extract)


@pytest.fixture(scope="session")
def counterpart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the folder of a counterpart that runs for the whole session."""
    folder = tmp_path_factory.mktemp("stripe")
    with stripe_counterpart(folder) as url:
        yield url, folder


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Path:
    """An empty database with every table and trigger, to be copied."""
    template = tmp_path_factory.mktemp("template") / "app.sqlite3"
    with django_db_blocker.unblock(), _database(template):
        call_command("migrate", verbosity=0, interactive=False)
    return template


@pytest.fixture
def house(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counterpart: tuple[str, Path],
    migrated: Path,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[House]:
    """The pipeline on a data folder of its own, committing for real: no test transaction.

    Reading is a pure function in a child process: the same bytes are read once a session.
    """
    url, sandbox = counterpart
    shutil.copy(migrated, tmp_path / "app.sqlite3")
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    monkeypatch.setitem(settings.STRIPE, "api_base", url)
    monkeypatch.setattr(effects, "extract", READ)
    with django_db_blocker.unblock(), _database(tmp_path / "app.sqlite3"):
        yield House(folder=tmp_path, stripe_url=url, sandbox=sandbox)


@contextmanager
def _database(file: Path) -> Iterator[None]:
    """Every thread's connections go to this file."""
    before = connection.settings_dict["NAME"]
    connections.close_all()
    connection.settings_dict["NAME"] = str(file)
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = before
