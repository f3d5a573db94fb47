"""Delegation: a chain only narrows, only grows at its end, and only its last holder can use it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core import delegation
from nanovm_core.core.authority.capabilities import Constraint, Grant, attenuate, grant_id
from nanovm_core.core.canonical import Json, encode
from nanovm_core.delegation import BLOCKS_MAX, blocks, delegate, inspect, issue, present, verify
from nanovm_core.delegation.blocks import Block
from tests.core.kit.builders import refused
from tests.core.kit.refund_desk import DESK, TOOL, held

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(1, 12)]
ROOT, FIRST, SECOND, THIRD, THIEF = KEYS[:5]
ROOT_PUBLIC = ROOT.public_key()
PROGRAM = "9" * 64
NOW_MS, ENDS_MS = 1_000, 5_000
REQUEST: Mapping[str, Json] = {"run": "run-1", "program": PROGRAM}

PAY = Grant(tool="pay", where={"amount": Constraint(min=1, max=100), "to": Constraint(prefix="a")})
MAIL = Grant(tool="mail", where={"to": Constraint(equals_slot="advice_to")}, expires_ms=4_000)
LESS = Grant(tool="pay", where={"amount": Constraint(min=1, max=10), "to": Constraint(prefix="ab")})
LEAST = Grant(
    tool="pay", where={"amount": Constraint(one_of=(5, 6)), "to": Constraint(one_of=("abc",))}
)


def grants(*given: Grant) -> Mapping[str, Grant]:
    """Grants by tool, as a program holds them."""
    return {grant.tool: grant for grant in given}


def chain(holders: Sequence[Ed25519PrivateKey] = (FIRST, SECOND, THIRD)) -> bytes:
    """A good chain of three blocks, to these holders."""
    first, second, third = holders
    made = issue(grants(PAY, MAIL), first.public_key(), ROOT, program=PROGRAM, expires_ms=ENDS_MS)
    made = delegate(made, grants(LESS), second.public_key(), first, ROOT_PUBLIC, expires_ms=ENDS_MS)
    return delegate(
        made, grants(LEAST), third.public_key(), second, ROOT_PUBLIC, expires_ms=ENDS_MS - 1
    )


CHAIN = chain()


def split(whole: bytes) -> list[bytes]:
    parts = []
    while whole:
        size = int.from_bytes(whole[:4], "big")
        parts.append(whole[4 : 4 + size])
        whole = whole[4 + size :]
    return parts


def joined(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def beginning(length: int) -> bytes:
    """The chain cut off after so many blocks."""
    return joined(*split(CHAIN)[:length])


def seen(whole: bytes, **changed: Any) -> delegation.Authority:
    """What the runtime reads in a chain."""
    asked: dict[str, Any] = {"program": PROGRAM, "at_ms": NOW_MS, **changed}
    return inspect(whole, ROOT_PUBLIC, **asked)


def code(whole: bytes, **changed: Any) -> str:
    """What the runtime refuses a chain with."""
    return refused(lambda: seen(whole, **changed))


def handed_on(whole: bytes, given: Mapping[str, Grant], key: Ed25519PrivateKey) -> str:
    """What an honest writer's own call is refused with."""
    holder = THIEF.public_key()
    return refused(lambda: delegate(whole, given, holder, key, ROOT_PUBLIC, expires_ms=NOW_MS))


def forged(key: Ed25519PrivateKey, *, after: bytes = CHAIN, **changed: Any) -> bytes:
    """The chain and one more block by this key, whatever it claims."""
    parts = split(after)
    good = Block(
        prev=blocks.block_id(parts[-1]),
        program=PROGRAM,
        grants=grants(LEAST),
        holder=THIEF.public_key(),
        expires_ms=ENDS_MS - 1,
    )
    return joined(*parts, blocks.write(good._replace(**changed), key))


def test_chain_gives_its_last_holder_what_the_last_block_says() -> None:
    authority = seen(CHAIN)
    assert (authority.expires_ms, authority.holder) == (ENDS_MS - 1, THIRD.public_key())
    assert len(set(authority.ids)) == 3
    assert authority.ids == tuple(blocks.block_id(part) for part in split(CHAIN))
    assert authority.grants.keys() == {"pay"}
    pay = authority.grants["pay"]
    assert (pay.where, pay.expires_ms) == (LEAST.where, ENDS_MS - 1)
    outer = [seen(beginning(length)).grants["pay"] for length in (1, 2)]
    assert pay.narrowed_from == (*map(grant_id, outer), *authority.ids)
    first = seen(beginning(1)).grants  # grants end with their chain or sooner
    assert (first["pay"].expires_ms, first["mail"].expires_ms) == (ENDS_MS, 4_000)


def test_presentation_is_as_it_is_written_down() -> None:
    said = encode({"block": seen(CHAIN).ids[2], "request": dict(REQUEST)})
    shown = THIRD.sign(b"nanovm/delegation-request/v1\0" + said)
    assert present(CHAIN, REQUEST, THIRD) == shown


