"""How often the supervisor restarted each child: kept in a file, and told by /healthz."""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from engine.clock import now_ms

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Restarts:
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
