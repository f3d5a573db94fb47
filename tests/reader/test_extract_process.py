"""The child process and the limits of step 2."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

from mutations.readers import lack_guards_too
from reader import (
    PAGES_MAX,
    SIZE_BYTES_MAX,
    ExtractionError,
    ReaderLostError,
    extract,
    reading_child,
    sandbox,
)
from reader.fork_server import TOLD
from reader.sandbox import MEMORY_BYTES_MAX, SECONDS_MAX, run_child
from tests.house.demo import ROOT, await_end
from tests.kit.pdf_builder import invoice_lines, operators_pdf, text_pdf
from tests.kit.reading import read_here

T = TypeVar("T")
lack_guards_too()  # in a trial that removes a guard of the reader
SLOW = [b"BT /F1 1 Tf (abc) Tj ET\n" * 400_000]
GREEDY = [b"BT /F1 1 Tf (", b"a" * 150_000_000, b") Tj ET"]


@pytest.mark.reader
def test_document_of_the_largest_size_reaches_the_child() -> None:
    data = text_pdf(invoice_lines())
    padded = data + b"\n%" + b"x" * (SIZE_BYTES_MAX - len(data) - 2)
    assert run_child(padded, pages_max=PAGES_MAX).fields == read_here(data).fields


def test_slow_document_is_stopped_with_everything_it_started() -> None:
    server = sandbox._server()._process.pid
    assert stopped(operators_pdf(SLOW)) == "DOC-007"
    assert busy(waiting_of(server)) is None
    assert sandbox._server()._process.pid == server


def waiting_of(server: int) -> list[int]:
    """The one child without a document that a server has, once every other one is gone."""
    return eventually(lambda: found if len(found := children_of(server)) == 1 else None)


def stopped(data: bytes) -> str:
    """The reason of a document whose reader is stopped as soon as it has had time to begin."""
    for seconds in (1.5, 6, 24):
        try:
            run_child(data, pages_max=PAGES_MAX, seconds=seconds)
        except ReaderLostError:
            continue
        except ExtractionError as error:
            return error.code
    raise AssertionError("no reader began")


def ends_of_readers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How the readers ended, of those that are asked from here on; each has a second."""
    codes, check = list[int](), sandbox._check_ended

    def noted(answer: bytes, returncode: int) -> None:
        codes.append(returncode)
        check(answer, returncode)

    monkeypatch.setattr(sandbox, "SECONDS_MAX", 1)
    monkeypatch.setattr(sandbox, "_check_ended", noted)
    return codes


@pytest.mark.reader
def test_document_has_seconds_of_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = ends_of_readers(monkeypatch)
    with pytest.raises(ExtractionError, match="DOC-007"):
        extract(operators_pdf(SLOW))
    assert ends == [-signal.SIGXCPU]


STUBBORN = """
import itertools, signal
from reader import child
def stubborn(data, pages_max):
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    for _ in itertools.count(): pass
child.loaded = lambda: stubborn
"""


@pytest.mark.reader
def test_code_that_ignores_the_end_of_its_time_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = ends_of_readers(monkeypatch)
    before, after = sandbox._BOOT.split("from reader.limits")
    monkeypatch.setattr(sandbox, "_BOOT", f"{before}exec({STUBBORN!r}); from reader.limits{after}")
    with pytest.raises(ExtractionError, match="DOC-007"):
        extract(text_pdf(invoice_lines()))
    assert ends == [-signal.SIGXCPU]


