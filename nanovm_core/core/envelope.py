"""Envelopes as bytes: encoding, hashing, and checking a stored chain."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from nanovm_core.core.canonical import decode, digest, encode
from nanovm_core.core.messages import Draft
from nanovm_core.core.snapshots import BytesCache
from nanovm_core.core.snapshots import decode_snapshot as decode_snapshot
from nanovm_core.core.snapshots import encode_snapshot as encode_snapshot
from nanovm_core.core.snapshots import snapshot_hash as snapshot_hash
from nanovm_core.errors import CanonicalError, VerificationError

ZERO = "0" * 64
LOG_RUN = "log"
VERSION = "nanovm-envelope/2"
_EMPTY_SAYS_NOTHING = frozenset({type(None), str, list, tuple, dict, MappingProxyType})
EXCHANGED = "was changed together with its hash: the next envelope names another hash."


class Place(NamedTuple):
    """An envelope's log and ``seq``, run and ``n``, and its predecessor's hash."""

    log: str
    seq: int
    run: str
    n: int
    prev: str


class Stored(NamedTuple):
    """A stored envelope: exact bytes and the hash beside them."""

    n: int
    data: bytes
    hash: str


Vouched = Callable[[Stored], bool]  # whether another record has its hash


def canonical_hash(data: bytes) -> str:
    """An envelope's hash, SHA-256(0x00 || bytes) in hex: ``prev`` of the next, RFC 9162 leaf."""
    return digest(b"\x00", data)


def seal(draft: Draft, place: Place, *, names: Mapping[str, object]) -> Stored:
    """The envelope of a draft; ``names``: program, policy, snapshot, what is ``given``."""
    said: dict[str, object] = {
        "v": VERSION,
        "log": place.log,
        "seq": place.seq,
        "run": place.run,
        "n": place.n,
        "prev": place.prev,
        "kind": draft.kind,
        "at_ms": draft.at_ms,
        "actor": draft.actor,
        **names,
    }
    for key, value in draft.body.items():
        if value or type(value) not in _EMPTY_SAYS_NOTHING:
            said[key] = value
    if draft.kind == "terminal":
        said["length"] = place.n + 1
    data = encode(said)
    return Stored(place.n, data, canonical_hash(data))


def check_chain(envelopes: Sequence[Stored], *, run: str, first_n: int = 0, head: str = "") -> None:
    """Recompute a segment of a run's chain from its stored bytes.

    Each envelope must hash to its stored hash, be canonical, bear its run and the next ``n``, and
    name its predecessor. ``head``, where known, only helps to tell which one is bad: the last
    hash is not compared with it.

    Raises:
        VerificationError: LOG-001 or LOG-002, at the first bad ``n``, expected and found.
    """
    prev, n, known = ZERO, first_n, _READ.get
    for each in envelopes:
        read = known(each.data)
        if read is None or read[:4] != (each.hash, run, n, prev) or each.n != n:
            break  # not cached, or at fault
        prev, n = each.hash, n + 1
    else:
        return
    for fault in chain_faults(envelopes, run=run, first_n=first_n, head=head):
        raise fault


def chain_faults(
    envelopes: Iterable[Stored],
    *,
    run: str,
    first_n: int = 0,
    head: str = "",
    vouched: Vouched | None = None,
) -> Iterator[VerificationError]:
    """Every fault of a segment, in order; ``check_chain`` raises the first.

    Where the later of two intact envelopes does not name the earlier, one was changed with its
    hash. ``vouched`` decides, where it knows exactly one of them. Else the later one is intact if
    the next envelope, or ``head`` after the last, names its hash.
    """
    prev, n = ZERO, first_n
    earlier: Stored | None = None
    for stored, after in _with_next(envelopes):
        if stored.n != n:
            yield _fault("LOG-002", n, "is missing.", expected=prev)
            prev = ""
        prev, n, before = stored.hash, stored.n + 1, prev
        fault = _check(stored, run=run)
        if fault is None and before and _read(stored.data).prev != before:
            fault = _unlinked(stored, earlier, _named(after, n, head), vouched)
        if fault is not None:
            yield fault
        if fault is not None and fault.at == stored.n:
            prev = ""  # one change is one fault
        earlier = stored


