"""The processes as their supervisor sees them: kept in a file, which pages and /healthz read."""

import json
from pathlib import Path
from typing import TypedDict

from django.conf import settings

RUNNING, STARTING = "running", "starting"
DOWN, STOPPED = "down", "stopped"  # it ended and waits for its start; it is not started again


class Walls(TypedDict):
    """What a process may open, in words; ``missing``: what the kernel lacks for it."""

    confined: str
    missing: str
    files: list[str]
    ports: list[str]


class Process(TypedDict):
    """A process. ``pid``: 0 where none runs. ``ended``: how the one before it ended."""

    supervisor: str
    agent: str
    pid: int
    incarnation: int
    restart: str
    since_ms: int
    state: str
    restarts: int
    restarted_ms: int
    ended: str
    walls: Walls | None


class Node(TypedDict):
    """A supervisor. ``ends_ms``: the failures that counted at the last one."""

    strategy: str
    max_restarts: int
    within_s: int
    children: list[str]
    ends_ms: list[int]
    gave_up_ms: int


class Processes(TypedDict):
    """The tree, both by name. Times are UTC milliseconds."""

    supervisors: dict[str, Node]
    processes: dict[str, Process]


def read() -> Processes | None:
    """What the supervisor of this data folder last wrote; None where none runs."""
    try:
        found: Processes = json.loads(_file().read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return found


def _file() -> Path:
    file: Path = settings.NANOVM_DATA / "processes.json"
    return file
