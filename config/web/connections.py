"""Connections with deadlines, whose requests, answers and messages have bounded room in memory."""

import asyncio
import re
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.http import HTTPChannel

from config import webhooks
from config.environment import UPLOAD_SIZE_BYTES_MAX
from config.forwarded import is_of, named_by
from config.web.admission import ConnectionLimits
from config.web.refusals import answer
from dashboard.web.client import counted
from gate.doors.errors import ROOT
from gate.doors.wire import BODY_BYTES_MAX

HEAD_SECONDS_MAX = 15  # from its first byte to the end of its headers
BODY_SECONDS_MAX = 120  # 90 kB a second for the largest PDF
BODY_SILENT_SECONDS_MAX = 15
READING_SECONDS_MAX = 300  # to take what was sent; a grown TCP window moves in steps of 800 kB
SMALL_SIZE_BYTES_MAX = 16_384  # bodies up to it are not counted
FREE_SIZE_BYTES_MAX = webhooks.SIZE_BYTES_MAX  # bodies up to it may come from who has no cookie
MESSAGE_SIZE_BYTES_MAX = 4_096  # of one message over a WebSocket
DROPPED_SIZE_BYTES_MAX = 100 * 1024 * 1024  # read and dropped, so that the sender reads the answer
ABSOLUTE = re.compile(rb"^https?://[^/?#]*(?=/)", re.IGNORECASE)  # before the path of an address


class BoundedRequest(WebRequest):
    """A request whose body stays in memory, within the limits of the server.

    One that is refused is answered at once, by its headers where they say enough. What still
    comes of it is read and dropped: a browser reads the answer only after it has sent all.
    """

    received_bytes = 0
    refused = False
    large = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, parsePOSTFormSubmission=False)  # Django does it

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """Refuse by the headers, or reserve memory for the body: nothing goes into files."""
        self.content = BytesIO()
        visit = self.channel.visit
        refusal = visit.limits.use(visit, self._address())
        if refusal is None and length is not None:
            refusal = self._refusal_of(length)
        if refusal is not None:
            self._refuse(refusal)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Keep it; of a refused request only count it, and hang up at a limit."""
        self.received_bytes += len(data)
        if not self.refused:
            refusal = self._refusal_of(self.received_bytes)  # a chunked request names no length
            if refusal is None:
                self.content.write(data)
            else:
                self._refuse(refusal)
        elif self.received_bytes > DROPPED_SIZE_BYTES_MAX:
            self.channel.forceAbortClient()

    def process(self) -> Any:
        """Hand the request on, and drop the body that was handed on."""
        done = super().process()
        self.content = BytesIO()
        return done

    async def taken(self) -> None:
        """Wait until there is room for the next piece of the answer."""
        channel = getattr(self, "channel", None)  # there is none once it is answered or has hung up
        if channel is not None:
            await channel.taken()

    def _refusal_of(self, size: int) -> HTTPStatus | None:
        """Why a body of this size is not taken; None where it is."""
        if size <= SMALL_SIZE_BYTES_MAX:
            return None
        if size > (BODY_BYTES_MAX if self.channel.at_gate else UPLOAD_SIZE_BYTES_MAX):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        cookie = settings.CSRF_COOKIE_NAME.encode("ascii")  # which each form of this site needs
        if size > FREE_SIZE_BYTES_MAX and cookie not in self.received_cookies:
            return HTTPStatus.FORBIDDEN
        if self.large:
            return None
        self.large = True
        declared, visit = self.channel.length, self.channel.visit
        refusal: HTTPStatus | None
        refusal = visit.limits.hold(visit, UPLOAD_SIZE_BYTES_MAX if declared is None else declared)
        return refusal

    def _address(self) -> str:
        """Whose request it is, as it is counted; behind a proxy, by the proxy's word."""
        said = self.requestHeaders.getRawHeaders(b"x-forwarded-for") or [b""]
        return self.channel.visit.address or counted(named_by(said[-1].decode("latin-1")))

    def _refuse(self, status: HTTPStatus) -> None:
        self.refused = True
        self.content = BytesIO()
        self.requestHeaders.removeHeader(b"expect")  # of the body, which is not wanted any more
        self.channel.visit.limits.drop(self.channel.visit)
        self.channel.refuse(status)