def _unlinked(
    stored: Stored, earlier: Stored | None, named: str, vouched: Vouched | None
) -> VerificationError:
    prev = _read(stored.data).prev
    if earlier and _is_whole(stored, earlier, named, vouched):
        return _fault("LOG-002", earlier.n, EXCHANGED, prev, earlier.hash)
    if named not in ("", stored.hash):
        return _fault("LOG-002", stored.n, EXCHANGED, named, stored.hash)
    due = earlier.hash if earlier else ZERO
    return _fault("LOG-002", stored.n, "does not name its predecessor.", due, prev)


def _with_next(envelopes: Iterable[Stored]) -> Iterator[tuple[Stored, Stored | None]]:
    rest = iter(envelopes)
    now = next(rest, None)
    while now is not None:
        after = next(rest, None)
        yield now, after
        now = after


def _named(after: Stored | None, n: int, head: str) -> str:
    """The hash that the next envelope, or ``head``, names; empty where ``n`` is missing."""
    if after is None:
        return head
    return str(_read(after.data).prev or "") if after.n == n else ""


def _is_whole(later: Stored, earlier: Stored, named: str, vouched: Vouched | None) -> bool:
    sides = (vouched(earlier), vouched(later)) if vouched else (False, False)
    return sides[1] if sides[0] != sides[1] else named == later.hash


def last_segment(envelopes: Sequence[Stored]) -> int:
    """Where the newest segment starts: the last ``integrity`` envelope, or 0.

    A damaged one counts too, and is then the segment's first fault.
    """
    for index in range(len(envelopes) - 1, 0, -1):
        data = envelopes[index].data
        if b'"kind":"integrity"' in data and _read(data).kind == "integrity":
            return index
    return 0


def starts_segment(stored: Stored) -> bool:
    """Whether this is an intact ``integrity`` envelope, which opens a segment."""
    read = _read(stored.data)
    return read.kind == "integrity" and read.hash == stored.hash


def body_of(data: bytes | memoryview) -> dict[str, Any]:
    """The fields of an envelope's bytes; damaged bytes have none."""
    try:
        value = decode(bytes(data))
    except CanonicalError:
        return {}
    return dict(value) if isinstance(value, dict) else {}


def snapshot_of(stored: Stored) -> str:
    """The hash of the snapshot that an envelope seals; empty for damaged bytes."""
    return _read(stored.data).snapshot


def log_of(stored: Stored) -> str:
    """The log that an envelope names; empty if damaged."""
    return _read(stored.data).log


class _Read(NamedTuple):
    """What an envelope's bytes say about its chain, or their ``fault``."""

    hash: str
    run: object = None
    n: object = None
    prev: object = None
    kind: object = None
    snapshot: str = ""
    log: str = ""
    fault: str = ""


_READ: BytesCache[_Read] = BytesCache()


def _read(data: bytes) -> _Read:
    return _READ.get(data) or _READ.keep(data, _parsed(data))


def _parsed(data: bytes) -> _Read:
    found = canonical_hash(data)
    try:
        value = decode(data)
    except CanonicalError as error:
        return _Read(found, fault=error.text)
    if not isinstance(value, dict):
        return _Read(found)
    run, n, prev, kind = (value.get(name) for name in ("run", "n", "prev", "kind"))
    snapshot, log = (str(value.get(name, "")) for name in ("snapshot", "log"))
    return _Read(found, run, n, prev, kind, snapshot, log)


def _check(stored: Stored, *, run: str) -> VerificationError | None:
    n, read = stored.n, _read(stored.data)
    if read.hash != stored.hash:
        return _fault("LOG-001", n, "was changed.", stored.hash, read.hash)
    if read.fault:
        return _fault("LOG-001", n, f"is not canonical: {read.fault}", found=read.hash)
    if (read.run, read.n) != (run, n):
        return _fault("LOG-002", n, "belongs to another run or place.", found=read.hash)
    return None


def _fault(
    code: str, n: int, what: str, expected: object = "", found: object = ""
) -> VerificationError:
    text = f"Envelope n = {n} (event #{n + 1}) {what}"
    return VerificationError(code, text, at=n, expected=str(expected or ""), found=str(found or ""))
