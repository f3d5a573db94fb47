"""The process that imports the reader once, and forks a child for each document; it reads none."""

import gc
import os
import selectors
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from reader import child, limits
from reader.invoice import Extraction, Picture

ORDER: Final = b"1"  # with it come the descriptors of one child
TOLD: Final = struct.Struct("=i")  # first 0, or the error against forking; then the return code
_WAKES_BYTES: Final = 64


class ForkServer:
    """Forks a child for each order on its standard input, and ends when that is closed.

    An order hands over three descriptors: the child's input, its output, and a line. The line is
    for this process alone: it tells there that it has forked and how the child ended, and kills
    the child with everything it started once the other end of the line is closed.
    """

    def __init__(self, seconds: int, read: Callable[..., Extraction | Picture]) -> None:
        self._seconds = seconds
        self._read = read
        self._own_id = os.getpid()
        self._orders = socket.socket(fileno=0)
        self._woken, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        self._lines: dict[int, socket.socket] = {}
        self._ready = selectors.DefaultSelector()

    def serve(self) -> None:
        """Follow orders until no more can come; the children die with this process."""
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, or the wake-up is not written
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        self._ready.register(self._orders, selectors.EVENT_READ, self._fork)
        self._ready.register(self._woken, selectors.EVENT_READ, self._reap)
        while True:
            for key, _ in self._ready.select():
                key.data()

    def _fork(self) -> None:
        order, given, *_ = socket.recv_fds(self._orders, len(ORDER), 3)
        if not order:
            os._exit(0)
        line = socket.socket(fileno=given.pop())
        try:
            pid = os.fork()
        except OSError as error:
            with line, suppress(BrokenPipeError):
                line.send(TOLD.pack(error.errno or -1))
        else:
            if pid == 0:
                self._become_child(*given)
            os.setpgid(pid, pid)  # before it can be killed
            self._lines[pid] = line
            self._ready.register(line, selectors.EVENT_READ, lambda: self._kill(pid))
            with suppress(BrokenPipeError):
                line.send(TOLD.pack(0))
        for each in given:
            os.close(each)

    def _become_child(self, to: int, back: int) -> None:
        """Read one document, in the forked process; what it inherits is closed with the rest."""
        try:
            signal.set_wakeup_fd(-1)
            os.dup2(to, 0)
            os.dup2(back, 1)
            limits.confine_child(self._seconds, self._own_id)
            child.main(self._read)
        finally:
            os._exit(1)

    def _kill(self, pid: int) -> None:
        """The parent wants no more of this child."""
        if pid in self._lines:  # not reaped yet, so the number is still its own
            self._ready.unregister(self._lines[pid])
            os.killpg(pid, signal.SIGKILL)

    def _reap(self) -> None:
        self._woken.recv(_WAKES_BYTES)
        with suppress(ChildProcessError):
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                pid, status, used = ended
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGKILL and used.ru_utime + used.ru_stime >= self._seconds:
                    code = -signal.SIGXCPU  # it went on after that signal, up to the hard limit
                self._tell(pid, code)

    def _tell(self, pid: int, code: int) -> None:
        with self._lines.pop(pid) as line, suppress(BrokenPipeError):
            with suppress(KeyError):  # where it was killed
                self._ready.unregister(line)
            line.send(TOLD.pack(code))


def serve(seconds: int) -> None:
    """Import all that a child will need, and fork children of it until no more orders can come."""
    read = child.loaded()
    gc.freeze()  # a collection writes to all that it looks at, which a child would have to copy
    ForkServer(seconds, read).serve()
