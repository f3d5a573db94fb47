"""The walls that the child puts around itself: no file, no socket and no process behind them.

Two walls, each of which stops most attacks alone. Landlock refuses files, TCP, abstract sockets,
signals and tracing as the kernel understands them. Seccomp refuses every system call that is not
on a list, those of later kernels included. That list is short, because behind the walls the reader
only computes: it reads its standard input, writes its answer, asks for memory, time and threads.

A refusal is an error, not a kill: a library that probes for something (fonts, a configuration)
goes on without it, as on a machine that does not have it.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from reader.limits import open_no_more

_PR_SET_NO_NEW_PRIVS: Final = 38  # linux/prctl.h; both walls demand it of an ordinary account

# --- Landlock: linux/landlock.h; the numbers of its calls are the same on every architecture -----

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_CREATE_RULESET_VERSION: Final = 1
# The rights that each ABI added, as the lowest bit that it does not know.
_FILE_BITS: Final = {1: 13, 2: 14, 3: 15, 5: 16}  # LANDLOCK_ACCESS_FS_*: EXECUTE to IOCTL_DEV
_NET_BITS: Final = {4: 2}  # LANDLOCK_ACCESS_NET_BIND_TCP, _CONNECT_TCP
_SCOPE_BITS: Final = {6: 2}  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, _SIGNAL
_ATTRIBUTE_BYTES: Final = {1: 8, 4: 16, 6: 24}  # struct landlock_ruleset_attr
_PATH_BENEATH, _NET_PORT = 1, 2  # LANDLOCK_RULE_*
_CONNECT_TCP: Final = 2
# LANDLOCK_ACCESS_FS_*: what a rule may let through.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = (1 << bit for bit in (0, 1, 2, 3, 14))
_OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE

# --- Seccomp: linux/seccomp.h, linux/filter.h, linux/bpf_common.h, linux/audit.h -----------------

_SET_MODE_FILTER: Final = 1
_FILTER_FLAG_TSYNC: Final = 1  # every thread that a library may have started
_RET_ALLOW: Final = 0x7FFF0000
_RET_ERRNO: Final = 0x00050000
_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS, from struct seccomp_data
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_CALL_AT: Final = 0
_ARCH_AT: Final = 4
_ARGS_AT: Final = 16  # six of 64 bits, low word first on both architectures
_ARCHES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*

# asm/unistd_64.h of x86_64, asm-generic/unistd.h of aarch64. None takes a path, names another
# process or makes a descriptor.
_ALLOWED: Final = {
    "x86_64": (
        *(0, 1, 19, 20, 8, 3),  # read, write, readv, writev, lseek, close
        *(9, 10, 11, 12, 25, 28),  # mmap, mprotect, munmap, brk, mremap, madvise
        *(13, 14, 15, 131, 219),  # rt_sigaction, _sigprocmask, _sigreturn, sigaltstack, restart
        *(35, 96, 228, 229, 230),  # nanosleep, gettimeofday, clock_gettime, _getres, _nanosleep
        *(24, 202, 204, 273, 309, 334),  # sched_yield, futex, affinity, robust_list, getcpu, rseq
        *(39, 186, 98, 99, 100, 318),  # getpid, gettid, getrusage, sysinfo, times, getrandom
        *(60, 231),  # exit, exit_group
    ),
    "aarch64": (
        *(63, 64, 65, 66, 62, 57),
        *(222, 226, 215, 214, 216, 233),
        *(134, 135, 139, 132, 128),
        *(101, 169, 113, 114, 115),
        *(124, 98, 123, 99, 168, 293),
        *(172, 178, 165, 179, 153, 278),
        *(93, 94),
    ),
}
# seccomp, and those of which only some arguments are allowed: clone, tgkill, prlimit64
_SPECIAL: Final = {"x86_64": (317, 56, 234, 302), "aarch64": (277, 220, 131, 261)}
# linux/sched.h: what glibc and musl ask for a thread, without CLONE_DETACHED, which has no effect
_THREAD: Final = 0x003D0F00
_DETACHED: Final = 0x00400000
# What a process that has other work may not do to files and processes that Landlock keeps from it:
# mode, owner, times and attributes; limits, priority and processors; nor listen or share memory.
_FORBIDDEN: Final = {
    "x86_64": (
        *(90, 91, 268, 452, 92, 93, 94, 260),  # chmod, fchmod, fchmodat, fchmodat2, chown to at
        *(132, 235, 261, 280, 188, 189, 190, 197, 198, 199),  # utime to utimensat, xattr
        *(141, 203, 144, 142, 314, 251),  # setpriority, sched_setaffinity to setattr, ioprio_set
        *(50, 29, 64, 68),  # listen, shmget, semget, msgget
    ),
    "aarch64": (
        *(52, 53, 452, 54, 55, 88, 5, 6, 7, 14, 15, 16),
        *(140, 122, 119, 118, 274, 30, 201, 194, 190, 186),
    ),
}
_X32: Final = 0x40000000  # the bit of x86-64's third set of numbers
# clone3 and all later calls (the same numbers everywhere) are said not to exist: a C library then
# falls back to the older call, whose flags a filter can see.
_LATER_CALLS: Final = 435


def close() -> dict[str, str]:
    """Refuse this process and its threads every file, process and address, for good.

    The three standard streams stay open. Where the kernel lacks one wall, the other one is put up
    all the same.

    Returns:
        ``confined``, the walls that hold, and ``missing``, the others with the kernel's reason.
    """
    reasons = {"landlock": _reason_against(landlock)}  # it needs a descriptor for a moment
    open_no_more()
    reasons["seccomp"] = _reason_against(seccomp)  # it forbids a change of limits
    return {
        "confined": ", ".join(name for name, reason in reasons.items() if reason is None),
        "missing": ", ".join(f"{name} ({reason})" for name, reason in reasons.items() if reason),
    }


def _reason_against(wall: Callable[[], object]) -> str | None:
    """Put the wall up; None when it holds."""
    try:
        wall()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def landlock(files: Iterable[tuple[Path, int]] = (), ports: Iterable[int] = ()) -> int:
    """Let the kernel's own access control refuse every right that it knows, but for these.

    ``files``: paths that exist, each with the rights to it and, if it is a folder, to all in it.
    ``ports``: those of any host that may be connected to, by TCP. Other threads are not held.

    Returns:
        Landlock's ABI here.

    Raises:
        OSError: this kernel has no Landlock, or it is switched off.
    """
    abi = _call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    held = [(1 << _of(abi, bits)) - 1 for bits in (_FILE_BITS, _NET_BITS, _SCOPE_BITS)]
    attribute = struct.pack("=QQQ", *held)[: _of(abi, _ATTRIBUTE_BYTES)]
    ruleset = _call(_CREATE_RULESET, attribute, len(attribute), 0)
    for path, rights in files:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights &= held[0] if path.is_dir() else held[0] & _OF_FILES
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
        os.close(opened)
    for port in ports if held[1] else ():
        _call(_ADD_RULE, ruleset, _NET_PORT, struct.pack("=QQ", _CONNECT_TCP, port), 0)
    _no_new_privileges()
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return abi


def seccomp(*, of_reading: bool = True) -> None:
    """Refuse every system call that is not on the list; or, of other work, the forbidden ones.

    Raises:
        OSError: no such call on this kernel, or no list for this machine.
    """
    machine, lines_of = os.uname().machine, _filter if of_reading else _without
    if machine not in _ALLOWED or sys.maxsize < 2**32:
        raise OSError(errno.ENOSYS, f"no list for {machine}")
    lines = b"".join(struct.pack("=HBBI", *line) for line in lines_of(machine))
    held = ctypes.create_string_buffer(lines, len(lines))
    program = struct.pack("@HP", len(lines) // 8, ctypes.addressof(held))  # struct sock_fprog
    _no_new_privileges()
    number = _SPECIAL[machine][0]
    if _call(number, _SET_MODE_FILTER, _FILTER_FLAG_TSYNC, program):
        raise OSError(errno.EBUSY, "a thread has a filter of its own")


def _filter(machine: str) -> Iterator[tuple[int, int, int, int]]:
    """The program as (code, lines to jump if true, if false, operand); it starts at each call."""
    _, clone, tgkill, prlimit = _SPECIAL[machine]
    yield from _number(machine)
    for number in _ALLOWED[machine]:
        yield from _where(number)
    yield from _where(clone, (_ARGS_AT, 0xFFFFFFFF ^ _DETACHED, _THREAD))  # a thread, no process
    yield from _where(tgkill, (_ARGS_AT, 0xFFFFFFFF, os.getpid()))  # abort() signals its own
    to, new = (_ARGS_AT, 0xFFFFFFFF, 0), _ARGS_AT + 16  # its own limits, to be read: no new ones
    yield from _where(prlimit, to, (new, 0xFFFFFFFF, 0), (new + 4, 0xFFFFFFFF, 0))
    yield (_AT_LEAST, 0, 1, _LATER_CALLS)
    yield _refuse(errno.ENOSYS)
    yield _refuse(errno.EPERM)


def _without(machine: str) -> Iterator[tuple[int, int, int, int]]:
    """The program that refuses the forbidden calls, and limits of another process."""
    yield from _number(machine)
    yield (_AT_LEAST, 0, 1, _X32)
    yield _refuse(errno.EPERM)
    for number in _FORBIDDEN[machine]:
        yield (_EQUAL, 0, 1, number)
        yield _refuse(errno.EPERM)
    yield from _where(_SPECIAL[machine][3], (_ARGS_AT, 0xFFFFFFFF, 0))
    yield (_RETURN, 0, 0, _RET_ALLOW)


def _number(machine: str) -> Iterator[tuple[int, int, int, int]]:
    """Load the call's number, which means another call under another architecture."""
    yield (_LOAD, 0, 0, _ARCH_AT)
    yield (_EQUAL, 1, 0, _ARCHES[machine])
    yield _refuse(errno.EPERM)
    yield (_LOAD, 0, 0, _CALL_AT)


def _where(number: int, *words: tuple[int, int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Allow a call if each of these words (offset, mask, value) of its arguments is right."""
    yield (_EQUAL, 0, 4 * len(words) + 1, number)
    for offset, mask, value in words:
        yield (_LOAD, 0, 0, offset)
        yield (_AND, 0, 0, mask)
        yield (_EQUAL, 1, 0, value)
        yield _refuse(errno.EPERM)
    yield (_RETURN, 0, 0, _RET_ALLOW)


def _refuse(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _RET_ERRNO | number)


def _of(abi: int, since: dict[int, int]) -> int:
    """The value of the newest ABI up to this one; 0 before the first."""
    return max((value for first, value in since.items() if first <= abi), default=0)


def _no_new_privileges() -> None:
    _checked(ctypes.CDLL(None, use_errno=True).prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _call(number: int, *arguments: int | bytes | None) -> int:
    """A system call by number, for which the C library has no function."""
    if sys.platform != "linux":  # the number is another call there
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    return _checked(function, number, *arguments)


def _checked(function: Callable[..., int], *arguments: int | bytes | None) -> int:
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer = function(*wide)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