@pytest.mark.reader
def test_time_until_a_child_begins_is_not_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine imports the reader for longer than a document may take."""
    passed, told = [0.0], reading_child._told
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])

    def late(line: socket.socket, deadline: float) -> int | None:
        number = told(line, deadline)
        passed[0] += sandbox.KILL_AFTER_SECONDS
        return number

    for module in (reading_child, sandbox):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(reading_child, "_told", late)
    assert extract(text_pdf(invoice_lines())).pages == 1
    with pytest.raises(ReaderLostError, match="did not begin in time"):
        run_child(text_pdf(invoice_lines()), pages_max=PAGES_MAX, seconds=0)


@pytest.mark.reader
def test_server_that_no_longer_forks_or_kills_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    data = text_pdf(invoice_lines())
    monkeypatch.setattr(reading_child, "KILL_SECONDS_MAX", 0.1)
    assert extract(data).pages == 1
    stuck = sandbox._server()
    waiting_of(stuck._process.pid)
    os.kill(stuck._process.pid, signal.SIGSTOP)
    with pytest.raises(ReaderLostError, match="hangs"):  # whatever the child ahead answers
        run_child(data, pages_max=PAGES_MAX, seconds=1)
    assert extract(data).pages == 1
    stuck, before = sandbox._server(), stuck
    assert stuck is not before
    stuck._ahead.pop().close()
    os.kill(stuck._process.pid, signal.SIGSTOP)
    with pytest.raises(ReaderLostError, match="not ready in time"):
        sandbox.confinement(seconds=0.1)
    assert extract(data).pages == 1
    after = sandbox._server()
    assert after is not stuck

    def interrupted() -> None:
        with reading_child.forked(sandbox._server, reading_child.Times(60, 60)):
            os.kill(after._process.pid, signal.SIGSTOP)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        interrupted()
    assert extract(data).pages == 1
    assert sandbox._server() is not after


@pytest.mark.reader
@pytest.mark.parametrize("begins", [True, False])
def test_server_that_still_imports_goes_on_and_one_that_never_begins_is_replaced(
    monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    other = sandbox.MEMORY_BYTES_MAX - (1 if begins else 2)
    monkeypatch.setattr(sandbox, "MEMORY_BYTES_MAX", other)  # and so another server
    if not begins:
        monkeypatch.setattr(reading_child, "IMPORT_SECONDS_MAX", 0)
    server = sandbox._server()
    if not begins:
        os.kill(server._process.pid, signal.SIGSTOP)
    with pytest.raises(ReaderLostError, match="not ready in time"):
        sandbox.confinement(seconds=0)
    assert extract(text_pdf(invoice_lines())).pages == 1
    assert (sandbox._server() is server) is begins


@pytest.mark.reader
def test_greedy_document_runs_into_the_memory_limit_and_not_into_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "MEMORY_BYTES_MAX", 200 * 1024 * 1024)  # sooner reached
    with pytest.raises(ExtractionError, match=r"DOC-00[89]"):  # PDFium does not say why it failed
        run_child(operators_pdf(GREEDY), pages_max=PAGES_MAX, seconds=120)


def ended_by(number: signal.Signals) -> BaseException | None:
    """What becomes of a document whose reader gets this signal while it reads."""
    server = sandbox._server()._process.pid
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(run_child, operators_pdf(SLOW), pages_max=PAGES_MAX)
        child = eventually(lambda: busy(children_of(server)))
        os.kill(child, number)
        return reading.exception()


OTHERS = [pytest.param(each, marks=pytest.mark.reader) for each in (signal.SIGTERM, signal.SIGINT)]


@pytest.mark.parametrize("number", [signal.SIGKILL, *OTHERS])
def test_reader_that_is_ended_from_outside_says_nothing_of_the_document(
    number: signal.Signals,
) -> None:
    """Also where the worker itself ignores the signal, as a shell's background job does."""
    ignored = {signal.SIGTERM, signal.SIGINT}
    before = {each: signal.signal(each, signal.SIG_IGN) for each in ignored}
    signal.pthread_sigmask(signal.SIG_BLOCK, ignored)
    try:
        error = ended_by(number)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ignored)
        for each, handler in before.items():
            signal.signal(each, handler)
    assert isinstance(error, ReaderLostError)
    assert number.name in str(error)


@pytest.mark.parametrize(("number", "code"), [
    (signal.SIGSEGV, "DOC-009"),
    pytest.param(signal.SIGABRT, "DOC-008", marks=pytest.mark.reader),
    pytest.param(signal.SIGXCPU, "DOC-007", marks=pytest.mark.reader),
])  # fmt: skip
def test_signal_that_a_document_can_bring_about_is_its_own_fault(
    number: signal.Signals, code: str
) -> None:
    error = ended_by(number)
    assert isinstance(error, ExtractionError)
    assert error.code == code


@pytest.mark.reader
def test_reader_that_ends_before_it_reads_says_nothing_of_the_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = text_pdf(invoice_lines())
    with monkeypatch.context() as patch:  # what there is for it does not even hold its code
        patch.setattr(sandbox, "MEMORY_BYTES_MAX", 24 * 1024 * 1024)
        with pytest.raises(ReaderLostError, match="before it began"):
            extract(data)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nonexistent/python")
        with pytest.raises(ReaderLostError, match="could not be started"):
            extract(data)
    assert extract(data).pages == 1


