"""A child that reads one document, and the fork server of this process that it comes from."""

import atexit
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, Final, NamedTuple

from reader.fork_server import ORDER, TOLD
from reader.reasons import ReaderLostError

TOGETHER_MAX: Final = 16  # children at a time, of all threads; the server has 32 descriptors
IMPORT_SECONDS_MAX: Final = 180.0  # a server that has not forked a child by then hangs
KILL_SECONDS_MAX: Final = 5.0  # a server that has not killed a child by then is ended itself
_SOON_SECONDS: Final = 0.001  # a wait of 0 is another kind of call


class Times(NamedTuple):
    """How long a child is waited for: until it is forked, and from then on."""

    start_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ReadingChild:
    """Two pipes to a child, the line to the server that forks it, and when it must have ended."""

    server: "Server"
    to: IO[bytes]
    back: IO[bytes]
    line: socket.socket
    deadline: float = 0.0

    def ended(self) -> int:
        """Wait for its return code; where its server was killed, so was the child.

        Raises:
            TimeoutError: it has not ended by its deadline.
        """
        code = _told(self.line, self.deadline)
        return -signal.SIGKILL if code is None else code

    def kill(self) -> None:
        """End it and everything it started; it is gone when this returns."""
        self.line.shutdown(socket.SHUT_WR)
        try:
            _told(self.line, time.monotonic() + KILL_SECONDS_MAX)
        except TimeoutError:
            self.server.end()

    def close(self) -> None:
        """Close what this process has of it: a child that has no document yet ends."""
        for each in (self.to, self.back, self.line):
            each.close()


class Server:
    """A fork server, which imports the reader while this process goes on."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self.has_ended = False
        self._begins_until: float | None = time.monotonic() + IMPORT_SECONDS_MAX
        self._ahead: list[ReadingChild] = []  # at most one, which no document has been given to
        self._orders, orders = socket.socketpair()
        try:
            with orders:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                    command,
                    stdin=orders.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={"LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "2"},  # one each thread
                    cwd="/",
                    start_new_session=True,
                )
        except BaseException:
            self._orders.close()
            raise

    def order_ahead(self) -> None:
        """Let the child of the next document be forked before there is one.

        Whatever stops it is told where a document is to be read.
        """
        with _here.lock, suppress(OSError):
            if not self._ahead and not self.has_ended:
                self._ahead.append(self._ordered())

    def forked(self, held: ExitStack, times: "Times") -> ReadingChild | None:
        """A fresh child, whose descriptors ``held`` closes; None where this server has ended.

        Raises:
            OSError: the machine has no process, memory or descriptor left.
            TimeoutError: it was not forked in time. A server that hangs is ended; one that still
                imports the reader goes on, so that the next call finds it ready.
        """
        try:
            child = held.enter_context(closing(self._taken() or self._ordered()))
        except OSError as error:
            if not self.has_ended and not isinstance(error, ConnectionError):
                raise
            self.end()
            return None
        try:
            number = _told(child.line, time.monotonic() + times.start_seconds)
        except TimeoutError:
            if self._begins_until is None or time.monotonic() > self._begins_until:
                self.end()
            raise
        if number:
            raise OSError(number, os.strerror(number))
        if number is None:
            self.end()
            return None
        self._begins_until = None
        return replace(child, deadline=time.monotonic() + times.seconds)

    def _taken(self) -> ReadingChild | None:
        """The child that was forked ahead, unless it or this server was ended meanwhile."""
        with _here.lock:
            child = self._ahead.pop() if self._ahead else None
        if child is not None:
            poll = select.poll()
            poll.register(child.line, 0)
            if poll.poll(0) or self._process.poll() is not None:  # till its walls it has both ends
                child.close()
                return None
        return child

    def _ordered(self) -> ReadingChild:
        with ExitStack() as given, ExitStack() as held:
            theirs, ours = os.pipe()
            given.callback(os.close, theirs)
            to = held.enter_context(os.fdopen(ours, "wb", buffering=0))
            ours, back_to_us = os.pipe()
            given.callback(os.close, back_to_us)
            back = held.enter_context(os.fdopen(ours, "rb", buffering=0))
            line, end = socket.socketpair()
            given.enter_context(end)
            held.enter_context(line)
            socket.send_fds(self._orders, [ORDER], [theirs, back_to_us, end.fileno()])
            held.pop_all()
        return ReadingChild(self, to, back, line)

    def end(self) -> int:
        """End it, and with it the children that still read; says its return code."""
        self.has_ended = True
        self.leave()
        self._process.kill()
        code: int = self._process.wait()
        return code

    def leave(self) -> None:
        """Have no part in it: it ends once no process could order a child."""
        with _here.lock:
            self._orders.close()
            while self._ahead:
                self._ahead.pop().close()


class _OfThisProcess:
    """The server that this process has, if any."""

    def __init__(self) -> None:
        self.server: Server | None = None
        self.fresh()

    def fresh(self) -> None:
        """As in a process that was forked from one with a server."""
        self.lock = threading.RLock()
        if self.server is not None:
            self.server.leave()
            self.server._process.returncode = 0  # the process that this was forked from waits
        self.server = None
        self.turns = threading.BoundedSemaphore(TOGETHER_MAX)

    def end(self) -> None:
        """End the server, where this process ends."""
        if self.server is not None:
            self.server.end()


_here = _OfThisProcess()
os.register_at_fork(after_in_child=_here.fresh)
end_of_this_process = atexit.register(_here.end)


def of_this_process(command: Sequence[str]) -> Server:
    """The server that this command starts; one that has ended is replaced.

    Raises:
        OSError: it could not be started.
    """
    with _here.lock:
        running = _here.server
        if running is not None and running.command != command:
            running.end()
        if running is None or running.has_ended:
            running = _here.server = Server(command)
        return running


@contextmanager
def forked(find: Callable[[], Server], times: Times) -> Iterator[ReadingChild]:
    """A fresh child of the server that ``find`` answers, killed where the block fails.

    It waits until there is a turn for it; its times are counted from then on. Afterwards the
    next one is forked ahead.

    Raises:
        ReaderLostError: it could not be started, or the server was not ready in time or hangs.
    """
    with _here.turns, ExitStack() as held:
        try:  # its server may have ended since it was last used
            child = find().forked(held, times) or (last := find()).forked(held, times)
        except TimeoutError as error:
            raise lost("was not ready in time") from error
        except OSError as error:
            raise lost(f"could not be started ({error.strerror})") from error
        if child is None:
            raise lost(f"ended before it began ({how(last.end())})")
        try:
            yield child
        except BaseException as error:
            child.kill()
            if isinstance(error, TimeoutError) and child.server.has_ended:
                raise lost("hangs") from error
            raise
        finally:
            child.server.order_ahead()


def how(code: int) -> str:
    """How a process ended, in words."""
    named = {each.value: each.name for each in signal.Signals}
    return f"status {code}" if code >= 0 else named.get(-code, f"signal {-code}")


def lost(what: str) -> ReaderLostError:
    """The error of a reader that could not work, and what to do."""
    text = f"The process that reads PDFs {what}: look at the machine, then run the invoice again."
    return ReaderLostError(text)


def _told(line: socket.socket, deadline: float) -> int | None:
    """The next number that the server tells of a child; None where it has ended."""
    line.settimeout(max(_SOON_SECONDS, deadline - time.monotonic()))
    try:
        told = line.recv(TOLD.size)
    except ConnectionError:
        return None
    return int(TOLD.unpack(told)[0]) if told else None
