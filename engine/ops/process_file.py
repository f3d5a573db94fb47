"""The processes as their supervisor sees them: kept in a file, which pages and /healthz read."""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

log = logging.getLogger(__name__)

RUNNING, STARTING = "running", "starting"
DOWN, STOPPED = "down", "stopped"  # it ended and waits for its start; it is not started again


@dataclass(slots=True)
class Process:
    """A process; as it is made, one that was not started yet.

    ``pid``: 0 where none runs. ``ended``: how the one before it ended. ``walls``: what
    ``config.walls`` says that it may open, where it has walls.
    """

    agent: str = ""
    pid: int = 0
    incarnation: int = 0
    since_ms: int = 0
    state: str = STOPPED
    restarts: int = 0
    restarted_ms: int = 0
    ended: str = ""
    walls: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Node:
    """A supervisor. ``ends_ms``: the failures that counted at the last one."""

    strategy: str
    max_restarts: int
    within_s: int
    children: list[str]
    ends_ms: list[int] = field(default_factory=list)
    gave_up_ms: int = 0


@dataclass(frozen=True, slots=True)
class Processes:
    """The tree, both by name; nothing where no supervisor runs. Times are UTC milliseconds."""

    supervisors: Mapping[str, Node] = field(default_factory=dict)
    processes: Mapping[str, Process] = field(default_factory=dict)


def write(status: Processes) -> None:
    """Put it where the others read it; on a full disk the file stays as it was."""
    draft = _file().with_suffix(".new")
    try:
        draft.write_text(json.dumps(asdict(status)), encoding="ascii")
        draft.replace(_file())
    except OSError as error:
        log.warning("the state of the processes could not be written: %s", error)


def remove() -> None:
    """Forget it: the supervisor has ended."""
    _file().unlink(missing_ok=True)


def read() -> Processes:
    """What the supervisor of this data folder last wrote."""
    try:
        found = json.loads(_file().read_text(encoding="ascii"))
    except FileNotFoundError:
        return Processes()
    return Processes(
        {name: Node(**each) for name, each in found["supervisors"].items()},
        {name: Process(**each) for name, each in found["processes"].items()},
    )


def _file() -> Path:
    return Path(settings.NANOVM_DATA, "processes.json")