def test_documents_of_several_threads_are_read_at_once_each_by_a_child_of_its_own() -> None:
    totals = [f"{number}00.00" for number in range(1, 5)]
    documents = [text_pdf(invoice_lines(total=f"Total due EUR {total}")) for total in totals]
    with ThreadPoolExecutor(len(documents)) as pool:
        assert [each.fields.total_due for each in pool.map(extract, documents)] == totals
    server = Path(f"/proc/{sandbox._server()._process.pid}")
    waiting_of(int(server.name))
    assert len([*(server / "task").iterdir()]) == 1  # a fork takes over no other thread's locks
    # Its streams, what wakes it, the line of the child ahead: what belongs to a document is closed.
    assert eventually(lambda: len([*(server / "fd").iterdir()]) == 7)
    assert (server / "environ").read_bytes() == b"LC_ALL=C.UTF-8\0MALLOC_ARENA_MAX=2\0"


def test_so_many_children_at_once_and_no_more() -> None:
    with ExitStack() as held:
        for _ in range(reading_child.TOGETHER_MAX):
            child = reading_child.forked(sandbox._server, reading_child.Times(60, 60))
            held.enter_context(child)
        assert len(children_of(sandbox._server()._process.pid)) == reading_child.TOGETHER_MAX
        assert not reading_child._here.turns.acquire(blocking=False)


def test_child_is_ready_before_its_document_and_reads_no_other() -> None:
    server, data = sandbox._server(), text_pdf(invoice_lines())
    assert extract(data).pages == 1
    (ready,) = waiting_of(server._process.pid)
    assert len([*Path(f"/proc/{server._process.pid}/task").iterdir()]) == 1  # or it cannot fork
    waits = Path(f"/proc/{ready}")
    eventually(lambda: "Seccomp:\t2\n" in (waits / "status").read_text())  # its last wall
    assert {each.name for each in (waits / "fd").iterdir()} == {"0", "1", "2"}
    assert extract(data).pages == 1
    (after,) = waiting_of(server._process.pid)
    assert after != ready
    os.kill(after, signal.SIGKILL)
    eventually(lambda: len([*Path(f"/proc/{server._process.pid}/fd").iterdir()]) == 6)  # it knows
    assert extract(data).pages == 1  # one that was ended while it waited is left


def test_server_that_was_killed_while_it_waited_is_replaced() -> None:
    server = sandbox._server()
    server.order_ahead()
    line, end = socket.socketpair()
    end.send(TOLD.pack(0))  # a child that was just forked, and has the other end too
    server._ahead[0].line.close()
    server._ahead[0] = replace(server._ahead[0], line=line)
    os.kill(server._process.pid, signal.SIGKILL)
    await_end(server._process.pid)
    with end:
        assert extract(text_pdf(invoice_lines())).pages == 1
    assert sandbox._server() is not server


@pytest.mark.reader
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # other threads are the runner's
def test_server_ends_with_its_process_though_a_fork_of_that_lives_on() -> None:
    server = sandbox._server()
    held, hold = os.pipe()
    fork = os.fork()
    if fork == 0:
        os.close(hold)
        os.read(held, 1)
        os._exit(0)
    try:
        server._orders.close()  # as at the end of this process
        await_end(server._process.pid)
    finally:
        server.end()
        for each in (held, hold):
            os.close(each)
        os.waitpid(fork, 0)


def test_limits_are_set_in_the_child() -> None:
    script = (
        "import os, resource, sys; sys.path.insert(0, sys.argv[1]);"
        "from reader.limits import confine, confine_child;"
        "confine(int(sys.argv[2])); confine_child(10, os.getppid());"
        "names = ('AS', 'CPU', 'CORE', 'FSIZE', 'NOFILE');"
        "print(*[resource.getrlimit(getattr(resource, 'RLIMIT_' + name))[0] for name in names]);"
        "bytearray(int(sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(ROOT), str(MEMORY_BYTES_MAX)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [str(MEMORY_BYTES_MAX), str(SECONDS_MAX), "0", "0", "32"]
    assert "MemoryError" in done.stderr


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a child of its parent's death"
)
def test_child_dies_with_its_parent() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from reader import extract; extract(sys.stdin.buffer.read())"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(ROOT)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert parent.stdin is not None
    parent.stdin.write(operators_pdf(SLOW))
    parent.stdin.close()
    server = eventually(lambda: children_of(parent.pid))[0]
    child = eventually(lambda: busy(children_of(server)))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    await_end(child)
    await_end(server)


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def busy(children: list[int]) -> int | None:
    """The child that a document has been given to, once it begins to read."""
    for child in children:
        done = dict(each.split(": ") for each in Path(f"/proc/{child}/io").read_text().splitlines())
        if int(done["rchar"]) > 0:
            return child
    return None


def eventually(check: Callable[[], T | None]) -> T:
    """The first answer that is not false, within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = check()
        if answer:
            return answer
        time.sleep(0.01)  # nothing tells of another process of that process
    raise AssertionError("it did not happen within a minute")
