"""The signer's sign of life, where /healthz reads it without asking the signer anything."""

import os
import tempfile
from pathlib import Path

from django.conf import settings

from pipeline import clock

BEAT_MS = 1_000  # how often a living signer says so
SILENT_MS_MAX = 15_000  # after this it is held to be gone; a round over many logs takes less


def beat() -> None:
    """Say that the signer lives; at most once in a while, so that it may be said each round.

    Nothing waits for the disk: it is said anew after every start.
    """
    since_ms = silent_ms()
    if since_ms is not None and 0 <= since_ms < BEAT_MS:
        return
    handle, draft = tempfile.mkstemp(dir=settings.NANOVM_DATA, prefix=".signer.beat.")
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        opened.write(str(clock.now_ms()))
    Path(draft).replace(_file())


def silent_ms() -> int | None:
    """How long ago the signer's process said that it lives; None where it never did."""
    try:
        text = _file().read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return clock.now_ms() - int(text) if text.isdecimal() else None


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "signer.beat"
    return file
