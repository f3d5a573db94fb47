"""What the web server adds: bounded bodies that stay in memory, static files, strict headers."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from django.contrib.staticfiles.finders import get_finders

from config.environment import UPLOAD_SIZE_BYTES_MAX
from config.web import DROPPED_SIZE_BYTES_MAX
from pipeline.ops.processes import daphne, free_port
from tests.house.demo import processes_of

CHUNK = b"%" * 65536


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

    def begin(self, length: int) -> HTTPConnection:
        """Begin a POST of this many bytes."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest("POST", "/healthz")
        connection.putheader("Content-Length", str(length))
        connection.endheaders()
        return connection

    def get(self, path: str) -> HTTPResponse:
        """GET whatever it answers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
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
    with daphne(env, free_port()) as url:
        pid = next(pid for pid, line in processes_of(data) if "config.web" in line)
        yield Web(url, pid, data)


def send(connection: HTTPConnection, size: int) -> None:
    """Send ``size`` bytes of a body."""
    for begin in range(0, size, len(CHUNK)):
        connection.send(CHUNK[: size - begin])


def status_of(connection: HTTPConnection) -> int:
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


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


@pytest.mark.parametrize("size", [UPLOAD_SIZE_BYTES_MAX, UPLOAD_SIZE_BYTES_MAX + 1])
def test_a_body_at_the_bound_and_over_it_gets_an_answer(web: Web, size: int) -> None:
    connection = web.begin(size)
    send(connection, size)
    assert status_of(connection) == 403


def test_a_body_that_does_not_end_is_cut_off(web: Web) -> None:
    connection = web.begin(2 * DROPPED_SIZE_BYTES_MAX)
    with closing(connection), pytest.raises((ConnectionResetError, BrokenPipeError)):
        send(connection, 2 * DROPPED_SIZE_BYTES_MAX)
    assert web.get("/healthz").status == 503  # it goes on: nothing else runs here


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


def test_an_answer_that_is_no_page_has_an_icon_too(web: Web) -> None:
    answer = web.get("/favicon.ico")
    assert answer.status == 302
    assert web.get(str(answer.headers["Location"])).status == 200
