"""A test that does not end without the guard of a commitment's r."""

from itertools import count

from nanovm_core.core.vault import commit


def test_it_ends() -> None:
    for _ in count():
        try:
            commit(b"r", "ref", b"value")
        except ValueError:
            break
