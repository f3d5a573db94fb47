"""Attacks of code that has taken over the reader; each returns what is true where it succeeds."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from reader import confinement, fork_server

Attack = Callable[[Any], object]
_NUMBERS: Final = {  # of calls that the C library has no function for
    "x86_64": {"add_key": 248, "bpf": 321, "userfaultfd": 323, "tgkill": 234},
    "aarch64": {"add_key": 217, "bpf": 280, "userfaultfd": 282, "tgkill": 131},
}.get(platform.machine(), {})
_LATER: Final = {"io_uring_setup": 425, "clone3": 435, "openat2": 437, "pidfd_getfd": 438}
_PTRACE_SEIZE: Final = 0x4206
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LEFT_OPEN: Final[list[int]] = []


def taken_over(without: list[str], left_open: str, sources: str) -> Callable[[int], None]:
    """The fork server's ``serve`` with the attacks for a reader, and without some of the walls.

    It has opened a file by then, as a library may have. ``sources`` is a file with the modules
    that put up the walls, as the test's process has them: a removed guard is removed here too.
    """

    def serve(seconds: int) -> None:
        for name, source in json.loads(Path(sources).read_text()).items():
            exec(source, vars(sys.modules[name]))  # noqa: S102 - our own source once more
        for wall in without:
            setattr(confinement, wall, lambda: None)
        _LEFT_OPEN.append(os.open(left_open, os.O_RDONLY))
        fork_server.ForkServer(seconds, attack_all).serve()  # type: ignore[arg-type]

    return serve


def attack_all(data: bytes, *, pages_max: int) -> None:
    """Try everything against the targets that the document names; a line of JSON for each."""
    aims = json.loads(data)
    for name, attack in ATTACKS.items():
        try:
            process = os.fork()  # where that is possible, no attack spoils the next
        except OSError:
            _report(name, attack, aims)
            continue
        if process == 0:
            _report(name, attack, aims)
            os._exit(0)
        os.waitpid(process, 0)
    os._exit(0)


def _report(name: str, attack: Attack, aims: dict[str, Any]) -> None:
    try:
        result = bool(attack(aims)) or "nothing"
    except OSError as error:
        result = errno.errorcode.get(error.errno or 0, str(error))
    except sqlite3.OperationalError as error:
        result = error.sqlite_errorname
    except Exception as error:  # noqa: BLE001 - a mistake of the attack's own, for the test to see
        result = f"broken: {error!r}"
    os.write(1, json.dumps({name: result}).encode() + b"\n")


def _done(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return answer


def _call(number: int, *arguments: int | bytes) -> int:
    return _done(_LIBC.syscall(*(_wide(each) for each in (number, *arguments))))


def _wide(argument: int | bytes) -> object:
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _holds_secret(data: bytes, aims: dict[str, Any]) -> bool:
    return aims["secret"].encode() in data


def _read(path: str, aims: dict[str, Any]) -> bool:
    with open(path, "rb") as file:
        return _holds_secret(file.read(), aims)


def _address(aims: dict[str, Any]) -> int:
    return int(aims["address"])


def o_path_then_openat(aims: dict[str, Any]) -> object:
    folder = os.open(aims["folder"], os.O_PATH)
    return _holds_secret(os.read(os.open("kek", os.O_RDONLY, dir_fd=folder), 99), aims)


def hard_link_beside(aims: dict[str, Any]) -> object:
    os.link(aims["key"], aims["key"] + ".linked")
    return _read(aims["key"] + ".linked", aims)


def symbolic_link(aims: dict[str, Any]) -> object:
    os.symlink(aims["key"], aims["key"] + ".symbolic")
    return True


def rename_a_file(aims: dict[str, Any]) -> object:
    os.rename(aims["folder"] + "/movable", aims["folder"] + "/moved")
    return True


def open_by_handle(aims: dict[str, Any]) -> object:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 136)
    mount = ctypes.c_int()
    path = aims["key"].encode()
    _done(_LIBC.name_to_handle_at(-100, path, handle, ctypes.byref(mount), 0))
    folder = os.open(aims["folder"], os.O_RDONLY)
    return _holds_secret(os.read(_done(_LIBC.open_by_handle_at(folder, handle, 0)), 99), aims)


def sqlite_attach(aims: dict[str, Any]) -> object:
    database = sqlite3.connect(":memory:")
    database.execute("ATTACH ? AS keys", (aims["database"],))
    return database.execute("SELECT secret FROM keys.secrets").fetchone() == (aims["secret"],)


def map_a_file(aims: dict[str, Any]) -> object:
    file = os.open(aims["key"], os.O_RDONLY)
    return _holds_secret(mmap.mmap(file, 0, prot=mmap.PROT_READ)[:], aims)


def open_of_the_c_library(aims: dict[str, Any]) -> object:
    return _holds_secret(os.read(_done(_LIBC.open(aims["key"].encode(), 0)), 99), aims)


def raw_openat2(aims: dict[str, Any]) -> object:
    how = struct.pack("=QQQ", 0, 0, 0)
    file = _call(_LATER["openat2"], -100, aims["key"].encode(), how, len(how))
    return _holds_secret(os.read(file, 99), aims)


def descriptor_left_open(aims: dict[str, Any]) -> object:
    return _holds_secret(os.read(_LEFT_OPEN[0], 99), aims)


def descriptor_of_the_server(_aims: dict[str, Any]) -> object:
    """One that the server has opened for itself: others are of another child."""
    return os.read(_LEFT_OPEN[0] + 1, 0) == b""


def read_memory_file(aims: dict[str, Any]) -> object:
    file = os.open(f"/proc/{aims['victim']}/mem", os.O_RDONLY)
    return _holds_secret(os.pread(file, len(aims["secret"]), _address(aims)), aims)


def create_a_file(aims: dict[str, Any]) -> object:
    os.close(os.open(aims["folder"] + "/new", os.O_CREAT | os.O_WRONLY))
    return True


def truncate_a_file(aims: dict[str, Any]) -> object:
    os.truncate(aims["folder"] + "/log", 0)
    return True


def change_a_mode(aims: dict[str, Any]) -> object:
    Path(aims["key"]).chmod(0o600)
    return True


def watch_a_folder(aims: dict[str, Any]) -> object:
    return _done(_LIBC.inotify_add_watch(_done(_LIBC.inotify_init()), aims["folder"].encode(), 2))


def _connect(family: int, address: object, kind: int = socket.SOCK_STREAM) -> bool:
    with socket.socket(family, kind) as door:
        door.settimeout(5)
        door.connect(address)  # type: ignore[arg-type]
        return door.send(b"stolen") == 6


def listen(_aims: dict[str, Any]) -> object:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()


def make_socket(family: int, kind: int, protocol: int = 0) -> Attack:
    """An attack that succeeds when it has such a socket."""

    def attack(_aims: dict[str, Any]) -> object:
        socket.socket(family, kind, protocol).close()
        return True

    return attack


def two_sockets(_aims: dict[str, Any]) -> object:
    for each in socket.socketpair():
        each.close()
    return True


def execute_a_program(aims: dict[str, Any]) -> object:
    # The program prints this attack's success.
    os.execv(aims["cat"], ["cat", aims["folder"] + "/executed"])  # noqa: S606


def fork(_aims: dict[str, Any]) -> object:
    process = os.fork()
    if process == 0:
        os._exit(0)
    return os.waitpid(process, 0)


def spawn(aims: dict[str, Any]) -> object:
    return subprocess.run([aims["cat"], "/dev/null"], check=False).returncode == 0


def raw_clone3(_aims: dict[str, Any]) -> object:
    arguments = struct.pack("=8Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    if _call(_LATER["clone3"], arguments, len(arguments)) == 0:
        os._exit(0)
    return True


def kill(aims: dict[str, Any]) -> object:
    os.kill(aims["victim"], signal.SIGCONT)
    return True


def is_parent_there(aims: dict[str, Any]) -> object:
    os.kill(aims["parent"], 0)
    return True


def raw_tgkill(aims: dict[str, Any]) -> object:
    return _call(_NUMBERS["tgkill"], aims["victim"], aims["victim"], signal.SIGCONT) == 0


def signal_by_descriptor(aims: dict[str, Any]) -> object:
    signal.pidfd_send_signal(os.pidfd_open(aims["victim"]), signal.SIGCONT)
    return True


def signal_when_ready(aims: dict[str, Any]) -> object:
    fcntl.fcntl(0, 8, aims["victim"])  # F_SETOWN: who gets SIGIO
    return True


def trace(aims: dict[str, Any]) -> object:
    return _done(_LIBC.ptrace(_PTRACE_SEIZE, aims["victim"], None, None)) == 0


def read_memory(aims: dict[str, Any]) -> object:
    here = ctypes.create_string_buffer(len(aims["secret"]))
    to = struct.pack("=QQ", ctypes.addressof(here), len(here))
    source = struct.pack("=QQ", _address(aims), len(here))
    arguments = (aims["victim"], to, ctypes.c_ulong(1), source, ctypes.c_ulong(1))
    _done(_LIBC.process_vm_readv(*arguments, ctypes.c_ulong(0)))
    return _holds_secret(here.raw, aims)


def take_descriptor(aims: dict[str, Any]) -> object:
    process = os.pidfd_open(aims["victim"])
    file = _call(_LATER["pidfd_getfd"], process, aims["descriptor"], 0)
    return _holds_secret(os.pread(file, 99, 0), aims)


def limits_of_another(aims: dict[str, Any]) -> object:
    return resource.prlimit(aims["victim"], resource.RLIMIT_NOFILE)


def io_uring(_aims: dict[str, Any]) -> object:
    return _call(_LATER["io_uring_setup"], 1, bytes(120))


def add_a_key(_aims: dict[str, Any]) -> object:
    return _call(_NUMBERS["add_key"], b"user", b"stolen", b"x", 1, -2)  # the process's keyring


def load_bpf(_aims: dict[str, Any]) -> object:
    array = struct.pack("=IIII", 2, 4, 4, 1)  # BPF_MAP_TYPE_ARRAY
    return _call(_NUMBERS["bpf"], 0, array, len(array)) > 0


def handle_page_faults(_aims: dict[str, Any]) -> object:
    return _call(_NUMBERS["userfaultfd"], 1)  # UFFD_USER_MODE_ONLY


def make_memory_file(_aims: dict[str, Any]) -> object:
    return os.memfd_create("program")


def raise_a_limit(_aims: dict[str, Any]) -> object:
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]  # a second later than the soft one
    return _done(_LIBC.setrlimit(resource.RLIMIT_CPU, struct.pack("=QQ", hard, hard))) == 0


def outlive_the_parent(_aims: dict[str, Any]) -> object:
    return _done(_LIBC.prctl(1, 0, 0, 0, 0)) == 0  # PR_SET_PDEATHSIG


def namespace(_aims: dict[str, Any]) -> object:
    return _done(_LIBC.unshare(0x10000000)) == 0  # CLONE_NEWUSER


def change_root(aims: dict[str, Any]) -> object:
    os.chroot(aims["folder"])
    return True


def share_memory(_aims: dict[str, Any]) -> object:
    return _done(_LIBC.shmget(0, 4096, 0o600)) >= 0  # private, gone with the machine's next start


def message_queue(_aims: dict[str, Any]) -> object:
    queue = _done(_LIBC.mq_open(b"/takeover", os.O_CREAT | os.O_RDWR, 0o600, None))
    _LIBC.mq_unlink(b"/takeover")
    return queue


def foreign_architecture(_aims: dict[str, Any]) -> object:
    """The numbers of the 32-bit calls, by ``int 0x80``: 20 is getpid there and writev here."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\0\0\0" + b"\xcd\x80" + b"\xc3")  # mov eax, 20; int 0x80; ret
    here = ctypes.addressof(ctypes.c_char.from_buffer(code))
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(here)()
    if answer < 0:
        raise OSError(-answer, "refused")
    return answer == os.getpid()


