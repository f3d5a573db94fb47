"""Runs a program that cannot outlive the one that started it (a script of its own, Linux).

``python child_guard.py PARENT_PID PROGRAM ARGUMENT…``: the kernel sends SIGKILL when the parent's
thread ends. Done here, between fork and exec of a fresh interpreter, and not in a
``preexec_fn``, which may deadlock in a parent that has threads. Elsewhere than on Linux the
program just runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent_pid: int, command: list[str]) -> None:
    """Replace this process by ``command``, tied to the parent."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
        if os.getppid() != parent_pid:  # it ended before the line above: no signal will come
            sys.exit("the program that started this one has ended")
    os.execv(command[0], command)  # noqa: S606 - the caller's own command, and no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
