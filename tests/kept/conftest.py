"""A folder that a release made, laid out anew for each test."""

import time
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from pipeline.steps import extract as extract_step
from tests.kept.folder import Kept, kept_folders, unpack
from tests.kit.databases import Database
from tests.kit.reading import read_here

FOLDERS, NAME = kept_folders(), attrgetter("name")
LATER = [pytest.param(each, marks=pytest.mark.soak) for each in FOLDERS[1:]]
from_the_oldest = pytest.mark.parametrize("kept", [FOLDERS[0], *LATER], indirect=True, ids=NAME)
at_both_ends = pytest.mark.parametrize(
    "kept", [FOLDERS[0], *LATER[:-1], FOLDERS[-1]], indirect=True, ids=NAME
)


@pytest.fixture(params=FOLDERS, ids=NAME)
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