def test_chain_ends_at_its_time_and_not_before() -> None:
    seen(CHAIN, at_ms=ENDS_MS - 2)
    assert code(CHAIN, at_ms=ENDS_MS - 1) == "CAP-007"
    never = issue(grants(PAY), FIRST.public_key(), ROOT, program=PROGRAM, expires_ms=0)
    assert code(never, at_ms=0) == "CAP-007"


def test_revoked_block_takes_all_that_come_after_it() -> None:
    ids = seen(CHAIN).ids
    for taken in ids:
        assert code(CHAIN, revoked=frozenset({taken, "x"})) == "CAP-008"
    prefix = beginning(1)
    assert seen(prefix, revoked=frozenset(ids[1:])).ids == ids[:1]


def test_chain_is_for_one_program_and_of_one_root() -> None:
    assert code(CHAIN, program="8" * 64) == "CAP-031"
    other = FIRST.public_key()
    assert refused(lambda: inspect(CHAIN, other, program=PROGRAM, at_ms=0)) == "CAP-031"
    own = issue(grants(PAY), THIEF.public_key(), THIEF, program=PROGRAM, expires_ms=ENDS_MS)
    assert code(own) == "CAP-031"
    assert code(joined(*split(own), *split(CHAIN)[1:])) == "CAP-031"
    moved = forged(THIRD, program="8" * 64)
    assert code(moved) == code(moved, program="8" * 64) == "CAP-031"


@pytest.mark.parametrize(
    "wider",
    [
        [PAY],
        [Grant(tool="pay")],
        [Grant(tool="pay", where={**LEAST.where, "to": Constraint()})],
        [Grant(tool="pay", where={**LEAST.where, "amount": Constraint(one_of=(5, 7))})],
        [Grant(tool="mail", where=MAIL.where)],
        [Grant(tool="wire_transfer")],
        [LEAST, Grant(tool="wire_transfer")],
    ],
)
def test_no_block_gives_more_than_the_one_before(wider: list[Grant]) -> None:
    given = grants(*wider)
    assert code(forged(THIRD, grants=given)) == handed_on(CHAIN, given, THIRD) == "CAP-030"


def test_no_block_lasts_longer_than_the_one_before() -> None:
    assert code(forged(THIRD, expires_ms=ENDS_MS)) == "CAP-030"
    assert seen(forged(THIRD)).expires_ms == ENDS_MS - 1
    lasting = Grant(tool="mail", where=MAIL.where, expires_ms=4_001)
    first = beginning(1)
    assert code(forged(FIRST, after=first, grants=grants(lasting))) == "CAP-030"
    assert (
        code(forged(FIRST, after=first, grants=grants(MAIL), expires_ms=ENDS_MS + 1)) == "CAP-030"
    )
    assert seen(forged(FIRST, after=first, grants=grants(MAIL), expires_ms=ENDS_MS))


@pytest.mark.parametrize("key", [ROOT, FIRST, SECOND, THIEF])
def test_only_the_last_holder_hands_on(key: Ed25519PrivateKey) -> None:
    assert code(forged(key)) == handed_on(CHAIN, {}, key) == "CAP-031"


@pytest.mark.parametrize("holders", [(FIRST, SECOND, THIRD), (ROOT, ROOT, ROOT)])
def test_no_block_can_be_taken_out_moved_or_shown_twice(
    holders: tuple[Ed25519PrivateKey, ...],
) -> None:
    first, second, third = split(chain(holders))
    for parts in (
        *((second,), (third,), (second, third), (first, third)),
        *((second, first, third), (first, third, second), (third, second, first)),
        *((first, first, second, third), (first, second, second, third)),
        *((first, second, third, third), (first, second, third, first)),
    ):
        assert code(joined(*parts)) == "CAP-031"


def test_blocks_of_two_chains_do_not_mix() -> None:
    first, _, _ = split(CHAIN)
    twin = issue(grants(PAY), FIRST.public_key(), ROOT, program=PROGRAM, expires_ms=ENDS_MS - 1)
    assert code(joined(*split(twin), *split(CHAIN)[1:])) == "CAP-031"
    assert seen(joined(first, *split(CHAIN)[1:])) == seen(CHAIN)


def test_no_changed_byte_is_accepted() -> None:
    for place in range(len(CHAIN)):
        changed = bytearray(CHAIN)
        changed[place] ^= 1 << place % 8
        assert code(bytes(changed)) in {"CAP-031", "CAP-032"}


@pytest.mark.parametrize(
    "whole",
    [b"", b"\0", b"\0\0\0", b"\0\0\0\0", CHAIN + b"\0", CHAIN[:-1], b"\0\0\0\5abcd", b"\xff" * 8],
)
def test_chain_is_its_blocks_and_nothing_else(whole: bytes) -> None:
    assert code(whole) == "CAP-031"


