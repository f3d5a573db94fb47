"""Vault formats: refs, commitments and sealed values; keys and randomness are arguments."""

import hmac
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from nanovm_core.errors import VerificationError

TOMBSTONE = "[REDACTED_TOMBSTONE]"
KEY_BYTES = 32
NONCE_BYTES = 12
R_BYTES = 32
PREFIX = "vault://secret/"


def commit(r: bytes, ref: str, value: bytes) -> str:
    """c = HMAC-SHA256(r, "nanovm/secret/v1\\0" || ref || "\\0" || value), lower-case hex.

    Without ``r`` it hides even a short value.
    """
    if len(r) != R_BYTES:
        raise ValueError("r must be 32 random bytes")
    message = b"nanovm/secret/v1\0" + ref.encode() + b"\0" + value
    return hmac.new(r, message, sha256).hexdigest()


def seal(key: bytes, nonce: bytes, plain: bytes, *, bound_to: str) -> bytes:
    """AES-256-GCM; the nonce leads, and ``bound_to`` is authenticated with it."""
    return nonce + AESGCM(key).encrypt(nonce, plain, bound_to.encode())


def unseal(key: bytes, sealed: bytes, *, bound_to: str) -> bytes:
    """Open what ``seal`` made (VerificationError PII-002: other key, bytes or binding)."""
    nonce, body = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, body, bound_to.encode())
    except (InvalidTag, ValueError) as error:
        raise VerificationError("PII-002", "A sealed value cannot be decrypted.", at=-1) from error


def seal_value(key: bytes, nonce: bytes, r: bytes, value: bytes, *, bound_to: str) -> bytes:
    """Seal a value together with its commitment's ``r``, so that both end with the key."""
    return seal(key, nonce, r + value, bound_to=bound_to)


def unseal_value(key: bytes, sealed: bytes, *, bound_to: str) -> tuple[bytes, bytes]:
    """The ``r`` and the value that ``seal_value`` sealed."""
    plain = unseal(key, sealed, bound_to=bound_to)
    return plain[:R_BYTES], plain[R_BYTES:]
