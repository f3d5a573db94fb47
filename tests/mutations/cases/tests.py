"""Tests for the survey to run; no name here is one that pytest finds by itself."""

from contextlib import suppress
from threading import Event

import pytest

from nanovm_core.core.vault import commit


def short_r() -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        commit(b"r", "ref", b"value")


@pytest.fixture
def refused() -> None:
    short_r()


def test_short_r_is_refused() -> None:
    short_r()


def test_fails_anyway() -> None:
    assert len(commit(b"r" * 32, "ref", b"value")) < 32


@pytest.mark.usefixtures("refused")
def test_has_a_failing_fixture() -> None:
    pass


def test_does_not_end() -> None:
    with suppress(ValueError):
        commit(b"r", "ref", b"value")
        Event().wait()
