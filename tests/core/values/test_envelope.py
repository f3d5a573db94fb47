"""Envelopes: canonical bytes, one hash, and what a recomputed chain sees and misses."""

import hashlib
import json
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import (
    ZERO,
    Place,
    Stored,
    chain_faults,
    check_chain,
    decode_snapshot,
    encode_snapshot,
    last_segment,
    seal,
    snapshot_hash,
    starts_segment,
)
from nanovm_core.core.fsm import quarantine
from nanovm_core.core.messages import NOTHING, Draft
from nanovm_core.errors import CanonicalError, VerificationError
from tests.core.kit.builders import RUN, Play
from tests.core.kit.chain import body, place_of, rehashed, sealed

CHAIN = sealed(Play().to_end())
LAST = len(CHAIN) - 1
FLIPS = [(n, at) for n, each in enumerate(CHAIN) for at in range(len(each.data))]


def fault(chain: Sequence[Stored], head: str = "") -> tuple[str, int]:
    with pytest.raises(VerificationError) as caught:
        check_chain(chain, run=RUN, head=head)
    return place_of(caught.value)


def renamed(at: int, **fields: object) -> list[Stored]:
    """The chain up to an envelope that says something else, with the hash of what it says."""
    return [*CHAIN[:at], rehashed(CHAIN[at], encode({**body(CHAIN[at]), **fields}))]


@pytest.mark.parametrize(
    "chain",
    [
        [*CHAIN[:2], CHAIN[2]._replace(hash=ZERO)],
        [*CHAIN[:2], CHAIN[2]._replace(n=7)],
        [*CHAIN[:2], rehashed(CHAIN[2], CHAIN[2].data + b" ")],
        renamed(2, run="another"),
        renamed(2, n=7),
        renamed(2, prev=ZERO),
    ],
    ids=["hash", "place", "not canonical", "run", "number", "order"],
)
def test_what_was_read_before_is_held_to_as_much_as_what_is_new(chain: list[Stored]) -> None:
    first = fault(chain)
    assert [*chain_faults(chain, run=RUN)]  # it reads on to the end: by now every byte is known
    assert fault(chain) == first


def test_whole_chain_verifies() -> None:
    check_chain(CHAIN, run=RUN)
    assert list(chain_faults(CHAIN, run=RUN)) == []


def test_a_field_that_says_nothing_is_left_out() -> None:
    nothing: dict[str, Any] = {
        "found": None,
        "rules": [],
        "out": (),
        "decision": {},
        "budget": NOTHING,
    }
    fields = body(envelope(1, ZERO, tool="", **nothing, at=0, held=False))
    held = {"v", "log", "seq", "run", "n", "kind", "at_ms", "actor", "prev", "at", "held"}
    assert {*fields} == held
    with pytest.raises(CanonicalError, match="CAN-002"):
        envelope(1, ZERO, at=0.0)


def test_bytes_are_canonical_json_and_the_hash_is_the_leaf_hash() -> None:
    prev = ZERO
    for n, each in enumerate(CHAIN):
        value = json.loads(each.data)
        again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert again.encode() == each.data
        assert hashlib.sha256(b"\x00" + each.data).hexdigest() == each.hash
        assert (value["v"], value["n"], value["prev"]) == ("nanovm-envelope/2", n, prev)
        assert value.get("length") == (len(CHAIN) if value["kind"] == "terminal" else None)
        prev = each.hash


def test_snapshot_hash_is_that_of_the_value_after_each_envelope() -> None:
    play = Play().to_end()
    for draft, each in zip(play.drafts, sealed(play), strict=True):
        data = encode_snapshot(draft.after)
        expected = hashlib.sha256(b"nanovm/snapshot/v2\x00" + data).hexdigest()
        assert body(each)["snapshot"] == expected == snapshot_hash(data)


def test_every_flipped_byte_of_every_envelope_is_found_at_its_place() -> None:
    for n, at in FLIPS[::3]:
        data = bytearray(CHAIN[n].data)
        data[at] ^= 1 + at % 255
        damaged = CHAIN[n]._replace(data=bytes(data))
        assert place_of(next(chain_faults([damaged], run=RUN, first_n=n))) == ("LOG-001", n)
        if at in (0, len(data) - 1):
            assert fault([*CHAIN[:n], damaged, *CHAIN[n + 1 :]]) == ("LOG-001", n)


