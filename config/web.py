"""Daphne, with a bound on what a request may send and none of it in temporary files."""

import sys
from io import BytesIO
from typing import Any

import daphne.server
from daphne.cli import CommandLineInterface
from daphne.http_protocol import HTTPFactory, WebRequest

from config.environment import UPLOAD_SIZE_BYTES_MAX

DROPPED_SIZE_BYTES_MAX = 100 * 1024 * 1024  # read and dropped, so that the sender gets an answer


class BoundedRequest(WebRequest):
    """A request whose body stays in memory, cut off at the bound.

    Twisted would spool a body of 100 kB to the disk of a shared folder, and would take any
    length. The application sees a longer body cut, under the length that was really sent, and
    can say so in words.
    """

    received_bytes = 0

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """Make room in memory, whatever the length."""
        self.content = BytesIO()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Keep what fits, count the rest, and hang up on what never ends."""
        room = UPLOAD_SIZE_BYTES_MAX - self.content.tell()
        self.content.write(data[:room])
        self.received_bytes += len(data)
        if self.received_bytes > DROPPED_SIZE_BYTES_MAX:
            self.channel.forceAbortClient()

    def process(self) -> Any:
        """Hand on under the true length, which a chunked request does not name."""
        if self.received_bytes > UPLOAD_SIZE_BYTES_MAX:
            length = str(self.received_bytes).encode("ascii")
            self.requestHeaders.setRawHeaders(b"content-length", [length])
        return super().process()


class BoundedFactory(HTTPFactory):
    """Makes bounded requests."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """A connection whose requests are bounded."""
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


if __name__ == "__main__":
    daphne.server.HTTPFactory = BoundedFactory
    CommandLineInterface().run(sys.argv[1:])
