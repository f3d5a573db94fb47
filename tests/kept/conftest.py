"""A folder that a release made, laid out anew for each test."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from pipeline.steps import extract as extract_step
from tests.kept.folder import Kept, kept_folders, unpack
from tests.kit.databases import Database
from tests.kit.reading import read_here


@pytest.fixture(params=kept_folders(), ids=lambda each: each.name.split(".")[0])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """What is in the folder ``data``, as its release left it."""
    return unpack(request.param, tmp_path / "data")


@pytest.fixture
def data(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[Path]:
    """That folder in use, a minute after it was made: no step of its runs is overdue."""
    folder, real = tmp_path / "data", time.time_ns
    ahead_ns = (kept.made_ms + 60_000) * 1_000_000 - real()
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_ns)
    monkeypatch.setattr(settings, "NANOVM_DATA", folder)
    monkeypatch.setitem(settings.STRIPE, "api_base", None)
    monkeypatch.setattr(extract_step, "extract", read_here)
    with django_db_blocker.unblock(), Database(name=str(folder / "app.sqlite3")).in_use():
        yield folder
