"""The logs that the signer refuses to sign, in a file that the pages and /healthz read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from engine.clock import now_ms
from engine.store import state_file
from nanovm_core.errors import VerificationError

UNSIGNED_MS_MAX = 60_000  # an envelope waits no longer for its checkpoint
QUIET_MS = 2_000  # a log that nothing was added to for so long is signed: nobody adds to it now
URGENT = ("terminal", "erasure_done")  # these are signed at once: a visitor waits for the receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedLog:
    """A log whose present tree the signer does not sign, since when, and why."""

    origin: str
    code: str
    text: str
    since_ms: int


def unsigned_logs() -> list[UnsignedLog]:
    """The logs that are not signed, by name; empty where every log is signed."""
    try:
        data = _file().read_bytes()
    except FileNotFoundError:
        return []
    return [UnsignedLog(**each) for each in json.loads(data)]


def report(origin: str, error: VerificationError) -> None:
    """Record that a log's tree is not signed, until ``clear``."""
    with _changed() as known:
        since_ms = known[origin].since_ms if origin in known else now_ms()
        known[origin] = UnsignedLog(
            origin=origin, code=error.code, text=error.text, since_ms=since_ms
        )


def clear(origin: str) -> None:
    """Remove a log that was signed."""
    if any(each.origin == origin for each in unsigned_logs()):
        with _changed() as known:
            known.pop(origin, None)


@contextmanager
def _changed() -> Iterator[dict[str, UnsignedLog]]:
    with state_file.locked(_file()) as slot:
        known = {each.origin: each for each in unsigned_logs()}
        yield known
        rows = [asdict(known[origin]) for origin in sorted(known)]
        slot.replace(json.dumps(rows).encode())


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "refusals.json"
    return file
