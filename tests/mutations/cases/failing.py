"""A test that fails whether the guard of a commitment's r is there or not."""

from nanovm_core.core.vault import commit


def test_a_commitment_is_short() -> None:
    assert len(commit(b"r" * 32, "ref", b"value")) < 32
