"""Envelopes and snapshots as bytes: encoding, hashing, and checking a stored chain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nanovm_core.canonical import decode, digest, encode
from nanovm_core.errors import CanonicalError, VerificationError
from nanovm_core.messages import Draft, Effect, Reservation, Snapshot, Warrant

ZERO = "0" * 64
LOG_RUN = "log"
VERSION = "nanovm-envelope/1"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An envelope as it lies in the database: exact bytes and the hash beside them."""

    n: int
    data: bytes
    hash: str


def canonical_hash(data: bytes) -> str:
    """SHA-256(0x00 || bytes): shown to people, ``prev`` of the next, RFC 9162 §2.1.1 leaf."""
    return digest(b"\x00", data)


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
    for fault in chain_faults(envelopes, run=run, first_n=first_n):
        raise fault


def chain_faults(
    envelopes: Sequence[Stored], *, run: str, first_n: int = 0
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
    """The index at which the newest segment starts: the last ``integrity`` envelope, or 0."""
    for index in range(len(envelopes) - 1, 0, -1):
        if b'"kind":"integrity"' in envelopes[index].data and starts_segment(envelopes[index]):
            return index
    return 0


def starts_segment(stored: Stored) -> bool:
    """Whether these bytes are a whole ``integrity`` envelope, which opens a new segment."""
    try:
        value = decode(stored.data)
    except CanonicalError:
        return False
    return (
        isinstance(value, dict)
        and value.get("kind") == "integrity"
        and canonical_hash(stored.data) == stored.hash
    )


def _check(stored: Stored, *, run: str, prev: str) -> None:
    """Check one envelope; an empty ``prev`` is a predecessor that is itself missing."""
    n, found = stored.n, canonical_hash(stored.data)
    if found != stored.hash:
        raise VerificationError(
            "LOG-001",
            f"Envelope n = {n} (event #{n + 1}) was changed.",
            at=n,
            expected=stored.hash,
            found=found,
        )
    try:
        value = decode(stored.data)
    except CanonicalError as error:
        raise VerificationError(
            "LOG-001",
            f"Envelope n = {n} (event #{n + 1}) is not canonical: {error.text}",
            at=n,
            found=found,
        ) from error
    if not isinstance(value, dict) or (value.get("run"), value.get("n")) != (run, n):
        raise VerificationError(
            "LOG-002", f"Envelope n = {n} (event #{n + 1}) belongs elsewhere.", at=n, found=found
        )
    if prev and value.get("prev") != prev:
        raise VerificationError(
            "LOG-002",
            f"Envelope n = {n} (event #{n + 1}) does not name its predecessor.",
            at=n,
            expected=prev,
            found=str(value.get("prev", "")),
        )


# --- snapshots -----------------------------------------------------------------------------


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot: every field that says something, refs and clear facts only."""
    return encode({"v": SNAPSHOT_VERSION, **dict(_said(snapshot))})


def snapshot_hash(data: bytes) -> str:
    """What an envelope's ``snapshot`` field holds for these bytes."""
    return digest(b"nanovm/snapshot/v2\0", data)


def decode_snapshot(data: bytes) -> Snapshot:
    """The snapshot of these bytes.

    Raises:
        VerificationError: LOG-003 where they are not a snapshot.
    """
    try:
        value = decode(data)
        if not isinstance(value, dict) or value.pop("v", None) != SNAPSHOT_VERSION:
            raise VerificationError("LOG-003", "The stored snapshot has no known version.", at=-1)
        return _snapshot(value)
    except (CanonicalError, KeyError, TypeError, ValueError) as error:
        raise VerificationError("LOG-003", "The stored snapshot is unreadable.", at=-1) from error


def _said(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    for name, value in zip(snapshot._fields, snapshot, strict=True):
        if value in (None, "", (), False, 0) or value == {}:
            continue
        yield name, _plain(value)


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
