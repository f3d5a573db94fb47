"""The public half of the signer's key, in a file that the pages read."""

from pathlib import Path

from django.conf import settings

from engine.store import state_file
from nanovm_core.proof.notes import Verifier


def publish(key: bytes) -> None:
    """Store the public key that signs from now on; write only where it changed."""
    if _key() != key.hex():
        with state_file.locked(_file()) as slot:
            slot.replace(key.hex().encode())


def verifier(origin: str) -> Verifier | None:
    """What a log's notes are checked with, by this server's own word; None before it signed.

    A reader who gets the key from the server under audit should keep it from then on.
    """
    text = _key()
    return Verifier(name=origin, public=bytes.fromhex(text)) if text else None


def _key() -> str:
    try:
        return _file().read_text(encoding="ascii")
    except FileNotFoundError:
        return ""


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "log_key.pub"
    return file
