"""A supervised process: how it is started, watched and stopped, and what is told of it."""

import secrets
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from engine.clock import now_ms
from engine.ops import process_file
from engine.ops.processes import POLL_SECONDS, START_SECONDS_MAX, Child, announced
from nanovm_core.supervision import FAILED, NORMAL, SHUTDOWN

HELD_MS_MAX = 10_000  # a process that a signal holds so long is killed
STARTED, ENDED, STOPPED, GAVE_UP = "started", "ended", "stopped", "gave up"


class Spawn(NamedTuple):
    """What a start is given: the address that the process had before, and a tag of its own."""

    url: str
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process that can be started.

    ``spawn`` may raise OSError, which is a failed start. ``agent``: whose tools it uses. ``first``:
    at the first start, those after it wait until it answers, and this is told its address.
    """

    name: str
    spawn: Callable[[Spawn], Child]
    agent: str = ""
    first: Callable[[str], None] | None = None


class Happened(NamedTuple):
    """What happened to a process, or that a supervisor gave up (``below``: its processes)."""

    what: str
    name: str
    agent: str = ""
    tag: str = ""
    pid: int = 0
    text: str = ""
    below: tuple[str, ...] = ()


class End(NamedTuple):
    """Why a child ended, as ``supervision`` says it, and how, in half a sentence."""

    reason: str
    how: str


@dataclass(slots=True)
class Process:
    """A member and its processes, one after the other.

    ``now`` and all times are milliseconds of a monotonic clock; 0: never.
    """

    member: Member
    said: process_file.Process
    told: Callable[[Happened], None]
    child: Child | None = None  # the last one; it runs where ``said`` has a pid
    url: str = ""
    tag: str = ""
    why: str = ""  # it was killed
    ended_at: int = 0
    late_at: int = 0  # it has to answer until then
    kill_at: int = 0  # it was asked to stop, and is killed then
    held_at: int = 0  # a signal holds it
    answered: Child | None = None  # which child has answered

    @property
    def running(self) -> Child | None:
        """Its child, until that was seen to have ended."""
        return self.child if self.said.pid else None

    @property
    def title(self) -> str:
        """What it is, in words."""
        return self.child.title if self.child else self.member.name

    def start(self, incarnation: int) -> Child:
        """Start it, at the address that it had before; it need not answer yet.

        Raises:
            OSError: no process or no file is to be had.
        """
        self.url = self.url or (self.child.url if self.child else "")
        self.tag = secrets.token_hex(4)
        child = self.child = self.member.spawn(Spawn(self.url, self.tag))
        self.late_at = self.kill_at = self.held_at = 0
        self.why, said = "", self.said
        said.pid, said.incarnation, said.walls = child.popen.pid, incarnation, None
        if incarnation > 1:
            said.restarts, said.restarted_ms = said.restarts + 1, now_ms()
        self.is_at(process_file.STARTING)
        self._tell(STARTED, "started")
        return child

    def start_again(self, incarnation: int, now: int) -> str:
        """Start it, and watch for its answer. Returns where it has to answer. Errors as above."""
        child = self.start(incarnation)
        self.late_at = now + int(START_SECONDS_MAX * 1000)
        threading.Thread(target=self._await, args=(child,), daemon=True).start()
        place = urlsplit(self.url).netloc.rpartition("@")[2]  # without its password
        return f" at {place}" if place else ""

    def _await(self, child: Child) -> None:
        """Wait, in a thread of its own, until it answers or ended: a question takes time."""
        while child.popen.poll() is None:
            if child.answers():
                self.answered = child
                return
            time.sleep(POLL_SECONDS)

    def runs(self, child: Child) -> None:
        """It has answered."""
        self.said.walls = announced(child.written()).get("walls")
        self.is_at(process_file.RUNNING)

    def end(self, now: int) -> End | None:
        """Why it ended; None while it runs. One that is silent or held too long is killed."""
        child = self.running
        if child is None:
            return None
        if how := child.ended():
            reason = {0: NORMAL, -signal.SIGTERM: SHUTDOWN}.get(child.popen.returncode, FAILED)
            found = End(FAILED, f"{child.title} {self.why}") if self.why else End(reason, how)
            self.has_ended(ENDED, process_file.DOWN, found.how, now)
            return found
        if self.said.state == process_file.STARTING and now >= self.late_at > 0:
            self.why = f"did not answer in {START_SECONDS_MAX:g} s"
        self.held_at = (self.held_at or now) if child.is_held() else 0
        if self.held_at and now >= self.held_at + HELD_MS_MAX:
            self.why = f"was held by a signal for {HELD_MS_MAX / 1000:g} s"
        if self.why:
            child.popen.kill()
        return None

    def is_gone(self, shutdown_ms: int, now: int) -> bool:
        """Whether no process of it is left; asks it to stop, and kills it ``shutdown_ms`` later."""
        child = self.running
        if child is None:
            return True
        if child.popen.poll() is not None:
            self.has_ended(STOPPED, process_file.STOPPED, "stopped by its supervisor", now)
            return True
        if not self.kill_at:
            self.kill_at = now + shutdown_ms
            child.popen.terminate()
        elif now >= self.kill_at:
            child.popen.kill()
        return False

    def has_ended(self, what: str, state: str, how: str, now: int) -> None:
        """Its process is gone, and was waited for."""
        how = short(how)
        self.ended_at, self.said.ended = now, how
        self.is_at(state)
        self._tell(what, how)
        self.said.pid = 0

    def is_at(self, state: str) -> None:
        """Keep its state, and since when."""
        self.said.state, self.said.since_ms = state, now_ms()

    def _tell(self, what: str, text: str) -> None:
        pid, member = self.said.pid, self.member
        self.told(Happened(what, member.name, member.agent, self.tag, pid, text))


def short(how: str) -> str:
    """How it ended, without its last words, which can name anything."""
    return how.partition(": ")[0]