def test_length_ends_at_its_limit() -> None:
    whole = issue(grants(PAY), KEYS[1].public_key(), ROOT, program=PROGRAM, expires_ms=ENDS_MS)
    for before, after in pairwise(KEYS[1 : BLOCKS_MAX + 1]):
        given: Any = (grants(PAY), after.public_key(), before, ROOT_PUBLIC)
        whole = delegate(whole, *given, expires_ms=ENDS_MS)
    assert len(seen(whole).ids) == BLOCKS_MAX
    last = KEYS[BLOCKS_MAX]
    longer = forged(last, after=whole, grants=grants(PAY))
    assert code(longer) == handed_on(whole, grants(PAY), last) == "CAP-032"


def test_size_ends_at_its_limit() -> None:
    def sized(spare: int) -> bytes:
        wide = Grant(tool="pay", where={"to": Constraint(prefix="x" * spare)})
        return issue(grants(wide), FIRST.public_key(), ROOT, program=PROGRAM, expires_ms=ENDS_MS)

    spare = delegation.CHAIN_BYTES_MAX - len(sized(0))
    assert len(sized(spare)) == delegation.CHAIN_BYTES_MAX
    assert refused(lambda: sized(spare + 1)) == "CAP-032"


ASKED: Mapping[str, Any] = {
    "program": PROGRAM,
    "at_ms": NOW_MS,
    "request": REQUEST,
    "presentation": present(CHAIN, REQUEST, THIRD),
}


def unproved(whole: bytes, **changed: Any) -> str:
    """What the use of a chain is refused with."""
    return refused(lambda: verify(whole, ROOT_PUBLIC, **{**ASKED, **changed}))


def test_last_holder_alone_can_use_a_chain() -> None:
    assert verify(CHAIN, ROOT_PUBLIC, **ASKED) == seen(CHAIN)
    for key in (ROOT, FIRST, SECOND, THIEF):
        assert unproved(CHAIN, presentation=present(CHAIN, REQUEST, key)) == "CAP-031"
    for length in (1, 2):  # a thief cuts off the end
        prefix = beginning(length)
        assert seen(prefix).grants["pay"].where != LEAST.where
        assert unproved(prefix) == "CAP-031"
        for key in (THIRD, THIEF):
            assert code(forged(key, after=prefix)) == "CAP-031"
            assert unproved(prefix, presentation=present(prefix, REQUEST, key)) == "CAP-031"


def test_presentation_is_for_one_request_and_one_chain() -> None:
    assert unproved(CHAIN, request={**REQUEST, "run": "run-2"}) == "CAP-031"
    assert unproved(CHAIN, request={}) == "CAP-031"
    assert unproved(CHAIN, presentation=b"") == "CAP-031"
    twin = forged(SECOND, after=beginning(2), holder=THIRD.public_key(), expires_ms=9)
    assert seen(twin, at_ms=0).holder == seen(CHAIN).holder
    assert unproved(twin, at_ms=0) == "CAP-031"


def test_used_chain_is_held_to_time_program_and_revocation() -> None:
    assert unproved(CHAIN, at_ms=ENDS_MS) == "CAP-007"
    assert unproved(CHAIN, program="8" * 64) == "CAP-031"
    assert unproved(CHAIN, revoked=frozenset(seen(CHAIN).ids[:1])) == "CAP-008"


EUR = {"currency": Constraint(one_of=("EUR",))}
GIVEN = Grant(tool=TOOL, where=EUR, expires_ms=2**45)
HANDED = replace(GIVEN, where={**EUR, "amount_minor": Constraint(min=1, max=10**9)})


def lent() -> delegation.Authority:
    """What two blocks hand on: the second one less than the first."""
    ends: Any = {"expires_ms": 2**45}
    whole = issue(grants(GIVEN), FIRST.public_key(), ROOT, program=DESK.hash, **ends)
    whole = delegate(whole, grants(HANDED), SECOND.public_key(), FIRST, ROOT_PUBLIC, **ends)
    return inspect(whole, ROOT_PUBLIC, program=DESK.hash, at_ms=0)


LENT = lent()
NARROWED = DESK.attenuated(LENT.grants.values()).attenuated([replace(HANDED, expires_ms=2**45 - 1)])


@pytest.mark.parametrize(
    "origin",
    [*map(grant_id, (DESK.grants[TOOL], GIVEN, HANDED, NARROWED.grants[TOOL])), *LENT.ids],
    ids=["program", "first grant", "second grant", "run", "first block", "second block"],
)
def test_call_falls_with_whatever_its_grant_rests_on(origin: str) -> None:
    run = held(NARROWED)
    run.ledger.revoke(origin)
    run.run()
    assert (run.stands, run.till.asked) == ("awaiting_approval issue CAP-008", [])


def test_grant_that_is_narrowed_keeps_what_it_was_narrowed_from() -> None:
    own, outer = ("a" * 64, "b" * 64), Grant(tool="t", narrowed_from=("c" * 64, "a" * 64))
    inner = Grant(tool="t", narrowed_from=own)
    found = attenuate({"t": outer}, [inner])["t"].narrowed_from
    assert found == ("c" * 64, "a" * 64, grant_id(outer), "b" * 64)
