"""Seals a played run into bytes, as the shell's record does."""

from nanovm_core.core import envelope
from nanovm_core.core.canonical import decode
from nanovm_core.core.envelope import Place, Stored, encode_snapshot, seal, snapshot_hash
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.snapshots import _decoded
from nanovm_core.errors import VerificationError
from tests.core.kit.builders import Scene


def sealed(play: Scene, *, first_seq: int = 1) -> list[Stored]:
    """The envelopes of a run, one after the other."""
    chain: list[Stored] = []
    prev = envelope.ZERO
    for n, draft in enumerate(play.drafts):
        place = Place(log="test/log", seq=first_seq + n, run=play.first.run, n=n, prev=prev)
        names = {
            "program": draft.after.program,
            "policy": draft.after.policy,
            "snapshot": snapshot_hash(encode_snapshot(draft.after)),
        }
        chain.append(seal(draft, place, names=names))
        prev = chain[-1].hash
    return chain


def body(stored: Stored) -> dict[str, object]:
    """An envelope's fields."""
    value = decode(stored.data)
    assert isinstance(value, dict)
    return dict(value)


def rehashed(stored: Stored, data: bytes) -> Stored:
    """The envelope with other bytes, and the hash that they have."""
    return stored._replace(data=data, hash=envelope.canonical_hash(data))


def comes_back(snapshot: Snapshot) -> bool:
    """Whether a snapshot is read from its bytes as it was; what was just written is cached."""
    return _decoded(encode_snapshot(snapshot)) == snapshot


def place_of(fault: VerificationError) -> tuple[str, int]:
    """What a fault is and where."""
    return fault.code, fault.at
