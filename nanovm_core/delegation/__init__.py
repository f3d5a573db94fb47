"""Delegation: authority handed on as a chain of signed blocks, each narrower than the last."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from nanovm_core.core import signed
from nanovm_core.core.authority.capabilities import Grant, attenuate
from nanovm_core.core.canonical import Json, encode
from nanovm_core.delegation import blocks
from nanovm_core.delegation.blocks import BROKEN, Block, block_id
from nanovm_core.errors import RefusedError

# The runtime signs the first block and names its holder's key; each holder may append a block
# that grants less to another key. The beginning of a chain is a chain with more rights, so a
# chain alone proves nothing: each request is signed with the last holder's key, which a thief
# who cuts off the end does not have.

BLOCKS_MAX = 8  # holders: more than any hand-over needs, few enough to verify at once
CHAIN_BYTES_MAX = 131_072  # eight blocks of a hundred grants each

EXPIRED = "CAP-007"
REVOKED = "CAP-008"
WIDER = "CAP-030"
TOO_LONG = "CAP-032"

_REQUEST_DOMAIN = b"nanovm/delegation-request/v1\0"
_NO_BLOCK = "0" * 64  # what the first block names as the one before it
_LENGTH_BYTES = 4


class Authority(NamedTuple):
    """What a chain gives to the holder of its last key.

    Each grant ends with the chain at the latest. ``ids``: the blocks from the first to the
    last; revoking one revokes all that follow. ``holder`` is the last key: its private half
    uses the chain and hands it on.
    """

    grants: Mapping[str, Grant]
    expires_ms: int
    ids: tuple[str, ...]
    holder: Ed25519PublicKey


def issue(
    grants: Mapping[str, Grant],
    holder: Ed25519PublicKey,
    root_key: Ed25519PrivateKey,
    *,
    program: str,
    expires_ms: int,
) -> bytes:
    """A chain's first block: the runtime gives ``holder`` these grants.

    They hold under the one program whose hash is named: a grant speaks of its tools and slots.
    """
    block = Block(_NO_BLOCK, program, grants, holder, expires_ms)
    return _appended(b"", block, root_key, root_key.public_key())


def delegate(
    chain: bytes,
    grants: Mapping[str, Grant],
    holder: Ed25519PublicKey,
    key: Ed25519PrivateKey,
    root_public_key: Ed25519PublicKey,
    *,
    expires_ms: int,
) -> bytes:
    """The chain with one more block: its last holder, whose key this is, gives ``holder`` less.

    Raises:
        RefusedError: CAP-030 where it would be more, CAP-031 where the chain does not verify
            or the key is not its last holder's, CAP-032 where the chain is full.
    """
    last = _verified(chain, root_public_key)[-1]
    block = Block(block_id(_split(chain)[-1]), last.program, grants, holder, expires_ms)
    return _appended(chain, block, key, root_public_key)


def present(chain: bytes, request: Mapping[str, Json], key: Ed25519PrivateKey) -> bytes:
    """The last holder's signature that this chain is used for this request.

    The request must name what makes it the only one of its kind (a run, an idempotency key):
    a presentation that is shown twice passes twice.
    """
    return key.sign(_presented(block_id(_split(chain)[-1]), request))


def verify(
    chain: bytes,
    root_public_key: Ed25519PublicKey,
    *,
    program: str,
    request: Mapping[str, Json],
    presentation: bytes,
    at_ms: int,
    revoked: frozenset[str] = frozenset(),
) -> Authority:
    """The authority behind this request: what the chain gives, shown by its last holder.

    Raises:
        RefusedError: as ``inspect``, and CAP-031 where the presentation is not the last
            holder's for this chain and this request.
    """
    authority = inspect(chain, root_public_key, program=program, at_ms=at_ms, revoked=revoked)
    message = _presented(authority.ids[-1], request)
    signed.check_signature(message, presentation, authority.holder, code=BROKEN)
    return authority


def inspect(
    chain: bytes,
    root_public_key: Ed25519PublicKey,
    *,
    program: str,
    at_ms: int,
    revoked: frozenset[str] = frozenset(),
) -> Authority:
    """What a chain gives to its last holder; ``verify`` also checks who presents it.

    ``revoked`` are ids of blocks; revoking one later revokes each grant too.
    ``Program.attenuated`` compares the grants with the program's own.

    Raises:
        RefusedError: CAP-030 where a block gives more than the one before, CAP-031 where the
            chain is not one that the root key began for this program, CAP-032 where it is too
            long, CAP-007 where it expired, CAP-008 where a block of it was revoked.
    """
    last = _verified(chain, root_public_key)[-1]
    ids = tuple(block_id(data) for data in _split(chain))
    if last.program != program:
        raise RefusedError(BROKEN, "The chain was issued for another program.")
    if at_ms >= last.expires_ms:
        raise RefusedError(EXPIRED, "The delegation has expired; its issuer can renew it.")
    if not revoked.isdisjoint(ids):
        raise RefusedError(REVOKED, "A block of the chain, or one before it, was revoked.")
    grants = {
        name: replace(grant, narrowed_from=(*grant.narrowed_from, *ids))
        for name, grant in last.grants.items()
    }
    return Authority(MappingProxyType(grants), last.expires_ms, ids, last.holder)


def _appended(
    chain: bytes, block: Block, key: Ed25519PrivateKey, root_public_key: Ed25519PublicKey
) -> bytes:
    """The longer chain, verified as its readers will."""
    data = blocks.write(block, key)
    longer = chain + len(data).to_bytes(_LENGTH_BYTES, "big") + data
    _verified(longer, root_public_key)
    return longer


def _verified(chain: bytes, root_public_key: Ed25519PublicKey) -> list[Block]:
    """The blocks, each signed by the holder before it, linked to it and narrower than it."""
    found: list[Block] = []
    key, prev = root_public_key, _NO_BLOCK
    for data in _split(chain):
        block = blocks.read(data, key)
        if block.prev != prev:
            raise RefusedError(BROKEN, "A block of the chain does not follow the one before it.")
        found.append(_narrowed(found[-1], block) if found else block)
        key, prev = block.holder, block_id(data)
    return found


def _narrowed(before: Block, block: Block) -> Block:
    """The block with its grants as narrowed from those before it, which they may not exceed."""
    if block.program != before.program:
        raise RefusedError(BROKEN, "A block of the chain is for another program.")
    if block.expires_ms > before.expires_ms:
        raise RefusedError(WIDER, "A block of the chain expires later than the one before it.")
    return block._replace(grants=attenuate(before.grants, block.grants.values()))


def _presented(last_id: str, request: Mapping[str, Json]) -> bytes:
    return _REQUEST_DOMAIN + encode({"block": last_id, "request": dict(request)})


def _split(chain: bytes) -> list[bytes]:
    """The blocks' bytes: each after its length, and nothing left over."""
    if len(chain) > CHAIN_BYTES_MAX:
        raise RefusedError(TOO_LONG, f"The chain is larger than {CHAIN_BYTES_MAX} bytes.")
    found, at = [], 0
    while at < len(chain):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(chain[at:start], "big")
        found.append(chain[start:at])
    if not found or at != len(chain):
        raise RefusedError(BROKEN, "The chain's length does not fit its blocks.")
    if len(found) > BLOCKS_MAX:
        raise RefusedError(TOO_LONG, f"The chain has more than {BLOCKS_MAX} blocks.")
    return found
