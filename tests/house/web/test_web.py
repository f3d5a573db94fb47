"""What the web server adds: bounded bodies that stay in memory, static files, strict headers."""

import os
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from django.contrib.staticfiles.finders import get_finders

from config.environment import UPLOAD_SIZE_BYTES_MAX
from config.web.connections import FREE_SIZE_BYTES_MAX
from engine.ops.processes import free_port, running, spawn_daphne
from tests.house.demo import processes_of

CHUNK = b"%" * 65536
COOKIE = "csrftoken=any"  # as a visitor has it who has opened a form


@dataclass(frozen=True)
class Web:
    """A running web server, its process id and its data folder."""

    url: str
    pid: int
    data: Path

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def open_files(self) -> set[str]:
        """What the process holds open outside its data folder, deleted files included."""
        names = set()
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed while we looked
                names.add(os.readlink(link))
        own = str(self.data)
        return {name for name in names if name.startswith("/") and not name.startswith(own)}

    def connect(self, source: str = "127.0.0.1") -> HTTPConnection:
        """A connection from this address of the machine, which has many."""
        return HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(source, 0))

    def begin(
        self, length: int, cookie: str = COOKIE, source: str = "127.0.0.1", path: str = "/healthz"
    ) -> HTTPConnection:
        """Begin a POST of this many bytes."""
        connection = self.connect(source)
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", str(length))
        connection.putheader("Cookie", cookie)
        connection.endheaders()
        return connection

    def get(self, path: str) -> HTTPResponse:
        """GET whatever it answers."""
        connection = self.connect()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """The web server alone, on an empty data folder."""
    data = tmp_path_factory.mktemp("web")
    env = {"NANOVM_DATA": str(data)}
    with running(spawn_daphne(env, free_port())) as child:
        pid = next(pid for pid, line in processes_of(data) if "config.web" in line)
        yield Web(child.url, pid, data)


def send(connection: HTTPConnection, size: int) -> None:
    """Send ``size`` bytes of a body."""
    for begin in range(0, size, len(CHUNK)):
        connection.send(CHUNK[: size - begin])


def status_of(connection: HTTPConnection) -> int:
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def refusal_of(connection: HTTPConnection) -> tuple[int, str]:
    """The status and the heading of a refusal: what a page has, and in words."""
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    assert answer.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in str(answer.headers["Content-Security-Policy"])
    [heading] = re.findall("<h1>(.*)</h1>", page)
    return answer.status, heading


def test_a_document_on_its_way_in_touches_no_file(web: Web) -> None:
    size = 10_000_000
    before = web.open_files()
    connection = web.begin(size)
    send(connection, size - 1)
    web.get("/healthz")  # by its answer the server has read on, and holds the body half way
    during = web.open_files()
    send(connection, 1)
    assert status_of(connection) == 403  # read to its end, then refused for want of a CSRF token
    assert during - before == set()


def test_a_large_body_of_who_has_opened_no_form_is_refused_at_once(web: Web) -> None:
    assert refusal_of(web.begin(10_000_000, cookie="a=b")) == (403, "Open the form first")
    small = web.begin(FREE_SIZE_BYTES_MAX, cookie="a=b", path="/webhooks/stripe/")
    send(small, FREE_SIZE_BYTES_MAX)
    assert status_of(small) == 404  # none is set up here


def test_a_refused_sender_who_goes_on_sending_reads_the_answer_still(web: Web) -> None:
    size = 4 * UPLOAD_SIZE_BYTES_MAX  # more than any socket buffers
    connection = web.begin(size)
    send(connection, size)
    assert refusal_of(connection) == (413, "That file is too large")


def test_bodies_that_stall_keep_no_other_visitor_out(web: Web) -> None:
    stalled = [web.begin(10_000_000, source="127.0.0.2") for _ in range(3)]
    assert refusal_of(stalled.pop()) == (429, "Too many requests from your address")
    mine = web.begin(10_000_000)
    send(mine, 10_000_000)
    assert status_of(mine) == 403
    others = [web.begin(10_000_000, source=f"127.0.0.{each}") for each in (3, 4, 5)]
    assert refusal_of(others.pop()) == (503, "The server is busy")
    for connection in (*stalled, *others):
        connection.close()


def test_a_static_file_is_served_under_the_strict_policy(web: Web) -> None:
    paths = [path for finder in get_finders() for path, _ in finder.list([])]
    scripts = [path for path in paths if path.endswith(".js")]
    assert scripts
    answer = web.get(f"/static/{scripts[0]}")
    assert answer.status == 200
    assert "javascript" in str(answer.headers["Content-Type"])
    policy = str(answer.headers["Content-Security-Policy"])
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy


def test_every_answer_has_the_strict_headers(web: Web) -> None:
    for path in ("/healthz", "/no-such-page", "/static/none.css"):
        headers = web.get(path).headers
        policy = str(headers["Content-Security-Policy"])
        assert f"connect-src 'self' ws://127.0.0.1:{web.port};" in policy
        names = ("X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options", "Server")
        assert [headers[name] for name in names] == ["nosniff", "same-origin", "DENY", None]
        assert "no-store" in str(headers["Cache-Control"])


def test_a_socket_at_no_address_is_closed_and_is_no_error(web: Web) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as visitor:
        lines = [
            "GET /ws/nowhere/ HTTP/1.1", f"Host: 127.0.0.1:{web.port}", f"Origin: {web.url}",
            "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ]  # fmt: skip
        visitor.sendall("\r\n".join([*lines, "", ""]).encode())
        heard = b""
        while b"\x88\x02\x11\x34" not in heard:  # a closing frame with 4404
            heard += visitor.recv(4096) or pytest.fail(str(heard))
    assert "Traceback" not in (web.data / "logs" / "web.log").read_text()


def test_a_foreign_host_name_is_refused(web: Web) -> None:
    request = urllib.request.Request(f"{web.url}/healthz", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="400") as refusal:
        urllib.request.urlopen(request)
    refusal.value.close()


def test_it_listens_on_the_loopback_interface_alone(web: Web) -> None:
    listening, loopback = "0A", "0100007F"  # 127.0.0.1, in the machine's byte order
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()
    ]
    places = [line[1] for line in lines if line[3] == listening]
    assert [each for each in places if each.endswith(f":{web.port:04X}")] == [
        f"{loopback}:{web.port:04X}"
    ]
