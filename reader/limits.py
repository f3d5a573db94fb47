"""What the fork server and a child may use, set before the child sees a byte of the document."""

import ctypes
import os
import resource
import signal
import sys
from typing import Final

_FILES_MAX: Final = 32  # modules are still imported after this, one file at a time
_STANDARD_STREAMS: Final = 3
_PR_SET_PDEATHSIG: Final = 1
# Two cannot be set; two Python ignores by itself, so that a write fails with an error instead.
_KEPT: Final = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}


def confine(memory_bytes: int) -> None:
    """Bound this process and its children for good: memory and files."""
    _default_signals()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, _FILES_MAX)
    _limit(resource.RLIMIT_AS, memory_bytes)


def confine_child(seconds: int, parent: int) -> None:
    """Bound the processor time of this process alone, and let it die with its parent."""
    _default_signals()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def open_no_more() -> None:
    """Close all but the standard streams, and leave no number for another descriptor.

    An account that may raise its own limits (root) is held to it by the walls alone.
    """
    os.closerange(_STANDARD_STREAMS, _FILES_MAX)  # the parent hands on nothing above
    _limit(resource.RLIMIT_NOFILE, 0)


def _default_signals() -> None:
    """Let every signal do what it does by default.

    A process inherits what its parent ignores or blocks: a shell's background job ignores SIGINT.
    """
    for number in signal.valid_signals() - _KEPT:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))
