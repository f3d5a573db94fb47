"""Blocks: what one link of a delegation says, written in one way only and read strictly."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from nanovm_core.core import signed
from nanovm_core.core.authority.capabilities import Constraint, Grant, form_of
from nanovm_core.core.authority.windows import Rate
from nanovm_core.core.canonical import Json, digest
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import RefusedError

VERSION = "nanovm-delegation/1"
BROKEN = "CAP-031"

_DOMAIN = b"nanovm/delegation/v1\0"
_KEY = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")
_WORDS = {dict: "an object", list: "a list", str: "a string", int: "an integer"}
_FIELDS = {"v", "program", "prev", "holder", "grants", "expires_ms"}
_GRANT_FIELDS = {"where", "expires_ms"}  # and a rate, where it has one


class Block(NamedTuple):
    """The grants that one holder gives to the key of the next, until ``expires_ms``.

    ``prev`` is the id of the block before; each grant ends with the block at the latest.
    """

    prev: str
    program: str
    grants: Mapping[str, Grant]
    holder: Ed25519PublicKey
    expires_ms: int


def write(block: Block, key: Ed25519PrivateKey) -> bytes:
    """The signed bytes of a block; ``read`` with the key's public half gives it back."""
    grants: dict[str, Json] = {grant.tool: form_of(grant) for grant in block.grants.values()}
    value: dict[str, Json] = {
        "v": VERSION,
        "program": block.program,
        "prev": block.prev,
        "holder": block.holder.public_bytes_raw().hex(),
        "grants": grants,
        "expires_ms": block.expires_ms,
    }
    return signed.sign(_DOMAIN, value, key)


def read(data: bytes, public_key: Ed25519PublicKey) -> Block:
    """The block that this key's holder signed.

    Raises:
        RefusedError: CAP-031, where the key did not sign it or a word of it is not understood.
    """
    value = signed.opened(_DOMAIN, data, public_key, code=BROKEN)
    _expect(value.keys() == _FIELDS and value["v"] == VERSION, f"has another format than {VERSION}")
    holder, expires_ms = _typed(str, value["holder"]), _time(value["expires_ms"])
    _expect(_KEY.fullmatch(holder) is not None, "names no holder's key")
    grants = {
        tool: read_grant(tool, given, expires_ms)
        for tool, given in _typed(dict, value["grants"]).items()
    }
    return Block(
        prev=_typed(str, value["prev"]),
        program=_typed(str, value["program"]),
        grants=MappingProxyType(grants),
        holder=Ed25519PublicKey.from_public_bytes(bytes.fromhex(holder)),
        expires_ms=expires_ms,
    )


def block_id(data: bytes) -> str:
    """The hash of what a block says.

    Its signature is no part of it: one key can sign the same words in many ways, and all of
    them are revoked together.
    """
    return digest(_DOMAIN, data[signed.SIGNATURE_BYTES :])


def read_grant(tool: str, value: Json, until_ms: int) -> Grant:
    """The grant of such a form, which ends with its block at the latest."""
    fields = _typed(dict, value)
    _expect(
        fields.keys() - {"rate"} == _GRANT_FIELDS, "has a grant with other fields than it must have"
    )
    where = {name: _constraint(bounds) for name, bounds in _typed(dict, fields["where"]).items()}
    ends_ms = _time(fields["expires_ms"]) or until_ms
    ends_ms = min(ends_ms, until_ms)
    rate = _rate(fields["rate"]) if "rate" in fields else None
    return Grant(tool=tool, where=MappingProxyType(where), expires_ms=ends_ms, rate=rate)


def _rate(value: Json) -> Rate:
    parts = _typed(dict, value)
    _expect(parts.keys() == {"calls", "within_ms"}, "has a rate with other fields")
    return Rate(calls=_typed(int, parts["calls"]), within_ms=_time(parts["within_ms"]))


def _constraint(value: Json) -> Constraint:
    bounds = _typed(dict, value)
    _expect(bounds.keys() <= _READERS.keys(), "has an unknown bound")
    read: dict[str, Any] = {name: _READERS[name](bound) for name, bound in bounds.items()}
    return Constraint(**read)


def _typed(kind: type[T], value: Json) -> T:
    _expect(type(value) is kind, f"has another type in place of {_WORDS[kind]}")
    return cast(T, value)


def _time(value: Json) -> int:
    time_ms = _typed(int, value)
    _expect(time_ms >= 0, "has a negative time")
    return time_ms


def _options(value: Json) -> tuple[Scalar, ...]:
    found = _typed(list, value)
    options = tuple(each for each in found if isinstance(each, str | int))
    _expect(len(options) == len(found), "has an option that is neither text nor number")
    return options


def _expect(holds: bool, fault: str) -> None:
    if not holds:
        raise RefusedError(BROKEN, f"A block of the chain {fault}.")


_READERS: Mapping[str, Callable[[Json], Scalar | tuple[Scalar, ...]]] = MappingProxyType(
    {
        "one_of": _options,
        "min": partial(_typed, int),
        "max": partial(_typed, int),
        "prefix": partial(_typed, str),
        "equals_slot": partial(_typed, str),
        "origin": partial(_typed, str),
    }
)