class BoundedChannel(HTTPChannel):
    """An HTTP connection whose requests end by a deadline, in words where one was begun."""

    requestFactory = BoundedRequest  # noqa: N815 - Twisted's name
    transport: Any
    _networkProducer: Any  # noqa: N815 - Twisted's name
    _path: Any
    deadline: Any = None
    answered = False
    room: asyncio.Event  # set while there is room for the next piece of an answer

    @property
    def visit(self) -> "Visit":
        visit: Visit = self.transport
        return visit

    @property
    def at_gate(self) -> bool:
        """Whether the request that comes in is an agent's, by its address as Django reads it."""
        return unquote(getattr(self, "_path", b"").decode("latin-1")).startswith(ROOT)

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """Wait for a request for a time."""
        self.room = asyncio.Event()
        self.room.set()
        super().connectionMade()
        self._end_within(HEAD_SECONDS_MAX)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """The first byte of a later request begins its time."""
        if self.deadline is None and not self._handlingRequest:
            self._end_within(HEAD_SECONDS_MAX)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:  # noqa: N802 - Twisted's name
        """From here its body has a deadline. An address with scheme and host is one of ours."""
        self._path = ABSOLUTE.sub(b"", self._path)  # RFC 9112 §3.2.2
        self._end_within(BODY_SECONDS_MAX)
        self.setTimeout(BODY_SILENT_SECONDS_MAX)
        super().allHeadersReceived()

    def allContentReceived(self) -> None:  # noqa: N802 - Twisted's name
        """The request is whole: the application has no deadline."""
        self._end_within(None)
        if self.requests[-1].refused:
            self.loseConnection()
            return
        self.setTimeout(self.factory.timeOut)
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:  # noqa: N802 - Twisted's name
        """The request is answered: wait for the next one."""
        self.visit.limits.wait(self.visit)
        super().requestDone(request)

    def timeoutConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Answer a request that came in part, and hang up."""
        self._end_within(None)
        self.refuse(HTTPStatus.REQUEST_TIMEOUT)
        super().timeoutConnection()

    def refuse(self, status: HTTPStatus) -> None:
        """Answer the request that was begun, where there is one that nothing has answered."""
        begun = bool(self.requests) and not self._handlingRequest
        if begun and not self.answered:
            self.answered = True
            self.transport.write(answer(status, self.at_gate))

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        """Stop reading while the client does not read."""
        self.room.clear()
        super().pauseProducing()
        self._networkProducer.pauseProducing()  # till the end of a request that is being answered

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        """The transport has passed on all that was written."""
        self.room.set()
        super().resumeProducing()

    async def taken(self) -> None:
        """Wait for room for the next piece, and hang up on a client that takes nothing."""
        cut = self.callLater(READING_SECONDS_MAX, self.forceAbortClient)
        try:
            await self.room.wait()
        finally:
            if cut.active():
                cut.cancel()

    def give_way(self) -> None:
        """Another connection needs the place."""
        if self.transport.disconnecting:  # it is answered, and does not take the answer's end
            self.forceAbortClient()
            return
        self._end_within(None)
        self.refuse(HTTPStatus.TOO_MANY_REQUESTS)
        self.loseConnection()

    def loseConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Hang up once the client has taken what was written, and in the end if it has not."""
        if self._abortingCall is None:
            self._abortingCall = self.callLater(READING_SECONDS_MAX, self.forceAbortClient)
        super().loseConnection()

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802 - Twisted's name
        """Cancel the deadline."""
        self._end_within(None)
        self.room.set()
        super().connectionLost(reason)

    def _end_within(self, seconds: int | None) -> None:
        """End the connection after this time; None: no deadline."""
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = None if seconds is None else self.callLater(seconds, self._too_late)

    def _too_late(self) -> None:
        self.deadline = None
        self.timeoutConnection()


class BoundedFactory(HTTPFactory):
    """Makes bounded connections."""

    protocol = BoundedChannel

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """A connection whose requests are bounded."""
        channel = super().buildProtocol(addr)
        channel.requestFactory = BoundedRequest
        return channel


class PatientServer(Server):
    """Daphne's server, which takes the next piece of an answer once there is room for it."""

    async def handle_reply(self, protocol: Any, message: Any) -> None:
        """Send a part of an answer, and wait for a slow reader."""
        await super().handle_reply(protocol, message)
        if isinstance(protocol, BoundedRequest) and message.get("more_body"):
            await protocol.taken()


class DeafSocket(WebSocketProtocol):
    """A WebSocket that ignores what a browser sends, and hangs up on a long message.

    Daphne's own limit is one for both directions, and what we send is longer.
    """

    def onMessageFrameBegin(self, length: int) -> None:  # noqa: N802 - Autobahn's name
        """The header of a frame is here, and nothing of its content."""
        super().onMessageFrameBegin(length)
        if self.message_data_total_length > MESSAGE_SIZE_BYTES_MAX:
            self.dropConnection(abort=True)


class Visit(ProtocolWrapper):
    """A client's connection, from accept to close: HTTP, or a WebSocket later."""

    address = ""
    limits: ConnectionLimits

    def makeConnection(self, transport: Any) -> None:  # noqa: N802 - Twisted's name
        """Count it as waiting, by its address."""
        peer = str(getattr(transport.getPeer(), "host", ""))
        self.address = "" if is_of(settings.NANOVM_PROXIES, peer) else counted(peer)
        super().makeConnection(transport)
        self.limits.wait(self)

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802 - Twisted's name
        """It is over."""
        self.limits.leave(self)
        super().connectionLost(reason)

    def give_way(self) -> None:
        """Close: another connection needs the place. It is HTTP: only waiting ones are asked."""
        self.wrappedProtocol.give_way()


class LimitedFactory(WrappingFactory[Visit]):
    """All connections of the server, and the limits that count them."""

    protocol = Visit

    def __init__(self, wrapped: BoundedFactory) -> None:
        super().__init__(wrapped)
        self.limits = ConnectionLimits()

    def buildProtocol(self, addr: Any) -> Visit:  # noqa: N802 - Twisted's name
        """A connection that the limits count."""
        visit = super().buildProtocol(addr)
        visit.limits = self.limits
        return visit


def factory_of(server: Any) -> LimitedFactory:
    """What Daphne listens with."""
    return LimitedFactory(BoundedFactory(server))
