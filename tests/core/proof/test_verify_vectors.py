"""Ed25519 signatures against published vectors: the verifier's own arithmetic, and the kernel's."""

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from nanovm_core import verify
from nanovm_core.core.signed import check_signature
from nanovm_core.errors import RefusedError
from nanovm_core.verify import ed25519_verify
from tests.core.proof.bundles import LOG_KEY, OTHER_KEY, vectors


def valid_to_the_kernel(public: bytes, message: bytes, signature: bytes) -> bool:
    key = Ed25519PublicKey.from_public_bytes(public)
    try:
        check_signature(message, signature, key, code="CAP-022")
    except RefusedError:
        return False
    return True


@pytest.mark.parametrize("valid", [ed25519_verify, valid_to_the_kernel])
def test_wycheproof_signatures_are_judged_as_published(valid: Callable[..., bool]) -> None:
    held = vectors("wycheproof_ed25519_test.json")
    tried = 0
    for group in held["testGroups"]:
        public = bytes.fromhex(group["publicKey"]["pk"])
        for each in group["tests"]:
            tried += 1
            good = valid(public, bytes.fromhex(each["msg"]), bytes.fromhex(each["sig"]))
            assert good == (each["result"] == "valid"), each["tcId"]
    assert tried == held["numberOfTests"] == 151


@pytest.mark.parametrize("length", [0, 1, 33, 1000])
def test_signatures_of_cryptography_verify_and_no_flip_of_them_does(length: int) -> None:
    message = bytes(length)
    signature = LOG_KEY.signature(message)
    assert ed25519_verify(LOG_KEY.public, message, signature)
    assert not ed25519_verify(OTHER_KEY.public, message, signature)
    assert not ed25519_verify(LOG_KEY.public, message + b"\0", signature)
    for at in (0, 31, 32, 63):
        flipped = bytearray(signature)
        flipped[at] ^= 1
        assert not ed25519_verify(LOG_KEY.public, message, bytes(flipped))


@pytest.mark.parametrize(
    "public",
    [
        bytes([1]) + bytes(31),  # the neutral point: R = [S]B holds for every message
        bytes(32),  # of order 4
        bytes([1]) + bytes(30) + b"\x80",  # x = 0 with a sign
        b"\xee" + b"\xff" * 30 + b"\x7f",  # y = p + 1: a second encoding of the neutral point
        bytes([2]) + bytes(31),  # not on the curve
    ],
)
def test_keys_that_anybody_could_sign_for_are_refused(public: bytes) -> None:
    base = bytes.fromhex("58" + "66" * 31)
    assert not ed25519_verify(public, b"", base + bytes([1]) + bytes(31))
    assert not ed25519_verify(public, b"", public + bytes(32))


def test_points_have_one_encoding() -> None:
    """RFC 8032 §5.1.3: y is below p, also where p + y would be a point like any other."""
    p = 2**255 - 19
    points = [y for y in range(19) if verify._decompress(y.to_bytes(32, "little"))]
    assert len(points) > 3
    for y in range(19):
        assert verify._decompress((p + y).to_bytes(32, "little")) is None


def test_s_is_below_the_order_of_the_group() -> None:
    """RFC 8032 §8.4: else whoever has a signature can make a second one."""
    signature = LOG_KEY.signature(b"x")
    s = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493
    assert not ed25519_verify(LOG_KEY.public, b"x", signature[:32] + s.to_bytes(32, "little"))
