"""A test that misses the guard of a commitment's r."""

import pytest

from nanovm_core.core.vault import commit


def test_short_r_is_refused() -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        commit(b"r", "ref", b"value")
