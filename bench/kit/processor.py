"""The processor time of a process and of what it started."""

import os
from contextlib import suppress
from pathlib import Path


def spent() -> float:
    """The seconds of this process, of the children that it reaped and of those that live.

    What a child started counts once the child has reaped it.
    """
    return sum(os.times()[:4]) + sum(map(_of_process, _children()))


def _children() -> list[str]:
    found: list[str] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += path.read_text().split()
    return found


def _of_process(pid: str) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:  # it ended and another thread reaped it
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
