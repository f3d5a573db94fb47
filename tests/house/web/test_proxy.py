"""nanovm behind real TLS proxies, nginx and Caddy, with the recipes that the documents give."""

import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.ops.processes import free_port, running, spawn_daphne
from sabotage.kit.waiting import wait_until
from tests.house.demo import ROOT

NAME = "pay.example"
START_SECONDS_MAX = 60  # on a busy machine
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
NGINX_MAIN = """daemon off; master_process off; pid {folder}/pid; error_log stderr;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    {recipe}
}}
"""


@dataclass(frozen=True)
class Site:
    """A proxy with TLS, and the web server behind it."""

    https: int
    http: int
    app: int
    trust: ssl.SSLContext

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.https}"

    def tls(self) -> ssl.SSLSocket:
        """A connection as a visitor's browser opens it."""
        plain = socket.create_connection(("127.0.0.1", self.https), timeout=60)
        return self.trust.wrap_socket(plain, server_hostname=NAME)

    def ask(
        self, method: str, path: str, body: str = "", **headers: str
    ) -> tuple[HTTPResponse, str]:
        """What a visitor is answered over TLS."""
        visitor = HTTPSConnection(f"{NAME}:{self.https}", timeout=60)
        visitor.sock = self.tls()
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        visitor.request(method, path, body, named)
        answer = visitor.getresponse()
        text = answer.read().decode()
        visitor.close()
        return answer, text


def certificate(folder: Path) -> ssl.SSLContext:
    """Write a certificate and its key for this test alone; returns who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / f"{NAME}.pem").write_bytes(built.public_bytes(pem))
    (folder / f"{NAME}.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ssl.create_default_context(cafile=str(folder / f"{NAME}.pem"))


def recipe(name: str, changes: Mapping[str, str]) -> str:
    """A recipe of the documents, changed as little as a test needs."""
    text = (ROOT / "docs" / "proxy" / name).read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def nginx(program: str, folder: Path, https: int, plain: int, app: int) -> list[str]:
    """The command that starts nginx with its recipe, on ports of this test."""
    changes = {
        "listen 443": f"listen 127.0.0.1:{https}",
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "127.0.0.1:8000": f"127.0.0.1:{app}",
        "/etc/ssl": str(folder),
    }
    file = folder / "nginx.conf"
    file.write_text(NGINX_MAIN.format(folder=folder, recipe=recipe(file.name, changes)))
    return [program, "-p", str(folder), "-c", str(file), "-e", "stderr"]


def caddy(program: str, folder: Path, https: int, plain: int, app: int) -> list[str]:
    """The command that starts Caddy with its recipe, on ports and with a certificate of this test.

    The recipe lets Caddy ask for one, which the name of this test cannot get.
    """
    changes = {
        "{\n\tservers": f"{{\n\tadmin off\n\thttps_port {https}\n\thttp_port {plain}\n\tservers",
        "example {": f"example {{\n\tbind 127.0.0.1\n\ttls {folder}/{NAME}.pem {folder}/{NAME}.key",
        "127.0.0.1:8000": f"127.0.0.1:{app}",
    }
    file = folder / "Caddyfile"
    file.write_text(recipe(file.name, changes))
    return [program, "run", "--adapter", "caddyfile", "--config", str(file)]


class Ports(NamedTuple):
    """Where a proxy listens, with TLS and without."""

    https: int
    http: int


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, dict[str, Ports]]]:
    """The port of one web server that both proxies pass requests to, and their own ports."""
    ports = {each.__name__: Ports(free_port(), free_port()) for each in (nginx, caddy)}
    env = {
        "NANOVM_DATA": str(tmp_path_factory.mktemp("data")),
        "NANOVM_ORIGINS": ",".join(f"https://{NAME}:{each.https}" for each in ports.values()),
        "NANOVM_PROXY": "127.0.0.1",
    }
    app = free_port()
    with running(spawn_daphne(env, app)):
        yield app, ports


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def site(
    request: pytest.FixtureRequest,
    behind: tuple[int, dict[str, Ports]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    command: Callable[..., list[str]] = request.param
    program = shutil.which(command.__name__, path=PATH)
    if program is None:
        pytest.skip(f"{command.__name__} is missing: make test installs it as root on Debian")
    folder = tmp_path_factory.mktemp("proxy")
    app, ports = behind[0], behind[1][command.__name__]
    made = Site(*ports, app, certificate(folder))
    own = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("w") as log:
        proxy = subprocess.Popen(
            command(program, folder, *ports, app), stderr=log, stdin=subprocess.DEVNULL, env=own
        )
        try:
            is_up = wait_until(lambda: listens(made.https), START_SECONDS_MAX * 1_000)
            assert is_up, (folder / "log").read_text()
            yield made
        finally:
            proxy.terminate()
            proxy.wait(START_SECONDS_MAX)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def form(site: Site) -> tuple[str, str]:
    """The token of a page's form, and the cookie that goes with it."""
    answer, page = site.ask("GET", "/docs/threat-model/")
    assert answer.status == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    return token[1], str(answer.headers["Set-Cookie"])


