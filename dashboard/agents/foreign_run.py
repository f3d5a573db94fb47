"""Runs the bundled foreign agent: a child that is given an address and a token alone."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import BoundedSemaphore, Thread, Timer
from typing import NamedTuple
from uuid import UUID

from engine.ops.processes import CHILD_GUARD, LOOPBACK, ROOT
from gate.replies import REASONS

NAME = "foreign-agent"
GUARD = (sys.executable, "-I", "-S", str(CHILD_GUARD))
PROGRAM = (sys.executable, "-m", "examples.agents.foreign_agent")
SECONDS_MAX = 120  # then it is ended; for a minute of them it waits for a person
CHILDREN_MAX = 8  # at once, of one web process
KEPT_MAX = 256  # children that are remembered, each its log's last
LINE_BYTES_MAX, LINES_MAX = 1_000, 50  # that are kept of what one says
_places = BoundedSemaphore(CHILDREN_MAX)
_last: dict[UUID, "Child"] = {}  # by log


class BusyError(Exception):
    """As many run as may run at once."""


LOST = "CLI"  # begins the codes of ``nanovm_client``: no answer came


class Said(NamedTuple):
    """What a child says of a call. ``code``: of the error that it got, also of its report."""

    request: str
    tool: str
    aim: str
    code: str


class Child:
    """A child of this web process, and what it said."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.is_running = True
        self.popen: subprocess.Popen[bytes] | None = None

    def run(self, given: dict[str, str]) -> None:
        """Run it to its end. It is tied to this thread, and so ends when this process does."""
        line = b""
        try:
            with subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [*GUARD, str(os.getpid()), *PROGRAM],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=given,
            ) as popen:
                self.popen = popen
                late = Timer(SECONDS_MAX, popen.kill)
                late.daemon = True  # it keeps no process from its end
                late.start()
                while said := popen.stdout.readline(LINE_BYTES_MAX) if popen.stdout else b"":
                    line = said
                    self._hear(line)
                late.cancel()
            if popen.returncode:
                logging.warning("the foreign agent ended: %s, %r", popen.returncode, line)
        finally:
            self.is_running = False
            _places.release()

    def _hear(self, line: bytes) -> None:
        with suppress(ValueError, TypeError):  # a line of a traceback, for one
            said = Said(**json.loads(line))
            if (said.code.startswith(LOST) or said.code in {"", *REASONS}) and len(
                self.said
            ) < LINES_MAX:
                self.said.append(said)


def start(log: UUID, port: str, token: Callable[[], str]) -> None:
    """Start it beside this web process, whose ``port`` it calls; the log's earlier one is ended,
    or has no token any more.

    Raises:
        BusyError: ``CHILDREN_MAX`` run now; ``token`` was not called.
    """
    if not _places.acquire(blocking=False):
        raise BusyError
    try:
        given = {"NANOVM_GATE": f"http://{LOOPBACK}:{port}", "NANOVM_TOKEN": token()}
    except BaseException:
        _places.release()
        raise
    before, child = _last.pop(log, None), Child()
    if before and before.popen:
        before.popen.kill()  # its token is dead: it would keep others from its place
    _last[log] = child
    for old in [*_last][:-KEPT_MAX]:
        del _last[old]
    Thread(target=child.run, args=(given,), name=NAME, daemon=True).start()


def last(log: UUID) -> Child | None:
    """The child that was started last for a log; None where this process started none."""
    return _last.get(log)
