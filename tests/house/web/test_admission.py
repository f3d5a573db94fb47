"""Deadlines of connections, and how many are admitted: with a clock of the tests' own."""

import asyncio
import json
import runpy
from collections.abc import Iterator
from http import HTTPStatus
from ipaddress import ip_network
from typing import Any

import daphne.server
import pytest
from daphne.cli import CommandLineInterface
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from config.environment import UPLOAD_SIZE_BYTES_MAX
from config.web import admission, connections
from config.web.admission import WAITING_PER_ADDRESS_MAX, ConnectionLimits
from config.web.connections import (
    BODY_SECONDS_MAX,
    BODY_SILENT_SECONDS_MAX,
    FREE_SIZE_BYTES_MAX,
    HEAD_SECONDS_MAX,
    READING_SECONDS_MAX,
    BoundedFactory,
    LimitedFactory,
)

HEAD = b"POST /runs/new/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\n"


class Server:
    """Just enough of Daphne's for a connection whose requests get no answer."""

    proxy_forwarded_address_header = None
    root_path = ""

    def create_application(self, _protocol: object, _scope: object) -> None:
        """No application takes it."""

    def protocol_connected(self, protocol: object) -> None:
        """One more request."""

    def protocol_disconnected(self, protocol: object) -> None:
        """One request less."""


class Line:
    """A connection from outside: what is sent over it, and what came back."""

    def __init__(self, entrance: LimitedFactory, address: str) -> None:
        transport: Any = StringTransport  # it has no types
        self.transport = transport(peerAddress=IPv4Address("TCP", address, 4711))
        self.transport.abortConnection = self.abort
        self.aborted = False
        self.visit: Any = entrance.buildProtocol(None)
        self.visit.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        self.visit.dataReceived(data)

    def abort(self) -> None:
        """It is closed from inside, whatever is still to be sent."""
        self.aborted = True
        self.transport.loseConnection()

    def ended(self) -> bool:
        return bool(self.transport.disconnecting)

    @property
    def said(self) -> bytes:
        return bytes(self.transport.value())

    def close(self) -> None:
        self.visit.connectionLost(ConnectionDone())


class Site:
    """A server whose time the test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        factory: Any = BoundedFactory(Server())
        factory.reactor = self.clock
        self.entrance = LimitedFactory(factory)
        self.lines: list[Line] = []

    def line(self, address: str = "203.0.113.1") -> Line:
        self.lines.append(Line(self.entrance, address))
        return self.lines[-1]

    def wait(self, seconds: int, line: Line, dripping: bytes = b"") -> None:
        """Let time pass, second by second; ``dripping`` comes in each."""
        for _ in range(seconds):
            if dripping and not line.ended():
                line.send(dripping)
            self.clock.advance(1)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    for line in made.lines:
        line.close()
    assert made.clock.getDelayedCalls() == []  # nothing outlives its connection


def test_who_connects_and_says_nothing_is_hung_up_on(site: Site) -> None:
    line = site.line()
    site.wait(HEAD_SECONDS_MAX - 1, line)
    assert not line.ended()
    site.wait(1, line)
    assert (line.ended(), line.said) == (True, b"")


@pytest.mark.parametrize(
    ("begun", "seconds"),
    [(b"X-Slow: ", HEAD_SECONDS_MAX), (b"Content-Length: 10000\r\n\r\n", BODY_SECONDS_MAX)],
    ids=["headers", "body"],
)
def test_what_drips_ends_by_the_deadline_in_words(site: Site, begun: bytes, seconds: int) -> None:
    line = site.line()
    line.send(HEAD + begun)
    site.wait(seconds - 1, line, dripping=b"x")
    assert not line.ended()
    site.wait(1, line, dripping=b"x")
    assert line.ended()
    assert line.said.startswith(TOO_LATE)
    assert b"Send it again" in line.said


def test_a_body_that_stalls_ends_and_its_room_is_free(site: Site) -> None:
    for _ in range(3):
        line = site.line()
        line.send(HEAD + b"Cookie: csrftoken=x\r\nContent-Length: 11000000\r\n\r\n%PDF")
        site.wait(BODY_SILENT_SECONDS_MAX, line)
        assert line.ended()
        assert line.said.startswith(TOO_LATE)
        line.close()
        site.lines.remove(line)


@pytest.mark.parametrize(
    ("begun", "seconds", "status", "code"),
    [
        (b"Content-Length: 70000", 0, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "GAT-006"),
        (b"Content-Length: 60000", BODY_SILENT_SECONDS_MAX, HTTPStatus.REQUEST_TIMEOUT, "GAT-013"),
    ],
)
@pytest.mark.parametrize("address", [b"/gate/v1/calls", b"/%67ate/v1/calls", b"http://h/gate/x"])
def test_at_the_gate_the_server_refuses_in_json(
    site: Site, begun: bytes, seconds: int, status: HTTPStatus, code: str, address: bytes
) -> None:
    line = site.line()
    line.send(HEAD.replace(b"/runs/new/", address) + begun + b"\r\n\r\n{")
    site.wait(seconds, line)
    head, _, body = line.said.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {int(status)} ".encode())
    assert b"Content-Type: application/json\r\n" in head
    assert json.loads(body)["error"]["code"] == code


def test_a_refused_request_is_answered_once(site: Site) -> None:
    line = site.line()
    line.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 10000000\r\n\r\n")
    site.wait(BODY_SECONDS_MAX, line, dripping=b"x")
    assert line.ended()
    assert line.said.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert line.said.count(b"HTTP/1.1 ") == 1


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the web server passes on of an application's answers."""
    messages: list[object] = []

    async def reply(_server: object, _protocol: object, message: object) -> None:
        messages.append(message)

    monkeypatch.setattr("daphne.server.Server.handle_reply", reply)
    return messages