def test_a_page_behind_tls_is_secure(site: Site) -> None:
    answer, _ = site.ask("GET", "/docs/threat-model/")
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert f"connect-src 'self' wss://{NAME}:{site.https};" in str(
        answer.headers["Content-Security-Policy"]
    )
    assert "; Secure" in form(site)[1]


def test_a_form_behind_tls_is_taken_and_one_of_another_site_is_not(site: Site) -> None:
    token, cookie = form(site)
    body = f"csrfmiddlewaretoken={token}&theme=dark&next=/"
    kind = "application/x-www-form-urlencoded"
    sent = {"Content_Type": kind, "Cookie": cookie.partition(";")[0]}
    taken, _ = site.ask("POST", "/theme/", body, Origin=site.origin, **sent)
    assert taken.status == 303
    refused, _ = site.ask("POST", "/theme/", body, Origin="https://evil.example", **sent)
    assert refused.status == 403


def test_plain_http_is_sent_to_tls(site: Site) -> None:
    visitor = HTTPConnection("127.0.0.1", site.http, timeout=60)
    visitor.request("GET", "/runs/", headers={"Host": NAME})
    answer = visitor.getresponse()
    assert answer.status in (301, 308)  # for good
    assert answer.headers["Location"] == f"https://{NAME}/runs/"
    visitor.close()


@pytest.mark.parametrize(("source", "believed"), [("127.0.0.1", True), ("127.0.0.2", False)])
def test_the_word_of_the_proxy_counts_and_a_strangers_does_not(
    site: Site, source: str, believed: bool
) -> None:
    peer = HTTPConnection("127.0.0.1", site.app, source_address=(source, 0))
    peer.request("GET", "/docs/threat-model/", headers={"X-Forwarded-Proto": "https"})
    answer = peer.getresponse()
    answer.read()
    peer.close()
    assert ("Strict-Transport-Security" in answer.headers) is believed


def test_a_socket_is_opened_through_the_proxy(site: Site) -> None:
    with site.tls() as visitor:
        lines = [
            "GET /ws/nowhere/ HTTP/1.1", f"Host: {NAME}:{site.https}", f"Origin: {site.origin}",
            "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
        ]  # fmt: skip
        visitor.sendall("\r\n".join([*lines, "", ""]).encode())
        heard = b""
        while b"\x88\x02\x11\x34" not in heard:  # a closing frame with 4404
            part = visitor.recv(4096)
            assert part, heard
            heard += part
    assert heard.startswith(b"HTTP/1.1 101 ")


def test_a_body_that_is_too_large_is_refused_in_words(site: Site) -> None:
    with site.tls() as visitor:
        head = f"POST /runs/ HTTP/1.1\r\nHost: {NAME}:{site.https}\r\nCookie: csrftoken=x\r\n"
        visitor.sendall(f"{head}Content-Length: 20000000\r\n\r\n".encode())
        visitor.settimeout(0.2)
        heard, silent = b"", time.monotonic() + 60
        while b"</h1>" not in heard:
            try:
                part = visitor.recv(65536)
            except TimeoutError:  # Caddy passes an early answer on once more of the body comes
                assert time.monotonic() < silent, heard
                visitor.sendall(bytes(1024))
            else:
                assert part, heard
                heard += part
    assert heard.startswith(b"HTTP/1.1 413 ")
    assert b"That file is too large" in heard
