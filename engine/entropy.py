"""Entropy: the only module that draws random bytes and names."""

import os
import uuid

from engine.clock import now_ms

CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # no 0/O, 1/I/L, U: sayable on a stage


def random_bytes(count: int) -> bytes:
    """Random bytes fit for keys."""
    return os.urandom(count)


def uuid4() -> uuid.UUID:
    """A random name, which does not tell when it was made."""
    return uuid.uuid4()


def uuid7() -> uuid.UUID:
    """A name that sorts by its time of birth (RFC 9562 §5.7)."""
    value = (now_ms() << 80) | int.from_bytes(os.urandom(10), "big")
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return uuid.UUID(int=value)


def code(count: int) -> str:
    """So many random letters and digits."""
    return "".join(CODE_ALPHABET[byte % len(CODE_ALPHABET)] for byte in os.urandom(count))


def run_code() -> str:
    """A short code for a run, such as 7F3K-02: four letters or digits and two digits."""
    return f"{code(4)}-{digits(2)}"


def digits(count: int) -> str:
    """``count`` random digits."""
    return f"{int.from_bytes(os.urandom(count), 'big') % 10**count:0{count}d}"