def asking(site: Site) -> Line:
    """A connection whose request is complete."""
    line = site.line()
    line.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return line


PIECE = {"type": "http.response.body", "body": b"%", "more_body": True}


def test_the_next_piece_waits_for_a_slow_reader_and_the_last_one_does_not(
    site: Site, sent: list[object]
) -> None:
    line, server = asking(site), connections.PatientServer(None, ["unused"])
    request, transport = line.visit.wrappedProtocol.requests[-1], line.transport

    async def answer() -> None:
        await server.handle_reply(request, PIECE)
        transport.producer.pauseProducing()  # as a transport does that holds 64 kB
        second = asyncio.ensure_future(server.handle_reply(request, PIECE))
        await asyncio.sleep(0)
        assert (len(sent), second.done()) == (2, False)
        await server.handle_reply(request, {**PIECE, "more_body": False})
        site.wait(READING_SECONDS_MAX - 1, line)
        transport.producer.resumeProducing()
        await second

    asyncio.run(answer())
    site.wait(READING_SECONDS_MAX, line)
    assert not line.ended()


@pytest.mark.usefixtures("sent")
def test_a_reader_that_takes_nothing_is_cut_off(site: Site) -> None:
    line, server = asking(site), connections.PatientServer(None, ["unused"])
    request = line.visit.wrappedProtocol.requests[-1]

    async def answer() -> None:
        line.transport.producer.pauseProducing()
        piece = asyncio.ensure_future(server.handle_reply(request, PIECE))
        await asyncio.sleep(0)
        site.clock.advance(READING_SECONDS_MAX - 1)
        assert not line.ended()
        site.clock.advance(1)
        assert line.ended()
        line.close()
        await piece
        await server.handle_reply(request, PIECE)  # the client is gone, so this returns at once

    asyncio.run(answer())
    site.lines.remove(line)


def test_the_server_that_is_started_waits_for_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[type] = []
    for place, name in (
        (daphne.server, "HTTPFactory"),
        (WebSocketFactory, "protocol"),
        (CommandLineInterface, "server_class"),
    ):
        monkeypatch.setattr(place, name, getattr(place, name))  # as they were, after the test
    monkeypatch.setattr(admission, "files_allowed", lambda: None)
    monkeypatch.setattr(CommandLineInterface, "run", lambda it, _: started.append(it.server_class))
    runpy.run_module("config.web", run_name="__main__")
    assert started == [connections.PatientServer]


def test_nothing_is_read_from_a_reader_that_does_not_read(site: Site) -> None:
    line = asking(site)
    line.transport.producer.pauseProducing()
    assert line.transport.producerState == "paused"  # else it could send without end
    line.transport.producer.resumeProducing()
    line.visit.wrappedProtocol.requests[-1].finish()
    assert line.transport.producerState == "producing"


def test_who_does_not_take_the_end_of_an_answer_is_cut_off_or_gives_way(site: Site) -> None:
    first, second = site.line(), site.line()
    for line in (first, second):
        line.send(b"GET / HTTP/1.0\r\n\r\n")
        line.visit.wrappedProtocol.requests[-1].finish()
        assert (line.ended(), line.aborted) == (True, False)
    first.visit.give_way()
    assert (first.aborted, second.aborted) == (True, False)
    site.clock.advance(READING_SECONDS_MAX)
    assert second.aborted


LARGE = b"Cookie: csrftoken=x\r\nContent-Length: %d\r\n\r\n"
CHUNK = b"10000\r\n" + bytes(65_536) + b"\r\n"  # 64 kB, as a request without a length sends it


@pytest.mark.parametrize(
    ("sent", "chunks", "status"),
    [
        (LARGE % UPLOAD_SIZE_BYTES_MAX, 0, b""),
        (LARGE % (UPLOAD_SIZE_BYTES_MAX + 1), 0, b"413"),
        (b"Cookie: csrftoken=x\r\nTransfer-Encoding: chunked\r\n\r\n", 176, b""),
        (b"Cookie: csrftoken=x\r\nTransfer-Encoding: chunked\r\n\r\n", 177, b"413"),
        (b"Transfer-Encoding: chunked\r\n\r\n", 4, b""),
        (b"Transfer-Encoding: chunked\r\n\r\n", 5, b"403"),
        (b"Content-Length: %d\r\n\r\n" % FREE_SIZE_BYTES_MAX, 0, b""),
        (b"Content-Length: %d\r\n\r\n" % (FREE_SIZE_BYTES_MAX + 1), 0, b"403"),
    ],
)
def test_a_body_is_refused_before_it_is_kept(
    site: Site, sent: bytes, chunks: int, status: bytes
) -> None:
    line = site.line()
    line.send(HEAD + sent)
    for _ in range(chunks):
        line.send(CHUNK)
    assert line.said[9:12] == status
    assert not line.ended()  # what still comes is read, or the sender could not read the answer


