"""When a child of the supervisor that ended is started again, and when everything stops.

Words and limits are those of OTP's supervisors: ``one_for_one`` (a child that ends is started
again, and no other), ``permanent`` (every child is, however it ended), restart intensity
(``MAX_RESTARTS`` ``WITHIN_MS``).
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from engine.clock import now_ms

log = logging.getLogger(__name__)

MAX_RESTARTS = 5  # of one child,
WITHIN_MS = 60_000  # in so long a time: one more end stops everything
BACKOFF_MS = 250  # before the first restart; each further one in that time waits twice as long,
BACKOFF_MS_MAX = 4_000  # up to this


@dataclass(frozen=True, slots=True)
class Start:
    """Start the child again at this moment."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Escalate:
    """Stop everything: the child ended this often within ``WITHIN_MS``."""

    ends: int


def decide(ends_ms: Sequence[int], now: int) -> Start | Escalate:
    """What follows the newest of a child's ends, which is now; the same for the same times."""
    recent = [at for at in ends_ms if now - at < WITHIN_MS]
    if len(recent) > MAX_RESTARTS:
        return Escalate(len(recent))
    return Start(now + min(BACKOFF_MS << max(0, len(recent) - 1), BACKOFF_MS_MAX))


@dataclass(slots=True)
class Record:
    """How often each child was restarted since the start, and when last; for /healthz.

    It does not wait for the disk: it is made anew at every start.
    """

    children: dict[str, dict[str, int]] = field(default_factory=dict)

    def restarted(self, name: str) -> None:
        """Count a restart and tell it."""
        before = self.children.get(name, {"count": 0})
        self.children[name] = {"count": before["count"] + 1, "at_ms": now_ms()}
        self.write()

    def write(self) -> None:
        """Put the counts where /healthz reads them; on a full disk it keeps those of before."""
        draft = _file().with_suffix(".new")
        try:
            draft.write_text(json.dumps(self.children), encoding="ascii")
            draft.replace(_file())
        except OSError as error:
            log.warning("the restarts of children could not be written: %s", error)

    def remove(self) -> None:
        """Forget the restarts: the supervisor has ended."""
        _file().unlink(missing_ok=True)


def recorded() -> dict[str, dict[str, int]] | None:
    """The restarts of each child that was restarted; None where no supervisor runs."""
    try:
        found: dict[str, dict[str, int]] = json.loads(_file().read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return found


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "restarts.json"
    return file
