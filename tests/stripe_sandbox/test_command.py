"""The command line: ready line, refusals, signals."""

import contextlib
import http.client
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from engine.ops.processes import Child, ready, stop
from pipeline.ops.stripe_counterpart import spawn_stripe_counterpart
from tests.house.demo import refusal
from tests.stripe_sandbox.door import INTENTS, Door

ONE = "sk_test_alpha0001=acct_alpha0001"


def port_of(child: Child) -> int:
    return urlsplit(child.url).port or 0


def started(folder: Path, port: int = 0) -> Child:
    return ready(spawn_stripe_counterpart(folder, "--key", ONE, "--port", str(port)))


def ended(child: Child) -> int:
    """The status with which it ends when it is asked to, within a few seconds."""
    child.popen.send_signal(signal.SIGTERM)
    return child.popen.wait(5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Child]:
    running = started(tmp_path)
    yield running
    stop([running])


@pytest.fixture
def door(server: Child) -> Door:
    return Door(url=server.url, key=ONE.partition("=")[0])


def refused(tmp_path: Path, *options: str, **changed: str) -> str:
    """The one sentence with which it ends instead of starting."""
    given = {"database": str(tmp_path / "second.sqlite3"), "key": ONE, **changed}
    words = [word for name, text in given.items() for word in (f"--{name}", text)]
    return refusal(tmp_path, "-m", "stripe_sandbox", *words)


def test_it_listens_on_loopback_and_sigterm_ends_it_with_zero(server: Child, door: Door) -> None:
    assert server.url == f"http://127.0.0.1:{port_of(server)}"
    assert door.send("GET", "/healthz", headers={}).status == 200
    assert ended(server) == 0
    with pytest.raises(ConnectionError):
        door.get(INTENTS)


HALF = b"POST /v1/payment_intents HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nam"


def test_open_connections_and_a_half_sent_request_do_not_hold_it_up(
    server: Child, door: Door
) -> None:
    address = ("127.0.0.1", port_of(server))
    connection = http.client.HTTPConnection(*address, timeout=10)
    with contextlib.closing(connection), socket.create_connection(address, timeout=10) as half:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        half.sendall(HALF)
        assert door.get(INTENTS).status == 200  # nor anybody else
        assert ended(server) == 0


@pytest.mark.parametrize("key", ["sk_live_51Real", "rk_live_51Real", "pk_test_alpha", "alpha", ""])
def test_what_is_no_secret_test_key_is_refused(tmp_path: Path, key: str) -> None:
    assert ("live" in refused(tmp_path, key=f"{key}=acct_real")) == ("live" in key)


def test_a_taken_port_is_refused_and_a_freed_one_can_be_taken_at_once(
    server: Child, door: Door, tmp_path: Path
) -> None:
    port = port_of(server)
    assert str(port) in refused(tmp_path, port=str(port))
    door.get(INTENTS)
    assert ended(server) == 0
    again = started(tmp_path, port)
    assert (port_of(again), ended(again)) == (port, 0)


def test_a_database_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    assert str(tmp_path) in refused(tmp_path, database=str(tmp_path))  # a folder