def test_a_refused_body_that_never_ends_is_cut_off(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DROPPED_SIZE_BYTES_MAX", 2 * UPLOAD_SIZE_BYTES_MAX)
    line = site.line()
    line.send(HEAD + LARGE % (10 * UPLOAD_SIZE_BYTES_MAX))
    line.send(bytes(2 * UPLOAD_SIZE_BYTES_MAX))
    assert not line.ended()
    line.send(b"x")
    assert line.ended()


class Guest:
    """A connection as the limits count it."""

    def __init__(self, address: str) -> None:
        self.address, self.gone = address, False

    def give_way(self) -> None:
        self.gone = True


def test_too_many_that_wait_give_way_in_the_order_in_which_they_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "WAITING_PER_ADDRESS_MAX", 2)
    monkeypatch.setattr(admission, "WAITING_MAX", 4)
    entrance, guests = ConnectionLimits(), [Guest(name) for name in (*"abaacd", "", "")]
    for guest in guests[:4]:
        entrance.wait(guest)
    assert [guest.gone for guest in guests] == [True, *[False] * 7]  # one a too many
    for guest in guests[4:]:
        entrance.wait(guest)
    assert [guest.gone for guest in guests] == [*[True] * 4, *[False] * 4]  # four in all remain


def test_who_begins_many_requests_and_sends_none_gives_way_to_the_next(site: Site) -> None:
    first, *others = [site.line() for _ in range(WAITING_PER_ADDRESS_MAX)]
    for line in (first, *others):
        line.send(b"GET /healthz HTTP/1.1\r\nHost: ")
    assert (first.ended(), first.said) == (False, b"")
    newest = site.line()
    assert first.said.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    newest.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert [line.said for line in (*others, newest)] == [b""] * WAITING_PER_ADDRESS_MAX
    assert not newest.ended()


def test_an_address_and_all_addresses_use_no_more_than_they_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "USED_PER_ADDRESS_MAX", 2)
    monkeypatch.setattr(admission, "USED_MAX", 3)
    entrance, guests = ConnectionLimits(), [Guest(name) for name in ("a", "a", "a", "b", "b")]
    refused = [entrance.use(guest, guest.address) for guest in guests[:3]]
    assert refused == [None, None, HTTPStatus.TOO_MANY_REQUESTS]
    assert entrance.use(guests[3], "b") == HTTPStatus.SERVICE_UNAVAILABLE
    for guest in guests[:4]:
        entrance.leave(guest)
    assert [entrance.use(guest, guest.address) for guest in guests[:2]] == [None, None]
    entrance.wait(guests[0])
    assert entrance.use(guests[2], "a") is None


def test_the_room_for_bodies_is_shared_and_comes_back() -> None:
    entrance, guests = ConnectionLimits(), [Guest(name) for name in ("a", "a", "a", "b", "b", "c")]
    for guest in guests:
        entrance.use(guest, guest.address)
    held = [entrance.hold(guest, UPLOAD_SIZE_BYTES_MAX) for guest in guests]
    assert held[:3] == [None, None, HTTPStatus.TOO_MANY_REQUESTS]
    assert held[3:] == [None, None, HTTPStatus.SERVICE_UNAVAILABLE]
    entrance.drop(guests[0])
    entrance.leave(guests[3])
    assert entrance.hold(guests[5], UPLOAD_SIZE_BYTES_MAX) is None
    assert entrance.hold(guests[2], UPLOAD_SIZE_BYTES_MAX) is None


def test_behind_the_proxy_visitors_are_told_apart_by_its_word(site: Site, settings: Any) -> None:
    settings.NANOVM_PROXIES = [ip_network("10.0.0.9")]
    large = HEAD + b"Cookie: csrftoken=x\r\nContent-Length: 11000000\r\nX-Forwarded-For: "

    def asked(address: str, said: bytes) -> bytes:
        line = site.line(address)
        line.send(large + said + b"\r\n\r\n")
        return line.said[:12]

    refused = b"HTTP/1.1 429"
    assert [asked("10.0.0.9", b"192.0.2.1") for _ in range(3)] == [b"", b"", refused]
    assert asked("10.0.0.9", b"192.0.2.1, 192.0.2.2") == b""  # another one's
    site.lines[0].close()
    site.lines.pop(0)
    strangers = [asked("203.0.113.1", b"192.0.2.%d" % each) for each in (3, 4, 5)]
    assert strangers == [b"", b"", refused]
