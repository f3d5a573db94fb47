"""When the signer was last alive, in a file that /healthz reads."""

import os
import tempfile
from pathlib import Path

from django.conf import settings

from engine import clock

REPORT_MS = 1_000  # how often the record is written
SILENT_MS_MAX = 15_000  # after this the signer counts as dead; a round over many logs takes less


def report_alive() -> None:
    """Record that the signer is alive; called each round, it writes once in ``REPORT_MS``.

    It does not wait for the disk: the record is made anew at every start.
    """
    since_ms = silent_ms()
    if since_ms is not None and 0 <= since_ms < REPORT_MS:
        return
    handle, draft = tempfile.mkstemp(dir=settings.NANOVM_DATA, prefix=".signer.beat.")
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        opened.write(str(clock.now_ms()))
    Path(draft).replace(_file())


def silent_ms() -> int | None:
    """How long ago the signer was last alive; None where it never ran."""
    try:
        text = _file().read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return clock.now_ms() - int(text) if text.isdecimal() else None


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "signer.beat"
    return file