@pytest.mark.parametrize("n", range(LAST))
def test_removed_swapped_or_duplicated_envelope_is_found_at_its_place(n: int) -> None:
    assert fault([*CHAIN[:n], *CHAIN[n + 1 :]]) == ("LOG-002", n)
    swapped = [*CHAIN[:n], CHAIN[n + 1], CHAIN[n], *CHAIN[n + 2 :]]
    duplicated = [*CHAIN[: n + 1], CHAIN[n], *CHAIN[n + 1 :]]
    for chain, at in ((swapped, n), (duplicated, n + 1)):
        assert fault(chain)[0] == "LOG-002"
        assert fault([each._replace(n=place) for place, each in enumerate(chain)])[1] == at


HEAD = CHAIN[-1].hash
SNAPSHOT = json.loads(encode_snapshot(Play().now))
TRUE = {each.hash for each in CHAIN}


def exchanged(*places: int, **fields: object) -> list[Stored]:
    """The chain with envelopes that say another time (or what is given), each with its hash."""
    chain = list(CHAIN)
    for n in places:
        chain[n] = rehashed(CHAIN[n], encode({**body(CHAIN[n]), **(fields or {"at_ms": 1})}))
    return chain


def suffix_rewritten(first: int, end: int) -> list[Stored]:
    """The chain with envelopes that say another time, and each the hash of the one before."""
    chain = list(CHAIN)
    for n in range(first, end):
        value = {**body(chain[n]), "at_ms": 1, "prev": chain[n - 1].hash}
        chain[n] = rehashed(chain[n], encode(value))
    return chain


def told(
    chain: Sequence[Stored], head: str = HEAD, vouched: Callable[[Stored], bool] | None = None
) -> list[tuple[int, str, str]]:
    found = chain_faults(chain, run=RUN, head=head, vouched=vouched)
    return [(each.at, each.expected, each.found) for each in found]


@pytest.mark.parametrize("n", range(LAST))
def test_an_envelope_exchanged_with_its_hash_is_named_and_its_neighbour_is_not(n: int) -> None:
    chain = exchanged(n)
    assert told(chain) == [(n, CHAIN[n].hash, chain[n].hash)]
    assert fault(chain, head=HEAD) == ("LOG-002", n)
    chain = exchanged(n, prev="a" * 64)
    assert told(chain) == [(n, CHAIN[n].hash, chain[n].hash)]


def test_the_first_one_names_no_past_whatever_vouches_for_it() -> None:
    chain = exchanged(0, prev="a" * 64)
    assert told(chain[:1], head=chain[0].hash) == [(0, ZERO, "a" * 64)]


def test_nothing_vouches_for_the_last_one_without_a_head() -> None:
    chain = exchanged(LAST - 1)
    assert told(chain, head="") == [(LAST, chain[LAST - 1].hash, CHAIN[LAST - 1].hash)]
    last = exchanged(LAST, prev="a" * 64)
    assert told(last, head=HEAD) == [(LAST, HEAD, last[LAST].hash)]


def test_of_exchanged_neighbours_the_later_is_sure_and_of_a_rewritten_part_its_end() -> None:
    chain = exchanged(4, 5)
    assert told(chain) == [(5, CHAIN[5].hash, chain[5].hash)]
    assert [at for at, _, _ in told(exchanged(4, 6))] == [4, 6]
    chain = suffix_rewritten(4, 7)
    assert told(chain) == [(6, CHAIN[6].hash, chain[6].hash)]


def test_a_gap_or_unreadable_bytes_behind_it_vouch_for_nothing() -> None:
    chain = exchanged(4)
    assert [at for at, _, _ in told([*chain[:6], *chain[7:]])] == [5, 6]
    unreadable = chain[6]._replace(data=b"{")
    assert [at for at, _, _ in told([*chain[:6], unreadable, *chain[7:]])] == [5, 6]
    changed = chain[6]._replace(data=chain[6].data.replace(b'"at_ms":', b'"at_ms":1'))
    assert [at for at, _, _ in told([*chain[:6], changed, *chain[7:]])] == [4, 6]


