"""The walls around the reader: what code that has taken it over can still do."""

import ast
import errno
import json
import os
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, Final

import pytest
import stdnum
from pypdf import _cmap

from reader import PAGES_MAX, child, confinement, reading_child, sandbox
from reader.child import BEGUN
from tests.house.demo import ROOT
from tests.pipeline.steps.takeover import ATTACKS

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "missing" in sandbox.confinement(),
    reason=f"this kernel lacks a wall: {sandbox.confinement() if sys.platform == 'linux' else ''}",
)
SECRET: Final = "sk_test_the_secret_of_this_test"
# What the wall of files and addresses refuses alone, with neither seccomp nor a limit.
BY_LANDLOCK: Final = {
    *("open", "open_relative", "open_by_own_root", "environment_of_another"),
    *("environment_of_the_parent", "descriptor_of_another", "list_a_folder", "list_processes"),
    *("o_path_then_openat", "hard_link_beside", "symbolic_link", "rename_a_file"),
    *("open_by_handle", "sqlite_attach", "map_a_file", "open_of_the_c_library", "raw_openat2"),
    *("read_memory_file", "create_a_file", "truncate_a_file", "tcp", "tcp_v6", "unix_abstract"),
    *("execute_a_program", "spawn", "kill", "raw_tgkill", "is_parent_there", "trace"),
    *("signal_by_descriptor", "read_memory", "take_descriptor"),
}
# Only the closing of descriptors stops it; no wall looks at what is already open.
BY_CLOSING: Final = {"descriptor_left_open", "descriptor_of_the_server"}
# Another account than root, a container or a setting of the kernel may refuse them to everyone.
MAY_FAIL_ANYWHERE: Final = {
    *("open_by_handle", "raw_ip", "packets", "load_bpf", "change_root", "namespace"),
    *("io_uring", "add_a_key", "handle_page_faults", "foreign_architecture"),
    *("read_memory", "read_memory_file", "take_descriptor", "trace", "tcp_v6", "limits_of_another"),
}
WALLS: Final = ("landlock", "seccomp", "open_no_more")
# For images, which the reader does not look at, packages that it leaves out, and web services.
NEVER_NEEDED: Final = {
    *("pypdf.generic._image_xobject", "fontTools.cffLib", "brotli", "pkg_resources"),
    *("requests", "suds.client", "suds.transport.http", "urllib.request", "zeep"),
    *("zeep.transports", "pysimplesoap.client", "numpy", "tabulate"),
}
MODULES: Final = tuple(f"reader.{name}" for name in ("limits", "confinement", "fork_server"))
VICTIM: Final = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER: Yama lets anyone trace it
secret = ctypes.create_string_buffer(os.environ["STRIPE_SECRET_KEY"].encode())
print(os.open(sys.argv[1], os.O_RDONLY), ctypes.addressof(secret), flush=True)
sys.stdin.read()
"""


class Prison:
    """The targets, and what the attacks get of them inside a child with some of the walls."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        folder.chmod(0o700)
        self.listeners = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))),
            stack.enter_context(self.listener(socket.AF_INET6, ("::1", 0))),
            stack.enter_context(self.listener(socket.AF_UNIX, str(folder / "socket"))),
            stack.enter_context(self.listener(socket.AF_UNIX, f"\0takeover-{os.getpid()}")),
        ]
        (folder / "kek").write_text(SECRET)
        self.victim = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", VICTIM, str(folder / "kek")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={"STRIPE_SECRET_KEY": SECRET},
            )
        )
        assert self.victim.stdout is not None
        self.descriptor, self.address = map(int, self.victim.stdout.readline().split())

    @staticmethod
    def listener(family: int, address: Any) -> socket.socket:
        door = socket.socket(family)
        door.bind(address)
        door.listen()
        return door

    def aims(self, folder: Path) -> dict[str, Any]:
        """A folder of keys of its own for each child, since attacks change it."""
        folder.mkdir()
        (folder / "kek").write_text(SECRET)
        (folder / "sources.json").write_text(json.dumps({n: source_of(n) for n in MODULES}))
        (folder / "movable").touch()
        (folder / "log").write_text("not empty")
        (folder / "executed").write_text('{"execute_a_program": true}\n')
        with sqlite3.connect(folder / "keys.sqlite3") as database:
            database.execute("CREATE TABLE secrets (secret)")
            database.execute("INSERT INTO secrets VALUES (?)", (SECRET,))
        database.close()
        return {
            "abstract": f"takeover-{os.getpid()}",
            "address": self.address,
            "cat": shutil.which("cat"),
            "database": str(folder / "keys.sqlite3"),
            "descriptor": self.descriptor,
            "folder": str(folder),
            "key": str(folder / "kek"),
            "secret": SECRET,
            "tcp": self.listeners[0].getsockname()[1],
            "tcp_v6": self.listeners[1].getsockname()[1],
            "unix": str(self.folder / "socket"),
            "victim": self.victim.pid,
        }

    @cache  # noqa: B019 - one prison a module
    def results(self, *walls: str) -> dict[str, bool | str]:
        """True for each attack that succeeds behind these walls, else how it was refused."""
        without = [wall for wall in WALLS if wall not in walls]
        aims = self.aims(self.folder / ("-".join(walls) or "none"))
        begun, _, lines = taken_over(without, aims).partition(BEGUN)
        assert json.loads(begun)["missing"] == ""
        found: dict[str, bool | str] = {}
        for line in lines.splitlines():
            found |= json.loads(line)
        return found


