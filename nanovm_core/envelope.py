"""Envelopes and snapshots as bytes: encoding, hashing, and checking a stored chain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from nanovm_core.canonical import decode, digest, encode
from nanovm_core.errors import CanonicalError, VerificationError
from nanovm_core.messages import Draft, Effect, Reservation, Snapshot, Warrant
from nanovm_core.remembered import Remembered

ZERO = "0" * 64
LOG_RUN = "log"
VERSION = "nanovm-envelope/1"
_SNAPSHOTS: Remembered[Snapshot] = Remembered()
_SAYS_NOTHING: tuple[object, ...] = (None, "", [], (), {})
SNAPSHOT_VERSION = "nanovm-snapshot/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an envelope stands: its log and ``seq``, its run and ``n``, its predecessor's hash."""

    log: str
    seq: int
    run: str
    n: int
    prev: str


class Stored(NamedTuple):
    """An envelope as it lies in the database: exact bytes and the hash beside them."""

    n: int
    data: bytes
    hash: str


def canonical_hash(data: bytes) -> str:
    """SHA-256(0x00 || bytes): shown to people, ``prev`` of the next, RFC 9162 §2.1.1 leaf."""
    return digest(b"\x00", data)


def seal(draft: Draft, place: Place, *, names: Mapping[str, str]) -> Stored:
    """The envelope of a draft at its place. ``names`` adds the shell's own fields."""
    data = encode_envelope(draft, place, names=names)
    found = canonical_hash(data)
    snapshot = names.get("snapshot", "")
    _READ.keep(data, _Read(found, place.run, place.n, place.prev, draft.kind, snapshot))
    return Stored(n=place.n, data=data, hash=found)


def encode_envelope(draft: Draft, place: Place, *, names: Mapping[str, str]) -> bytes:
    """The bytes of an envelope. ``names`` adds fields of the shell (program, policy, snapshot)."""
    body = {key: value for key, value in draft.body.items() if value not in _SAYS_NOTHING}
    if draft.kind == "terminal":
        body["length"] = place.n + 1
    return encode(
        {
            "v": VERSION,
            "log": place.log,
            "seq": place.seq,
            "run": place.run,
            "n": place.n,
            "kind": draft.kind,
            "at_ms": draft.at_ms,
            "actor": draft.actor,
            "prev": place.prev,
            **names,
            **body,
        }
    )


def check_chain(envelopes: Sequence[Stored], *, run: str, first_n: int = 0) -> None:
    """Recompute a segment of a run's chain from its stored bytes.

    Each envelope must hash to the hash beside it, be canonical, bear its run and the next
    ``n``, and name its predecessor. What a bare chain cannot see is in CAVEATS.md.

    Raises:
        VerificationError: LOG-001 or LOG-002, at the first bad ``n``, expected and found.
    """
    prev, n, known = ZERO, first_n, _READ.get
    for each in envelopes:
        read = known(each.data)
        if read is None or read[:4] != (each.hash, run, n, prev) or each.n != n:
            break  # read for the first time, or at fault: looked at with care
        prev, n = each.hash, n + 1
    else:
        return
    for fault in chain_faults(envelopes, run=run, first_n=first_n):
        raise fault


def chain_faults(
    envelopes: Iterable[Stored], *, run: str, first_n: int = 0
) -> Iterator[VerificationError]:
    """Every fault of a segment, in order: what ``check_chain`` would raise, and what follows it."""
    prev, n = ZERO, first_n
    for stored in envelopes:
        if stored.n != n:
            yield VerificationError(
                "LOG-002", f"Envelope n = {n} (event #{n + 1}) is missing.", at=n, expected=prev
            )
            prev = ""
        prev, n, before = stored.hash, stored.n + 1, prev
        try:
            _check(stored, run=run, prev=before)
        except VerificationError as fault:
            yield fault
            prev = ""  # what the next one names says nothing more: one change is one fault


def last_segment(envelopes: Sequence[Stored]) -> int:
    """The index at which the newest segment starts: the last ``integrity`` envelope, or 0.

    One that is damaged itself starts it too, and is then its first fault: what it named is
    older, and would be found in its place.
    """
    for index in range(len(envelopes) - 1, 0, -1):
        data = envelopes[index].data
        if b'"kind":"integrity"' in data and _read(data).kind == "integrity":
            return index
    return 0


def starts_segment(stored: Stored) -> bool:
    """Whether these bytes are a whole ``integrity`` envelope, which opens a new segment."""
    read = _read(stored.data)
    return read.kind == "integrity" and read.hash == stored.hash


def snapshot_of(stored: Stored) -> str:
    """The hash of the snapshot that an envelope seals; damaged bytes seal none."""
    return _read(stored.data).snapshot