ATTACKS: Final[dict[str, Attack]] = {
    "open": lambda aims: _read(aims["key"], aims),
    "open_relative": lambda aims: _read(aims["key"].lstrip("/"), aims),
    "open_by_own_root": lambda aims: _read("/proc/self/root" + aims["key"], aims),
    "environment_of_another": lambda aims: _read(f"/proc/{aims['victim']}/environ", aims),
    "environment_of_the_parent": lambda aims: Path(f"/proc/{aims['parent']}/environ").read_bytes(),
    "descriptor_of_another": lambda aims: _read(
        f"/proc/{aims['victim']}/fd/{aims['descriptor']}", aims
    ),
    "list_a_folder": lambda aims: "kek" in os.listdir(aims["folder"]),
    "list_processes": lambda _: os.listdir("/proc"),
    "stat": lambda aims: os.stat(aims["key"]).st_size,
    "tcp": lambda aims: _connect(socket.AF_INET, ("127.0.0.1", aims["tcp"])),
    "tcp_v6": lambda aims: _connect(socket.AF_INET6, ("::1", aims["tcp_v6"])),
    "udp": lambda aims: _connect(socket.AF_INET, ("127.0.0.1", aims["tcp"]), socket.SOCK_DGRAM),
    "unix_path": lambda aims: _connect(socket.AF_UNIX, aims["unix"]),
    "unix_abstract": lambda aims: _connect(socket.AF_UNIX, "\0" + aims["abstract"]),
    "netlink": make_socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "raw_ip": make_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "packets": make_socket(socket.AF_PACKET, socket.SOCK_RAW),
    **{
        each.__name__: each
        for each in (
            *(o_path_then_openat, hard_link_beside, symbolic_link, rename_a_file, open_by_handle),
            *(sqlite_attach, map_a_file, open_of_the_c_library, raw_openat2, descriptor_left_open),
            *(read_memory_file, create_a_file, truncate_a_file, change_a_mode, watch_a_folder),
            *(listen, two_sockets, execute_a_program, fork, spawn, raw_clone3, kill, raw_tgkill),
            *(is_parent_there, signal_by_descriptor, signal_when_ready, trace, read_memory),
            *(take_descriptor, limits_of_another, io_uring, add_a_key, load_bpf, share_memory),
            *(handle_page_faults, make_memory_file, raise_a_limit, outlive_the_parent, namespace),
            *(change_root, message_queue, foreign_architecture, descriptor_of_the_server),
        )
    },
}
