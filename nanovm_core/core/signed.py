"""Signed values: an Ed25519 signature and the canonical bytes it covers, in one piece."""

from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from nanovm_core.core.canonical import Json, decode, digest, encode
from nanovm_core.errors import CanonicalError, RefusedError

SIGNATURE_BYTES = 64


def key_id(public_key: Ed25519PublicKey) -> str:
    """The name of a key: a hash of its 32 bytes, 64 lower-case hex digits."""
    return digest(b"nanovm/key-id/v1\0", public_key.public_bytes_raw())


def sign(domain: bytes, value: Mapping[str, Json], key: Ed25519PrivateKey) -> bytes:
    """The signature and the canonical bytes of ``value`` with ``signer``, the key's name.

    No ``domain`` may be another's prefix.
    """
    body = encode({**value, "signer": key_id(key.public_key())})
    return key.sign(domain + body) + body


def opened(
    domain: bytes, data: bytes, public_key: Ed25519PublicKey, *, code: str
) -> dict[str, Json]:
    """The value that ``public_key``'s holder signed under ``domain``, without ``signer``.

    Nothing is parsed before the signature is verified. The bytes must be canonical and name the
    key: a signature that fits two keys counts for one. Else RefusedError under ``code``.
    """
    signature, body = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    check_signature(domain + body, signature, public_key, code=code)
    value = _decoded(body, code)
    if value.pop("signer", None) != key_id(public_key):
        raise RefusedError(code, "The signed bytes name another key than the one that signed them.")
    return value


def check_signature(
    message: bytes, signature: bytes, public_key: Ed25519PublicKey, *, code: str
) -> None:
    """Return if this is the key's signature (RFC 8032 §5.1.7), else RefusedError (``code``)."""
    try:
        public_key.verify(signature, message)
    except InvalidSignature as error:
        raise RefusedError(code, "The signature is not valid for this key.") from error


def _decoded(body: bytes, code: str) -> dict[str, Json]:
    try:
        value = decode(body)
    except CanonicalError as error:
        raise RefusedError(code, f"The signed bytes are not canonical: {error.text}.") from error
    if not isinstance(value, dict):
        raise RefusedError(code, "The signed bytes are not a JSON object.")
    return value