def test_what_another_record_says_of_one_of_them_decides() -> None:
    def vouched(stored: Stored) -> bool:
        return stored.hash in TRUE

    chain = exchanged(LAST - 1)
    assert told(chain, "", vouched) == [(LAST - 1, CHAIN[LAST - 1].hash, chain[LAST - 1].hash)]
    rewritten = exchanged(5, prev="a" * 64)
    rewritten[6] = rehashed(rewritten[6], encode({**body(rewritten[6]), "prev": rewritten[5].hash}))
    assert [at for at, _, _ in told(rewritten)] == [4, 6]  # the chain alone is led astray
    assert [at for at, _, _ in told(rewritten, vouched=vouched)] == [5, 6]


@pytest.mark.parametrize("answer", [True, False])
def test_another_record_that_says_the_same_of_both_decides_nothing(answer: bool) -> None:
    chain = exchanged(4)
    assert told(chain, vouched=lambda _: answer) == [(4, CHAIN[4].hash, chain[4].hash)]


def test_missed_are_a_rewritten_suffix_and_a_truncated_tail() -> None:
    for chain in (suffix_rewritten(LAST, LAST + 1), suffix_rewritten(5, LAST + 1), CHAIN[:-3]):
        check_chain(chain, run=RUN)


def envelope(n: int, prev: str, kind: str = "result", **said: object) -> Stored:
    """An envelope of its own."""
    draft = Draft(kind, 1_000 + n, "runtime", Play().now, MappingProxyType(said))
    return seal(draft, Place(log="log", seq=n, run=RUN, n=n, prev=prev), names={})


def test_an_integrity_envelope_alone_starts_a_segment_and_a_whole_one_opens_it() -> None:
    before = CHAIN[:2]
    integrity = envelope(2, ZERO, "integrity")
    assert last_segment([*before, integrity]) == 2
    nested = envelope(2, before[1].hash, slots={"kind": "integrity"})
    assert b'"kind":"integrity"' in nested.data
    assert last_segment([*before, nested]) == 0
    damaged = integrity._replace(hash=ZERO)
    assert last_segment([*before, damaged]) == 2  # and is its first fault
    assert [starts_segment(each) for each in (integrity, damaged, nested)] == [True, False, False]


def damaged_run() -> Play:
    """A run whose damage at n = 2 was sealed."""
    play = Play().to_propose()
    damage = VerificationError("LOG-001", "changed", at=2, expected="a" * 64, found="b" * 64)
    decision = quarantine(play.now, damage, at_ms=play.tick())
    play.drafts += decision.drafts
    play.now = decision.snapshot
    return play


def test_integrity_envelope_starts_a_segment_that_verifies_alone() -> None:
    chain = sealed(damaged_run())
    at = next(n for n, each in enumerate(chain) if body(each)["kind"] == "integrity")
    value = {**body(chain[at]), "prev": ZERO}
    chain[at] = rehashed(chain[at], encode(value))
    terminal = {**body(chain[at + 1]), "prev": chain[at].hash}
    chain[at + 1] = rehashed(chain[at + 1], encode(terminal))
    assert last_segment(chain) == at
    check_chain(chain[at:], run=RUN, first_n=at)
    assert (value["at"], value["expected"], value["found"]) == (2, "a" * 64, "b" * 64)
    assert [body(each)["kind"] for each in chain[at:]] == ["integrity", "terminal"]


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"{}", b'{"v":"nanovm-snapshot/1"}', b'{"v":"nanovm-snapshot/2","run":"r"}'),
        encode_snapshot(Play().now)[:-1],
        encode_snapshot(Play().now).replace(b'"v":', b'"x":1,"v":'),
        encode({**json.loads(encode_snapshot(Play().to_propose().now)), "owed": {"x": 1}}),
        *(encode({**SNAPSHOT, "v": version}) for version in ("nanovm-snapshot/999", "", 2, None)),
        *(encode({**SNAPSHOT, name: "large"}) for name in ("approved", "ignored", "allowed_by")),
        encode({**SNAPSHOT, "approved": 5}),
    ],
)
def test_bytes_that_are_no_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(VerificationError, match="LOG-003"):
        decode_snapshot(data)
