"""A data folder of its own for each test, with the simulated world in reach."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from pipeline.steps.extract import step as extract_step
from tests.pipeline.databases import Database
from tests.pipeline.reading import read_here


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Path:
    """A data folder with an empty database: every table and trigger."""
    folder = tmp_path_factory.mktemp("empty") / "data"
    folder.mkdir()
    with django_db_blocker.unblock(), Database.named(folder, "app").in_use():
        call_command("migrate", verbosity=0, interactive=False)
    return folder


@pytest.fixture
def data(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[Path]:
    """A data folder of its own, in which commits are real. The same document is read once."""
    folder = tmp_path / "data"
    shutil.copytree(empty, folder)
    monkeypatch.setattr(extract_step, "extract", read_here)
    with django_db_blocker.unblock():
        yield folder