def source_of(name: str) -> str:
    """A module's source as this process has compiled it, which may lack a guard."""
    loader = sys.modules[name].__loader__
    assert isinstance(loader, SourceFileLoader)
    source = loader.get_source(name)
    assert source is not None
    return source


def taken_over(without: list[str], aims: dict[str, Any]) -> bytes:
    """What a child of the product's own fork server writes with the attacks for a reader."""
    old = "from reader.fork_server import serve;"
    new = (
        "from tests.pipeline.steps.takeover import taken_over;"
        f" serve = taken_over({without!r}, {aims['key']!r}, {aims['folder'] + '/sources.json'!r});"
    )
    assert sandbox._BOOT.count(old) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "_BOOT", sandbox._BOOT.replace(old, new))
        document = json.dumps({**aims, "parent": sandbox._server()._process.pid}).encode()
        try:
            order = sandbox._order(document, pages_max=PAGES_MAX)
            return sandbox._asked(order, reading_child.Times(60, 60))
        finally:
            sandbox.end()


@pytest.fixture(scope="module")
def prison(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prison]:
    with ExitStack() as stack:
        yield Prison(tmp_path_factory.mktemp("prison"), stack)


@pytest.mark.whole
@pytest.mark.parametrize("attack", ATTACKS)
def test_code_that_took_over_the_reader_gets_nothing(prison: Prison, attack: str) -> None:
    """Neither behind all walls nor behind each that is meant to stop the attack alone."""
    assert_refused(prison.results(*WALLS)[attack])
    if attack in BY_CLOSING:
        assert_refused(prison.results("open_no_more")[attack])
    else:
        assert_refused(prison.results("seccomp")[attack])
    if attack in BY_LANDLOCK:
        assert_refused(prison.results("landlock")[attack])


@pytest.mark.whole
@pytest.mark.parametrize("attack", ATTACKS)
def test_without_walls_the_same_code_gets_what_it_wants(prison: Prison, attack: str) -> None:
    result = prison.results()[attack]
    if result is not True and attack in MAY_FAIL_ANYWHERE:
        assert_refused(result)
        pytest.skip(f"here it is refused to everyone ({result})")
    assert result is True


def assert_refused(result: bool | str) -> None:
    codes = {"EPERM", "EACCES", "ENOSYS", "EMFILE", "EBADF", "EXDEV"}
    assert result in codes | {"SQLITE_CANTOPEN"}


def test_child_says_which_walls_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sandbox.confinement() == {"confined": "landlock, seccomp"}
    refusal = OSError(errno.EOPNOTSUPP, "Operation not supported")
    monkeypatch.setattr(confinement, "open_no_more", lambda: None)
    monkeypatch.setattr(confinement, "seccomp", lambda: None)

    def switched_off() -> None:
        raise refusal

    monkeypatch.setattr(confinement, "landlock", switched_off)
    expected = {"confined": "seccomp", "missing": "landlock (Operation not supported)"}
    assert confinement.close() == expected


