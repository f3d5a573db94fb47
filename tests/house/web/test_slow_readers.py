"""A slow reader keeps little of an answer in the server's memory, and not for ever."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

from engine.ops.processes import free_port
from sabotage.kit.waiting import wait_until
from tests.house.demo import ROOT
from tests.house.web.large_answers import PIECE, PIECES

ON_ITS_WAY_MAX = 12 * 2**20 // len(PIECE)  # pieces that the kernel's own buffers may hold
WHOLE = PIECES * len(PIECE)


@contextmanager
def server(data: Path, reading_seconds: int) -> Iterator[int]:
    """The port of a server with the large answer, which waits so long for a reader."""
    port = free_port()
    words = ("-m", "tests.house.web.large_answers", str(port), str(reading_seconds))
    env = {**os.environ, "NANOVM_DATA": str(data)}
    with subprocess.Popen([sys.executable, *words], cwd=ROOT, env=env) as popen:
        try:
            assert wait_until(lambda: said(port) == "[] []", 60_000)
            yield port
        finally:
            popen.terminate()


def said(port: int) -> str:
    """What the server says of its large answers; nothing while it starts."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    with suppress(ConnectionRefusedError), closing(connection):
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    return ""


@contextmanager
def reader(port: int) -> Iterator[socket.socket]:
    """A connection that has asked for the large answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as asking:
        asking.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        yield asking


def received(asking: socket.socket) -> int:
    """How many bytes come, to the end."""
    count = 0
    with suppress(ConnectionResetError):
        while part := asking.recv(1 << 20):
            count += len(part)
    return count


def test_a_silent_reader_gets_little_and_is_cut_off_and_another_one_gets_all(
    tmp_path: Path,
) -> None:
    with server(tmp_path, reading_seconds=5) as port:
        with reader(port) as silent:
            assert wait_until(lambda: "cut off" in said(port), 60_000)
            assert int(said(port).partition("]")[0][1:]) < ON_ITS_WAY_MAX
            assert received(silent) < WHOLE
        with reader(port) as other:
            assert received(other) > WHOLE
        assert said(port).endswith(f"{PIECES}] ['cut off', 'whole']")
