"""Programs that die at a point of a gated call, and a client that asks many times at once.

``python -m tests.crash.gated FILE MODULE ARGUMENT…`` runs a module, which sends itself SIGKILL at
the point that FILE names.
"""

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any

BEFORE, AFTER = "before", "after"
POINTS = {
    "judged": ("engine.runtime.outside", "judge", AFTER),  # the transaction is open
    "unsent": ("engine.runtime.queue", "wake", BEFORE),  # it is committed, and nobody was woken
    "unanswered": ("gate.calls", "make_run", AFTER),
    "waits": ("gate.doors.http", "_length", BEFORE),
    "handed out": ("engine.runtime.outside", "hand_out", AFTER),
    "reported": ("engine.runtime.api", "submit", AFTER),
    "claimed": ("gate.upstreams", "perform", BEFORE),
    "answered": ("gate.upstreams", "perform", AFTER),
    "stored": ("engine.runtime.api", "answer", AFTER),
}
TRIES_MAX = 20  # of a line that broke: a server with too many silent ones closes the oldest


def dying(act: Callable[..., Any], file: Path, point: str, moment: str) -> Callable[..., Any]:
    """The same function, before or after which the process dies where the file says so."""

    def acted(*args: Any, **options: Any) -> Any:
        ends = file.exists() and file.read_text() == point
        answer = None if ends and moment == BEFORE else act(*args, **options)
        if ends:
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return acted


def sent(port: int, token: str, path: str, body: Any) -> tuple[int, Any]:
    """The status and the JSON of an answer; 0 and nothing where the line broke."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    line = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        line.request("POST" if body else "GET", path, json.dumps(body) if body else b"", headers)
        with line.getresponse() as answer:
            return answer.status, json.loads(answer.read())
    except (OSError, HTTPException):
        return 0, {}
    finally:
        line.close()


def sent_at_once(copies: int, *asked: Any) -> list[str]:
    """What so many copies of a request are answered with, as JSON."""

    def answer(_: int) -> str:
        tries = (sent(*asked) for _ in range(TRIES_MAX))
        return json.dumps(next(said for status, said in tries if status))

    with ThreadPoolExecutor(copies) as threads:
        return [*threads.map(answer, range(copies))]


if __name__ == "__main__":
    import django

    django.setup()
    file, module, *sys.argv[1:] = Path(sys.argv[1]), *sys.argv[2:]
    for point, (place, name, moment) in POINTS.items():
        found = import_module(place)
        setattr(found, name, dying(getattr(found, name), file, point, moment))
    runpy.run_module(module, run_name="__main__", alter_sys=True)
