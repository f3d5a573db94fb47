"""A test whose fixture fails without the guard of a commitment's r, before the test begins."""

import pytest

from nanovm_core.core.vault import commit


@pytest.fixture
def refused() -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        commit(b"r", "ref", b"value")


@pytest.mark.usefixtures("refused")
def test_nothing() -> None:
    pass
