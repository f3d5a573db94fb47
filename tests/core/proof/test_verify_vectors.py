"""The verifier's arithmetic against published vectors: signatures, notes and canonical JSON."""

from collections.abc import Callable

import pytest

from nanovm_core import verify
from nanovm_core.verify import cosigned_s, ed25519_verify, parse_checkpoint, parse_key
from tests.core.proof.bundles import LOG_KEY, OTHER_KEY, WITNESS, Log, Signer, vectors


def holds(check: Callable[..., object], *arguments: object) -> bool:
    """Whether a check that raises ValueError passes."""
    try:
        check(*arguments)
    except ValueError:
        return False
    return True


# --- Ed25519 ---------------------------------------------------------------------------------


def test_wycheproof() -> None:
    held = vectors("wycheproof_ed25519_test.json")
    seen = 0
    for group in held["testGroups"]:
        public = bytes.fromhex(group["publicKey"]["pk"])
        for each in group["tests"]:
            seen += 1
            good = ed25519_verify(public, bytes.fromhex(each["msg"]), bytes.fromhex(each["sig"]))
            assert good == (each["result"] == "valid"), each["tcId"]
    assert seen == held["numberOfTests"] == 151


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


# --- notes -----------------------------------------------------------------------------------


def test_a_cosignature_binds_time_text_and_witness() -> None:
    log = Log()
    log.add("log", "genesis")
    checkpoint = parse_checkpoint(log.note(LOG_KEY, WITNESS))
    key = parse_key(WITNESS.vkey, verify.COSIGNATURE)
    assert cosigned_s(checkpoint, key) == 1_700_000_000
    assert cosigned_s(parse_checkpoint(log.note(LOG_KEY)), key) is None
    assert cosigned_s(checkpoint._replace(text=checkpoint.text + "x\n"), key) is None
    stamped = checkpoint.signatures[1]
    later = stamped._replace(data=b"\1" + stamped.data[1:])
    assert cosigned_s(checkpoint._replace(signatures=(later,)), key) is None
    impostor = parse_key(Signer(WITNESS.name, 4, 4).vkey, verify.COSIGNATURE)
    assert cosigned_s(checkpoint, impostor) is None
    forged = stamped._replace(id=impostor.id)
    assert cosigned_s(checkpoint._replace(signatures=(forged,)), impostor) is None
