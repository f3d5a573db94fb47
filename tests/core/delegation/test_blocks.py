"""Blocks: one form for what a link of a delegation says, and every other form refused."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core.core import signed
from nanovm_core.core.authority.capabilities import Constraint, Grant
from nanovm_core.core.authority.windows import Rate
from nanovm_core.core.canonical import encode
from nanovm_core.delegation import blocks
from nanovm_core.delegation.blocks import Block
from tests.core.kit.builders import refused

DOMAIN = b"nanovm/delegation/v1\0"
KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
HOLDER = Ed25519PrivateKey.from_private_bytes(b"\2" * 32).public_key()
ENDS_MS = 5_000
WHERE = {
    "amount": Constraint(min=0, max=10),
    "to": Constraint(prefix="ab", equals_slot="payee"),
    "memo": Constraint(one_of=("x", 1, True)),
    "free": Constraint(),
}
RARE = Rate(calls=5, within_ms=60_000)
BLOCK = Block(
    prev="7" * 64,
    program="9" * 64,
    grants={
        "pay": Grant(tool="pay", where=WHERE, expires_ms=4_000),
        "mail": Grant(tool="mail", rate=RARE),
    },
    holder=HOLDER,
    expires_ms=ENDS_MS,
)
DATA = blocks.write(BLOCK, KEY)
BODY: Mapping[str, Any] = json.loads(DATA[signed.SIGNATURE_BYTES :])


def code(data: bytes) -> str:
    """What the bytes are refused with, as a block of the key's."""
    return refused(lambda: blocks.read(data, KEY.public_key()))


def rewritten(change: Mapping[str, object]) -> bytes:
    """The block by its own key, with these words changed."""
    body = encode({**BODY, **change})
    return KEY.sign(DOMAIN + body) + body


def test_block_is_as_it_is_written_down() -> None:
    assert dict(BODY) == {
        "v": "nanovm-delegation/1",
        "program": "9" * 64,
        "prev": "7" * 64,
        "holder": HOLDER.public_bytes_raw().hex(),
        "grants": {
            "pay": {
                "where": {
                    "amount": {"min": 0, "max": 10},
                    "to": {"prefix": "ab", "equals_slot": "payee"},
                    "memo": {"one_of": ["x", 1, True]},
                    "free": {},
                },
                "expires_ms": 4_000,
            },
            "mail": {"where": {}, "expires_ms": 0, "rate": {"calls": 5, "within_ms": 60_000}},
        },
        "expires_ms": ENDS_MS,
        "signer": signed.key_id(KEY.public_key()),
    }
    assert rewritten({}) == DATA


def test_block_is_read_as_it_was_written_but_no_grant_outlives_it() -> None:
    read = blocks.read(DATA, KEY.public_key())
    assert read._replace(grants={}) == BLOCK._replace(grants={})
    assert read.grants == {
        "pay": Grant(tool="pay", where=WHERE, expires_ms=4_000),
        "mail": Grant(tool="mail", expires_ms=ENDS_MS, rate=RARE),
    }
    late = BLOCK._replace(grants={"t": Grant(tool="t", expires_ms=ENDS_MS + 1)})
    again = blocks.read(blocks.write(late, KEY), KEY.public_key())
    assert again.grants["t"].expires_ms == ENDS_MS


def test_read_block_cannot_be_changed() -> None:
    read = blocks.read(DATA, KEY.public_key())
    for mapping in (read.grants, read.grants["pay"].where):
        with pytest.raises(TypeError):
            mapping["pay"] = None  # type: ignore[index]


def test_id_is_the_hash_of_what_is_said_and_not_of_who_signed_how() -> None:
    body = DATA[signed.SIGNATURE_BYTES :]
    assert blocks.block_id(DATA) == hashlib.sha256(DOMAIN + body).hexdigest()
    assert blocks.block_id(b"x" * signed.SIGNATURE_BYTES + body) == blocks.block_id(DATA)
    assert blocks.block_id(rewritten({"expires_ms": 1})) != blocks.block_id(DATA)


# Bounds that are not understood, and not left out.
BOUNDS: tuple[object, ...] = (
    *(None, [], {"max": "5"}, {"max": None}, {"min": True}, {"prefix": 5}, {"equals_slot": 5}),
    *({"one_of": bad} for bad in (5, "ab", [None], [[5]])),
    *({"length_max": 5}, {"Max": 5}),
)


@pytest.mark.parametrize(
    "change",
    [
        {"v": "nanovm-delegation/2"},
        {"more": 1},
        {"signer": signed.key_id(HOLDER)},
        {"prev": None},
        {"program": None},
        {"holder": None},
        {"holder": "AA" * 32},
        {"holder": "aa" * 31},
        {"holder": "aa" * 32 + "\n"},
        {"expires_ms": str(ENDS_MS)},
        {"expires_ms": True},
        {"expires_ms": -1},
        {"grants": []},
        {"grants": {"pay": None}},
        {"grants": {"pay": {}}},
        {"grants": {"pay": {"where": {}}}},
        {"grants": {"pay": {"expires_ms": 0}}},
        {"grants": {"pay": {"where": {}, "expires_ms": 0, "more": 1}}},
        {"grants": {"pay": {"where": {}, "expires_ms": -1}}},
        {"grants": {"pay": {"where": {}, "expires_ms": 0, "rate": {"calls": 5}}}},
        {"grants": {"pay": {"where": {}, "expires_ms": 0, "rate": 5}}},
        {"grants": {"pay": {"where": {}, "expires_ms": "0"}}},
        {"grants": {"pay": {"where": [], "expires_ms": 0}}},
        *({"grants": {"pay": {"where": {"amount": bound}, "expires_ms": 0}}} for bound in BOUNDS),
    ],
    ids=str,
)
def test_block_is_understood_to_the_last_word_or_refused(change: Mapping[str, object]) -> None:
    assert code(rewritten(change)) == "CAP-031"


@pytest.mark.parametrize("name", sorted(BODY))
def test_block_without_one_of_its_words_is_refused(name: str) -> None:
    body = encode({key: value for key, value in BODY.items() if key != name})
    assert code(KEY.sign(DOMAIN + body) + body) == "CAP-031"
