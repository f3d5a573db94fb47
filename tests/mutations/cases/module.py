"""A test module that cannot be imported without the guard of a commitment's r."""

import pytest

from nanovm_core.core.vault import commit

with pytest.raises(ValueError, match="32 random bytes"):
    commit(b"r", "ref", b"value")


def test_nothing() -> None:
    pass
