"""Faults of a stored chain, and snapshots that are not read."""

from types import MappingProxyType

import pytest

from nanovm_core.core.canonical import Json, decode, encode
from nanovm_core.core.envelope import (
    ZERO,
    Place,
    Stored,
    canonical_hash,
    chain_faults,
    decode_snapshot,
    encode_envelope,
    encode_snapshot,
    last_segment,
    starts_segment,
)
from nanovm_core.core.messages import Draft, RunId, Snapshot
from nanovm_core.errors import VerificationError

RUN = RunId("a-run")
SNAPSHOT = Snapshot(run=RUN, program="p" * 64, policy="q" * 64, state="running.active", step="one")


def envelope(n: int, prev: str, kind: str = "result", **body: object) -> Stored:
    draft = Draft(kind, 1_000 + n, "runtime", SNAPSHOT, MappingProxyType(body))
    data = encode_envelope(draft, Place(log="log", seq=n, run=RUN, n=n, prev=prev), names={})
    return Stored(n=n, data=data, hash=canonical_hash(data))


def chain(length: int) -> list[Stored]:
    envelopes: list[Stored] = []
    for n in range(length):
        envelopes.append(envelope(n, envelopes[-1].hash if envelopes else ZERO))
    return envelopes


def faults(envelopes: list[Stored]) -> list[tuple[str, int]]:
    return [(fault.code, fault.at) for fault in chain_faults(envelopes, run=RUN)]


def test_a_field_that_says_nothing_is_left_out() -> None:
    fields = decode(envelope(1, ZERO, tool="", found=None, rules=[], decision={}, at=0).data)
    assert isinstance(fields, dict)
    assert {*fields} == {"v", "log", "seq", "run", "n", "kind", "at_ms", "actor", "prev", "at"}


def test_first_envelope_names_no_past() -> None:
    first = envelope(0, "1" * 64)
    assert faults([first]) == [("LOG-002", 0)]
    assert faults([first, envelope(1, first.hash)]) == [("LOG-002", 0)]


def test_one_change_is_one_fault() -> None:
    envelopes = chain(4)
    data = envelopes[1].data + b" "
    envelopes[1] = Stored(n=1, data=data, hash=canonical_hash(data))
    assert faults(envelopes) == [("LOG-001", 1)]


def test_an_integrity_envelope_alone_starts_a_segment_and_a_whole_one_opens_it() -> None:
    before = chain(2)
    sealed = envelope(2, ZERO, "integrity")
    assert last_segment([*before, sealed]) == 2
    nested = envelope(2, before[1].hash, slots={"kind": "integrity"})
    assert b'"kind":"integrity"' in nested.data
    assert last_segment([*before, nested]) == 0
    damaged = Stored(n=2, data=sealed.data, hash=ZERO)
    assert last_segment([*before, damaged]) == 2  # and is its first fault
    assert [starts_segment(each) for each in (sealed, damaged, nested)] == [True, False, False]


@pytest.mark.parametrize(
    "change",
    [
        *({"v": version} for version in ("nanovm-snapshot/999", "", 2, None)),
        *({name: "large"} for name in ("approved", "ignored", "allowed_by")),
    ],
    ids=str,
)
def test_snapshot_of_another_format_or_with_a_text_for_a_list_is_not_read(
    change: dict[str, Json],
) -> None:
    fields = decode(encode_snapshot(SNAPSHOT))
    assert isinstance(fields, dict)
    with pytest.raises(VerificationError, match="LOG-003"):
        decode_snapshot(encode({**fields, **change}))
