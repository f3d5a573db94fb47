"""Downloads that are streamed: made in pieces, never as a whole.

The web server asks for a piece once its reader has taken most of those before.
"""

from collections.abc import AsyncIterator, Iterator
from contextvars import copy_context
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

Answer = TypeVar("Answer", bound=HttpResponseBase)

PIECE_BYTES = 1 << 16  # lines are sent together up to about this


def streamed(request: HttpRequest, parts: Iterator[bytes], kind: str) -> StreamingHttpResponse:
    """A response made while it is sent, after the view's scope: what that hides stays hidden."""
    of_view, made = copy_context(), _pieces(parts)
    pieces = iter(lambda: of_view.run(next, made, b""), b"")
    if isinstance(request, ASGIRequest):  # else the server would make all of it first
        close_old_connections()  # the view's own
        return StreamingHttpResponse(_in_turn(pieces), content_type=kind)
    return StreamingHttpResponse(pieces, content_type=kind)


def attached(response: Answer, name: str) -> Answer:
    """The response as a download of this name."""
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _pieces(parts: Iterator[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


async def _in_turn(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Make each piece in one of the server's few threads: a slow reader keeps none of them."""
    while piece := await sync_to_async(_next, thread_sensitive=False)(pieces):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    try:
        return next(pieces, b"")
    finally:
        close_old_connections()  # nor a connection to the database
