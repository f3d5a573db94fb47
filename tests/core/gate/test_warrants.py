"""Warrants: for exactly one call, for a while, and checked with the public key alone."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core.core import signed
from nanovm_core.core.canonical import INTEGER_MAX, SIZE_BYTES_MAX, Json, encode
from nanovm_core.core.messages import Effect, Warrant
from nanovm_core.core.warrants import authorize, binding, check, mint, sign
from tests.core.kit.builders import refused

DOMAIN = b"nanovm/warrant-token/v1\0"
KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"\2" * 32)
PUBLIC = KEY.public_key()
PAYEE = "vault://secret/00000000-0000-4000-8000-000000000001"
ISSUED_MS, ENDS_MS = 1_000, 1_500
EFFECT = Effect(
    step="charge",
    tool="stripe.create_payment_intent",
    attempt=1,
    key="5" * 64,
    args={"amount_minor": 5, "payee": PAYEE},
    at_ms=ISSUED_MS,
)
BOUND: Mapping[str, Json] = binding("run-1", "9" * 64, EFFECT)
WARRANT = mint(BOUND, at_ms=ISSUED_MS, ttl_ms=ENDS_MS - ISSUED_MS)
GRANTS = ("a" * 64, "b" * 64)
TOKEN = sign(WARRANT, BOUND, KEY, grants=GRANTS)
BODY: Mapping[str, Any] = json.loads(TOKEN[signed.SIGNATURE_BYTES :])

OTHER_ARGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"amount_minor": 5},
    {"amount_minor": 5, "payee": PAYEE[:-1] + "2"},
    {"amount_minor": 5, "payee": PAYEE, "memo": "m"},
    *({"amount_minor": odd, "payee": PAYEE} for odd in (6, "5", 5.0, True, INTEGER_MAX + 1)),
    *({"amount_minor": unwritable, "payee": PAYEE} for unwritable in (b"5", "\ud800", {5})),
)
OTHER_CALLS: tuple[Mapping[str, Any], ...] = (
    *({**BOUND, name: f"{value}2"} for name, value in BOUND.items() if name != "args"),
    *({key: value for key, value in BOUND.items() if key != name} for name in BOUND),
    *({**BOUND, "args": args} for args in OTHER_ARGS),
    {**BOUND, "more": 1},
)


def checked(token: bytes, bound: Mapping[str, Json] = BOUND, at_ms: int = ISSUED_MS) -> str:
    """What an adapter with the public key says of a token."""
    return refused(lambda: check(token, bound, PUBLIC, at_ms=at_ms))


def signed_by_us(body: bytes, domain: bytes = DOMAIN) -> bytes:
    return KEY.sign(domain + body) + body


def test_warrant_covers_its_call_until_it_expires() -> None:
    authorize(WARRANT, BOUND, at_ms=ISSUED_MS)
    authorize(WARRANT, BOUND, at_ms=ENDS_MS - 1)
    assert refused(lambda: authorize(WARRANT, BOUND, at_ms=ENDS_MS)) == "CAP-021"
    assert refused(lambda: authorize(None, BOUND, at_ms=ISSUED_MS)) == "CAP-020"


def test_formats_are_as_they_are_written_down() -> None:
    words = json.dumps({**BOUND, "expires_ms": ENDS_MS}, sort_keys=True, separators=(",", ":"))
    assert WARRANT.id == hashlib.sha256(b"nanovm/warrant/v1\0" + words.encode()).hexdigest()
    name = hashlib.sha256(b"nanovm/key-id/v1\0" + PUBLIC.public_bytes_raw()).hexdigest()
    assert signed.key_id(PUBLIC) == name
    body = json.dumps(BODY, sort_keys=True, separators=(",", ":")).encode()
    assert KEY.sign(DOMAIN + body) + body == TOKEN


def test_longer_life_is_another_warrant() -> None:
    longer = Warrant(id=WARRANT.id, expires_ms=ENDS_MS + 1)
    assert refused(lambda: authorize(longer, BOUND, at_ms=ISSUED_MS)) == "CAP-020"
    assert refused(lambda: sign(longer, BOUND, KEY)) == "CAP-020"


@pytest.mark.parametrize("other", OTHER_CALLS, ids=str)
def test_warrant_and_token_are_for_one_call(other: Mapping[str, Any]) -> None:
    assert refused(lambda: authorize(WARRANT, other, at_ms=ISSUED_MS)) == "CAP-020"
    assert refused(lambda: sign(WARRANT, other, KEY)) == "CAP-020"
    assert checked(TOKEN, other) == "CAP-020"


def test_token_covers_its_call_until_it_expires() -> None:
    check(TOKEN, BOUND, PUBLIC, at_ms=ISSUED_MS)
    check(TOKEN, BOUND, PUBLIC, at_ms=ENDS_MS - 1)
    assert checked(TOKEN, at_ms=ENDS_MS) == "CAP-021"
    reordered = dict(reversed([*BOUND.items()]))
    reordered["args"] = {"payee": PAYEE, "amount_minor": 5}
    check(TOKEN, reordered, PUBLIC, at_ms=ISSUED_MS)


def test_token_names_all_that_it_stands_for() -> None:
    assert {
        **BOUND,
        "v": "nanovm-warrant/1",
        "expires_ms": ENDS_MS,
        "grants": [*GRANTS],
        "signer": signed.key_id(PUBLIC),
    } == BODY
    assert sign(WARRANT, BOUND, KEY, grants=GRANTS[::-1]) == TOKEN
    check(sign(WARRANT, BOUND, KEY), BOUND, PUBLIC, at_ms=ISSUED_MS)


@pytest.mark.parametrize("taken", [WARRANT.id, *GRANTS])
def test_revoked_warrant_falls_and_so_does_one_of_a_revoked_grant(taken: str) -> None:
    revoked = frozenset({taken, "c" * 64})
    assert refused(lambda: check(TOKEN, BOUND, PUBLIC, at_ms=0, revoked=revoked)) == "CAP-008"
    check(TOKEN, BOUND, PUBLIC, at_ms=0, revoked=frozenset({"c" * 64}))


def test_no_changed_byte_is_accepted() -> None:
    for place in range(len(TOKEN)):
        changed = bytearray(TOKEN)
        changed[place] ^= (1, 0x20, 0x80, 0xFF)[place % 4]
        assert checked(bytes(changed)) == "CAP-022"


def test_signature_of_another_key_or_for_another_purpose_is_no_warrant() -> None:
    assert checked(sign(WARRANT, BOUND, OTHER_KEY)) == "CAP-022"
    body = TOKEN[signed.SIGNATURE_BYTES :]
    for domain in (b"", b"nanovm/delegation/v1\0", b"nanovm/warrant-token/v2\0"):
        assert checked(signed_by_us(body, domain)) == "CAP-022"
    check(signed_by_us(body), BOUND, PUBLIC, at_ms=ISSUED_MS)


@pytest.mark.parametrize(("name", "values"), [
    ("v", ("nanovm-warrant/2", 1)),
    ("more", (1,)),
    ("signer", (signed.key_id(OTHER_KEY.public_key()), None)),
    ("expires_ms", (str(ENDS_MS), True, None)),
    ("grants", (None, "a" * 64, [1], [["a" * 64]], ["a" * 64, "a" * 64])),
])  # fmt: skip
def test_token_with_a_changed_field_is_refused(name: str, values: tuple[Json, ...]) -> None:
    for value in values:
        assert checked(signed_by_us(encode({**BODY, name: value}))) == "CAP-022"


@pytest.mark.parametrize("name", sorted(BODY))
def test_token_without_one_of_its_fields_is_refused(name: str) -> None:
    less = {key: value for key, value in BODY.items() if key != name}
    assert checked(signed_by_us(encode(less))) == "CAP-022"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b'"token"', b"\xff", json.dumps(BODY).encode()),
        encode(BODY)[:-1] + b',"v":"nanovm-warrant/1"}',
        json.dumps(dict(reversed([*BODY.items()])), separators=(",", ":")).encode(),
        encode(BODY) + b"\n",
        encode(BODY).replace(b'"amount_minor":5', b'"amount_minor":5.0'),
        encode(BODY).replace(b'"run"', b'"r\\u0075n"'),
    ],
    ids=range(11),
)
def test_only_the_one_form_of_a_token_is_read(body: bytes) -> None:
    assert body != encode(BODY)
    assert checked(signed_by_us(body)) == "CAP-022"


def test_size_ends_at_its_limit() -> None:
    limit = signed.SIGNATURE_BYTES + SIZE_BYTES_MAX
    spare = limit - len(TOKEN) - len(b',"memo":""')
    for more in (0, 1):
        args: Json = {"amount_minor": 5, "memo": "x" * (spare + more), "payee": PAYEE}
        token = signed_by_us(encode(BODY).replace(encode(BODY["args"]), encode(args)))
        bound: Mapping[str, Json] = {**BOUND, "args": args}
        assert len(token) == limit + more
        if more:
            assert checked(token, bound) == "CAP-022"
        else:
            check(token, bound, PUBLIC, at_ms=ISSUED_MS)