def answer_of_filter(machine: str, call: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter of a machine answers: the few instructions that it uses, carried out."""
    arch = confinement._ARCHES[machine] if arch is None else arch
    seen = struct.pack("=IIQ6Q", call, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    lines, at, value = [*confinement._filter(machine)], 0, 0
    while True:
        code, jump, otherwise, operand = lines[at]
        at += 1
        match code:
            case confinement._LOAD:
                (value,) = struct.unpack_from("=I", seen, operand)
            case confinement._AND:
                value &= operand
            case confinement._EQUAL:
                at += jump if value == operand else otherwise
            case confinement._AT_LEAST:
                at += jump if value >= operand else otherwise
            case confinement._RETURN:
                return operand & 0xFFFF if operand != confinement._RET_ALLOW else 0


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filter_allows_threads_and_own_signals_and_nothing_like_them(machine: str) -> None:
    _, clone, tgkill, prlimit = confinement._SPECIAL[machine]
    thread, here = confinement._THREAD, os.getpid()
    new_user, past_32_bits = 0x10000000, 1 << 32
    for call, arguments, expected in (
        (clone, (thread,), 0),
        (clone, (thread | confinement._DETACHED,), 0),
        (clone, (17,), errno.EPERM),
        (clone, (thread | new_user,), errno.EPERM),
        (tgkill, (here, 1, 6), 0),
        (tgkill, (here + 1, 1, 6), errno.EPERM),
        (prlimit, (0, 7, 0), 0),
        (prlimit, (1, 7, 0), errno.EPERM),
        (prlimit, (0, 7, 1), errno.EPERM),
        (prlimit, (0, 7, past_32_bits), errno.EPERM),
        (confinement._LATER_CALLS - 1, (), errno.EPERM),
        (confinement._LATER_CALLS, (), errno.ENOSYS),
        (*(confinement._ALLOWED[machine][0], ()), 0),
    ):
        assert answer_of_filter(machine, call, *arguments) == expected, (call, arguments)
    foreign = confinement._ALLOWED[machine][0]
    assert answer_of_filter(machine, foreign, arch=0x40000003) == errno.EPERM  # AUDIT_ARCH_I386
    assert len({*confinement._ALLOWED[machine]}) == len(confinement._ALLOWED["x86_64"])
    if machine == "x86_64":  # the same calls with the x32 bit
        assert all(answer_of_filter(machine, 0x40000000 | call) for call in (0, 1, 9))


def late_imports(source: str, package: str) -> set[str]:
    """The modules that functions import as they run."""
    functions = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)]
    found: set[str] = set()
    for each in (inner for function in functions for inner in ast.walk(function)):
        match each:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=module, level=level):
                found.add(resolve_name("." * level + (module or ""), package))
    return found


@pytest.mark.reader
def test_whatever_the_reader_imports_late_is_there_before_the_walls() -> None:
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]);"
        "from reader.child import loaded; loaded();"
        "print(json.dumps([*sys.modules]));"
        "print(json.dumps([(each.__file__, each.__package__) for name, each in sys.modules.items()"
        " if name.startswith(('pypdf', 'stdnum', 'pipeline'))]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(ROOT)], capture_output=True, check=True
    )
    there, read = map(json.loads, done.stdout.splitlines())
    late = set[str]().union(*(late_imports(Path(file).read_text(), name) for file, name in read))
    assert late - {*there} <= NEVER_NEEDED
    countries = Path(stdnum.__file__).parent.glob("*/iban.py")
    assert {f"stdnum.{each.parent.name}.iban" for each in countries} <= {*there}
    assert {*_cmap._predefined_cmap.values()} <= {*child._LATE_CODECS}


def test_behind_the_walls_threads_start_and_abort_ends_the_process() -> None:
    """Native libraries do both."""
    script = (
        "import os, sys, threading; sys.path.insert(0, sys.argv[1]);"
        "from reader import confinement; confinement.close();"
        "one = threading.Thread(target=os.write, args=(1, b'a thread')); one.start(); one.join();"
        "os.abort()"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(ROOT)], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (-6, b"a thread")
