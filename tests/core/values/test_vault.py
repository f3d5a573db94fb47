"""The vault's formats: what opens, what does not, and the commitment as the format page has it."""

import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.vault import R_BYTES, commit, seal, seal_value, unseal, unseal_value
from nanovm_core.errors import VerificationError
from tests.core.kit.builders import ref

KEY, NONCE, R = b"k" * 32, b"n" * 12, b"r" * R_BYTES


@settings(max_examples=30)
@given(st.binary(max_size=300), st.binary(min_size=32, max_size=32))
def test_value_and_its_r_come_back(value: bytes, r: bytes) -> None:
    sealed = seal_value(KEY, NONCE, r, value, bound_to="here")
    assert unseal_value(KEY, sealed, bound_to="here") == (r, value)
    assert len(value) < 4 or value not in sealed


def test_any_changed_byte_is_found() -> None:
    sealed = seal_value(KEY, NONCE, R, b"value", bound_to="here")
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1 << at % 8
        with pytest.raises(VerificationError, match="PII-002"):
            unseal_value(KEY, bytes(changed), bound_to="here")


GOOD = seal(KEY, NONCE, b"value", bound_to="here")


@pytest.mark.parametrize(
    ("key", "sealed", "bound_to"),
    [
        *((key, GOOD, "here") for key in (b"x" * 32, b"short")),
        *((KEY, GOOD, place) for place in ("there", "")),
        *((KEY, stump, "here") for stump in (b"", b"short", NONCE, NONCE + b"x" * 15)),
    ],
)
def test_another_key_or_place_or_a_stump_does_not_open(
    key: bytes, sealed: bytes, bound_to: str
) -> None:
    with pytest.raises(VerificationError, match="PII-002"):
        unseal(key, sealed, bound_to=bound_to)


@settings(max_examples=30)
@given(st.binary(max_size=100), st.binary(min_size=32, max_size=32))
def test_commitment_is_the_one_of_the_audit_format(value: bytes, r: bytes) -> None:
    message = b"nanovm/secret/v1" + b"\x00" + ref(7).encode("ascii") + b"\x00" + value
    assert commit(r, ref(7), value) == hmac.new(r, message, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_r_has_its_one_size(size: int) -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        commit(b"r" * size, ref(1), b"v")
