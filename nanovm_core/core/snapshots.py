"""Snapshots as bytes: a run's value, encoded, hashed and read again."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import compress
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from nanovm_core.core.canonical import decode, digest, encode, freeze
from nanovm_core.core.messages import Effect, Reservation, Snapshot, Warrant
from nanovm_core.errors import CanonicalError, VerificationError

SNAPSHOT_VERSION = "nanovm-snapshot/2"
T = TypeVar("T")
KNOWN_MAX = 4096  # values of some kilobytes each
snapshot_hash = partial(digest, b"nanovm/snapshot/v2\0")  # what an envelope holds for these bytes


class BytesCache(Generic[T]):
    """Immutable values by the bytes they were read from; the oldest are dropped."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def get(self, data: bytes) -> T | None:
        return self._known.get(data)

    def keep(self, data: bytes, value: T) -> T:
        self._known[data] = value
        if len(self._known) > KNOWN_MAX:
            with suppress(KeyError, RuntimeError, StopIteration):  # another thread drops one too
                del self._known[next(iter(self._known))]
        return value


_SNAPSHOTS: BytesCache[Snapshot] = BytesCache()


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot: every non-empty field, refs and clear facts only."""
    pairs = zip(compress(Snapshot._fields, snapshot), filter(None, snapshot), strict=True)
    said = dict[str, Any](pairs, v=SNAPSHOT_VERSION)
    if owed := snapshot.owed:
        said["owed"] = {name: each for name, each in owed._asdict().items() if each is not None}
        if owed.warrant is not None:
            said["owed"] |= {"warrant": owed.warrant._asdict()}
    if snapshot.reserved:
        said["reserved"] = [[*each] for each in snapshot.reserved]
    return encode(said)


def decode_snapshot(data: bytes) -> Snapshot:
    """The snapshot of these bytes, cached (VerificationError LOG-003: not a snapshot)."""
    return _SNAPSHOTS.get(data) or _SNAPSHOTS.keep(data, _decoded(data))


def _decoded(data: bytes) -> Snapshot:
    try:
        value = decode(data)
        if not isinstance(value, dict) or value.pop("v", None) != SNAPSHOT_VERSION:
            raise VerificationError("LOG-003", "The stored snapshot has an unknown version.", at=-1)
        return _snapshot(value)
    except (CanonicalError, KeyError, TypeError, ValueError) as error:
        raise VerificationError("LOG-003", "The stored snapshot is unreadable.", at=-1) from error


def _snapshot(value: Mapping[str, object]) -> Snapshot:
    given = dict(value)
    for name in ("approved", "ignored", "allowed_by", "reason"):
        if name in given:
            given[name] = tuple(_list(given[name]))
    for name in ("slots", "used", "origins", "agreed"):
        given[name] = MappingProxyType(_dict(given.get(name, {})))
    if "owed" in given:
        given["owed"] = _effect(given["owed"])
    if "call" in given:
        tool, args = _list(given["call"])
        given["call"] = (tool, freeze(_dict(args)))
    reserved = (_list(each) for each in _list(given.get("reserved", [])))
    given["reserved"] = tuple(Reservation(*each) for each in reserved)  # type: ignore[arg-type]
    return Snapshot(**given)  # type: ignore[arg-type]


def _effect(value: object) -> Effect:
    given = dict(_dict(value))
    warrant = given.pop("warrant", None)
    given["args"] = freeze(_dict(given["args"]))
    found = Warrant(**_dict(warrant)) if warrant is not None else None  # type: ignore[arg-type]
    if "origins" in given:
        given["origins"] = MappingProxyType(_dict(given["origins"]))
    return Effect(**given, warrant=found)  # type: ignore[arg-type]


def _dict(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("expected an object")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return value
