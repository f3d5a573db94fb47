"""The signer's keys: one for all logs, and old ones until every log has moved on from them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from engine.store import state_file
from engine.vault.key_store import load_or_create_key
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Verifier

LOST = "LOG-007"
CURRENT, NEXT, OLD = "key", "key-next", "key-old-"
RETIRED, HALF = "retired-", ".public"  # the public half of a key that signs nothing any more


def folder() -> Path:
    """The signer's own folder: its keys and its state files."""
    return state_file.private(settings.NANOVM_DATA / "signer")


def logs() -> Path:
    """What the signer signed last, a file for each log."""
    return state_file.private(folder() / "logs")


def closed_heads() -> Path:
    """What the signer signed last of logs that a restore closed; they are never signed again."""
    return state_file.private(folder() / "closed")


def memory(origin: str) -> Path:
    """The file of what the signer signed last of a log."""
    return logs() / state_file.file_name(origin)


def is_closed(origin: str) -> bool:
    """Whether a restore closed the log, by the signer's own state files."""
    return (closed_heads() / state_file.file_name(origin)).exists()


def close(origin: str) -> None:
    """Keep what was signed of a log where nothing is signed any more. Again: the same."""
    if memory(origin).exists():
        memory(origin).replace(closed_heads() / state_file.file_name(origin))
        state_file.sync(closed_heads())
        state_file.sync(logs())


@contextmanager
def locked(*, to_change: bool = False) -> Iterator[None]:
    """Lock the keys: they change only while nothing is signed."""
    with state_file.locked(folder() / "keys", shared=not to_change):
        yield


def current() -> Ed25519PrivateKey:
    """The key that signs; made at the first start.

    Raises:
        VerificationError: LOG-007, where there is none though something was signed with one.
    """
    file = folder() / CURRENT
    if not file.exists() and state_file.origins(logs()):
        raise VerificationError(
            LOST,
            f"The signer's key {file} is gone, and logs were signed with it. Put it back from a "
            "backup; without it these logs cannot go on, and new workspaces need an empty folder.",
            at=-1,
        )
    return _key(file)


def next_key() -> Ed25519PrivateKey:
    """The key of a rotation that is under way, made when it began."""
    return _key(folder() / NEXT)


def old() -> list[Ed25519PrivateKey]:
    """Keys that some log still has to move on from."""
    return [_key(file) for file in sorted(folder().glob(f"{OLD}*"))]


def switch() -> None:
    """Let the upcoming key sign; the one before it is kept as an old one. Survives a crash."""
    before = folder() / f"{OLD}{public(current()).hex()[:16]}"
    if not before.exists():
        before.hardlink_to(folder() / CURRENT)
    (folder() / NEXT).replace(folder() / CURRENT)
    state_file.sync(folder())


def forget_old() -> None:
    """Remove the old keys, so that nothing signed by a stolen one is accepted.

    What they signed of closed logs is still read: their public halves stay.
    """
    for file in folder().glob(f"{OLD}*"):
        half = public(_key(file))
        state_file.StateFile(file=folder() / f"{RETIRED}{half.hex()[:16]}{HALF}").replace(half)
        file.unlink()
    state_file.sync(folder())


def public(key: Ed25519PrivateKey) -> bytes:
    """The public half, 32 bytes."""
    return key.public_key().public_bytes_raw()


def verifiers(origin: str) -> list[Verifier]:
    """What a log's notes are checked with: the key in use first, then old ones.

    Those of a log that a restore closed also with keys that sign nothing any more.
    """
    known = [notes.verifier(origin, key) for key in (current(), *old())]
    if is_closed(origin):
        halves = [file.read_bytes() for file in sorted(folder().glob(f"{RETIRED}*{HALF}"))]
        known += [Verifier(name=origin, kind=notes.ED25519, public=half) for half in halves]
    return [*dict.fromkeys(known)]  # a crash in the middle of a change leaves one key twice


def _key(file: Path) -> Ed25519PrivateKey:
    fresh = not file.exists()
    key = Ed25519PrivateKey.from_private_bytes(load_or_create_key(file))
    if fresh:
        state_file.sync(file.parent)
    return key
