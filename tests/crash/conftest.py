"""A data folder of its own for each test, with the simulated world in reach."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from pipeline.steps import extract as extract_step
from tests.kit.databases import Database
from tests.kit.reading import read_here


@pytest.fixture
def data(
    migrated: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Path]:
    """A data folder of its own, in which commits are real. The same document is read once."""
    folder = tmp_path / "data"
    folder.mkdir()
    migrated.fresh(folder)
    monkeypatch.setattr(extract_step, "extract", read_here)
    with django_db_blocker.unblock():
        yield folder
