"""The command line: ready line, refusals, signals."""

import contextlib
import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stripe_sandbox.conftest import ACCOUNTS, ALPHA
from tests.stripe_sandbox.door import INTENTS, Door
from tests.stripe_sandbox.server import Server, command, run_to_its_end, start

ONE = {ALPHA: ACCOUNTS[ALPHA]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = start(
        command(database=tmp_path / "s.sqlite3", accounts=ONE), log=tmp_path / "stderr.log"
    )
    yield running
    running.terminate()


def _one_sentence(text: str) -> None:
    assert text.strip()
    assert len(text.strip().splitlines()) == 1, text
    assert "Traceback" not in text


def test_it_listens_on_loopback_and_sigterm_ends_it_with_zero(server: Server) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}"
    assert Door(url=server.url, key=ALPHA).send("GET", "/healthz", headers={}).status == 200
    assert server.terminate() == 0
    with pytest.raises(ConnectionError):
        Door(url=server.url, key=ALPHA).get(INTENTS)


HALF = b"POST /v1/payment_intents HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nam"


def test_open_connections_and_a_half_sent_request_do_not_hold_it_up(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    address = ("127.0.0.1", server.port)
    with contextlib.closing(connection), socket.create_connection(address, timeout=10) as half:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        half.sendall(HALF)
        assert Door(url=server.url, key=ALPHA).get(INTENTS).status == 200  # nor anybody else
        assert server.terminate() == 0


def test_a_stop_right_after_the_start_is_not_lost(tmp_path: Path) -> None:
    # Connections that arrive at the same moment keep the process busy enough to miss a signal.
    for number in range(3):
        line = command(database=tmp_path / f"{number}.sqlite3", accounts=ONE)
        hurried = start(line, log=tmp_path / "stderr.log")
        with contextlib.ExitStack() as crowd:
            for _ in range(4):
                address = ("127.0.0.1", hurried.port)
                crowd.enter_context(socket.create_connection(address, timeout=10))
            assert hurried.terminate() == 0


@pytest.mark.parametrize("key", ["sk_live_51Real", "rk_live_51Real", "pk_test_alpha", "alpha", ""])
def test_what_is_no_secret_test_key_is_refused(tmp_path: Path, key: str) -> None:
    ended = run_to_its_end(
        command(database=tmp_path / "s.sqlite3", accounts={**ONE, key: "acct_real"})
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr
    if "live" in key:
        _one_sentence(ended.stderr)
        assert "live" in ended.stderr


def test_a_taken_port_is_refused_and_a_freed_one_can_be_taken_at_once(
    server: Server, tmp_path: Path
) -> None:
    line = command(database=tmp_path / "second.sqlite3", accounts=ONE, port=server.port)
    ended = run_to_its_end(line)
    assert (ended.returncode, ended.stdout, str(server.port) in ended.stderr) == (2, "", True)
    _one_sentence(ended.stderr)
    Door(url=server.url, key=ALPHA).get(INTENTS)
    assert server.terminate() == 0
    again = start(line, log=tmp_path / "stderr.log")
    assert again.port == server.port
    assert again.terminate() == 0


def test_a_database_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    ended = run_to_its_end(command(database=tmp_path, accounts=ONE))  # a folder
    assert (ended.returncode != 0, ended.stdout) == (True, "")
    assert "Traceback" not in ended.stderr