class _Read(NamedTuple):
    """What an envelope's bytes say, as far as a chain is about it; or why they say nothing."""

    hash: str
    run: object = None
    n: object = None
    prev: object = None
    kind: object = None
    snapshot: str = ""
    fault: str = ""


_READ: Remembered[_Read] = Remembered()


def _read(data: bytes) -> _Read:
    """Read an envelope. The same bytes always say the same: they are parsed once."""
    return _READ.get(data) or _READ.keep(data, _parsed(data))


def _parsed(data: bytes) -> _Read:
    found = canonical_hash(data)
    try:
        value = decode(data)
    except CanonicalError as error:
        return _Read(found, fault=error.text)
    if not isinstance(value, dict):
        return _Read(found)
    return _Read(
        hash=found,
        run=value.get("run"),
        n=value.get("n"),
        prev=value.get("prev"),
        kind=value.get("kind"),
        snapshot=str(value.get("snapshot", "")),
    )


def _check(stored: Stored, *, run: str, prev: str) -> None:
    """Check one envelope; an empty ``prev`` is a predecessor that is itself missing."""
    n, read = stored.n, _read(stored.data)
    found = read.hash
    if found != stored.hash:
        raise VerificationError(
            "LOG-001",
            f"Envelope n = {n} (event #{n + 1}) was changed.",
            at=n,
            expected=stored.hash,
            found=found,
        )
    if read.fault:
        raise VerificationError(
            "LOG-001",
            f"Envelope n = {n} (event #{n + 1}) is not canonical: {read.fault}",
            at=n,
            found=found,
        )
    if (read.run, read.n) != (run, n):
        raise VerificationError(
            "LOG-002", f"Envelope n = {n} (event #{n + 1}) belongs elsewhere.", at=n, found=found
        )
    if prev and read.prev != prev:
        raise VerificationError(
            "LOG-002",
            f"Envelope n = {n} (event #{n + 1}) does not name its predecessor.",
            at=n,
            expected=prev,
            found=str(read.prev or ""),
        )


# --- snapshots -----------------------------------------------------------------------------


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot: every field that says something, refs and clear facts only."""
    data = encode({"v": SNAPSHOT_VERSION, **dict(_said(snapshot))})
    _SNAPSHOTS.keep(data, snapshot)
    return data


def snapshot_hash(data: bytes) -> str:
    """What an envelope's ``snapshot`` field holds for these bytes."""
    return digest(b"nanovm/snapshot/v2\0", data)


def decode_snapshot(data: bytes) -> Snapshot:
    """The snapshot of these bytes; the same value for the same bytes, for nobody can change it.

    Raises:
        VerificationError: LOG-003 where they are not a snapshot.
    """
    return _SNAPSHOTS.get(data) or _SNAPSHOTS.keep(data, _decoded(data))


def _decoded(data: bytes) -> Snapshot:
    try:
        value = decode(data)
        if not isinstance(value, dict) or value.pop("v", None) != SNAPSHOT_VERSION:
            raise VerificationError("LOG-003", "The stored snapshot has no known version.", at=-1)
        return _snapshot(value)
    except (CanonicalError, KeyError, TypeError, ValueError) as error:
        raise VerificationError("LOG-003", "The stored snapshot is unreadable.", at=-1) from error


def _said(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    for name, value in zip(snapshot._fields, snapshot, strict=True):
        if value:  # what is empty, 0, False or None says nothing
            yield name, value if type(value) is str or type(value) is int else _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, Effect):
        pairs = zip(value._fields, value, strict=True)
        return {name: _plain(part) for name, part in pairs if part is not None}
    if isinstance(value, Warrant):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _snapshot(value: Mapping[str, object]) -> Snapshot:
    given = dict(value)
    for name in ("approved", "ignored", "allowed_by", "reason"):
        if name in given:
            given[name] = tuple(_list(given[name]))
    for name in ("slots", "used"):
        given[name] = MappingProxyType(_dict(given.get(name, {})))
    if "owed" in given:
        given["owed"] = _effect(given["owed"])
    if "call" in given:
        tool, args = _list(given["call"])
        given["call"] = (tool, MappingProxyType(_dict(args)))
    reserved = (_list(each) for each in _list(given.get("reserved", [])))
    given["reserved"] = tuple(Reservation(*each) for each in reserved)  # type: ignore[arg-type]
    return Snapshot(**given)  # type: ignore[arg-type]


def _effect(value: object) -> Effect:
    given = dict(_dict(value))
    warrant = given.pop("warrant", None)
    given["args"] = MappingProxyType(_dict(given["args"]))
    found = Warrant(**_dict(warrant)) if warrant is not None else None  # type: ignore[arg-type]
    return Effect(**given, warrant=found)  # type: ignore[arg-type]


def _dict(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("expected an object")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return value
