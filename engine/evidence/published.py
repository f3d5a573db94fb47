"""What the signer publishes for the pages and /healthz, in files: its sign of life, its public key,
and the logs that it refuses to sign.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from django.conf import settings

from engine import clock
from engine.ops import said
from engine.store import state_file
from nanovm_core.errors import VerificationError
from nanovm_core.proof.notes import Verifier

NAME = "signer"
REPORT_MS = 1_000  # how often it says that it is alive
SILENT_MS_MAX = 15_000  # after this the signer counts as dead; a round over many logs takes less
UNSIGNED_MS_MAX = 60_000  # an envelope waits no longer for its checkpoint
QUIET_MS = 2_000  # a log is signed once nothing was added to it for so long
URGENT = ("terminal", "erasure_done")  # these are signed at once: a visitor waits for the receipt
KEY, REFUSALS = "log_key.pub", "refusals.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedLog:
    """A log whose present tree the signer does not sign, since when, and why."""

    origin: str
    code: str
    text: str
    since_ms: int


def report_alive() -> None:
    """Record that the signer is alive; called each round, it writes once in ``REPORT_MS``."""
    since_ms = silent_ms()
    if since_ms is None or not 0 <= since_ms < REPORT_MS:
        said.say(NAME)


def silent_ms() -> int | None:
    """How long ago the signer was last alive; None where it never ran."""
    last = said.heard(NAME)
    return None if last is None else clock.now_ms() - last.at_ms


def publish_key(key: bytes) -> None:
    """Store the public key that signs from now on; write only where it changed."""
    if _read(KEY) != key.hex().encode():
        with state_file.locked(settings.NANOVM_DATA / KEY) as slot:
            slot.replace(key.hex().encode())


def verifier(origin: str) -> Verifier | None:
    """What a log's notes are checked with, by this server's own word; None before it signed.

    A reader who gets the key from the server under audit should keep it from then on.
    """
    key = (_read(KEY) or b"").decode("ascii")
    return Verifier(name=origin, public=bytes.fromhex(key)) if key else None


def unsigned_logs() -> list[UnsignedLog]:
    """The logs that are not signed, by name; empty where every log is signed."""
    stored = _read(REFUSALS)
    return [UnsignedLog(**each) for each in json.loads("[]" if stored is None else stored)]


def report(origin: str, error: VerificationError) -> None:
    """Record that a log's tree is not signed, until ``clear``."""
    with _changed() as known:
        since_ms = known[origin].since_ms if origin in known else clock.now_ms()
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
    with state_file.locked(settings.NANOVM_DATA / REFUSALS) as slot:
        known = {each.origin: each for each in unsigned_logs()}
        yield known
        rows = [asdict(known[origin]) for origin in sorted(known)]
        slot.replace(json.dumps(rows).encode())


def _read(name: str) -> bytes | None:
    with suppress(FileNotFoundError):
        return (settings.NANOVM_DATA / name).read_bytes()
    return None
