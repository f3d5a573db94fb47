"""A streamed download: kept between its pieces is what its view hides, and no thread."""

import asyncio
import threading
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponseBase
from django.test import RequestFactory

from dashboard.web import pages
from dashboard.web.downloads import PIECE_BYTES, streamed
from engine.vault import secret_store

SCOPE = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}


@pytest.mark.django_db
def test_between_pieces_no_thread_and_no_connection_is_kept() -> None:
    used: list[tuple[int, Any]] = []

    def use() -> None:
        own = connections["default"]  # this thread's
        own.ensure_connection()
        used.append((threading.get_ident(), own))

    def parts() -> Iterator[bytes]:
        for _ in range(2):
            use()
            yield bytes(PIECE_BYTES)

    def view() -> Any:
        use()
        return streamed(ASGIRequest(SCOPE, BytesIO()), parts(), "text/plain")

    async def read() -> int:
        async with ThreadSensitiveContext():  # as Django has one for each request
            response, count = await sync_to_async(view)(), 0
            assert used[0][1].connection is None
            async for piece in response:
                count += len(piece)
                thread, own = used[-1]
                assert (thread == used[0][0], own.connection) == (False, None)
            return count

    assert asyncio.run(read()) == 2 * PIECE_BYTES
    assert len(used) == 3


@pytest.mark.django_db
def test_what_a_view_hides_is_hidden_in_its_stream_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "METHODS", {})  # this page is no address
    found: list[str] = []

    def value() -> str:
        return secret_store.text("no such ref")

    @pages.page
    def view(request: HttpRequest) -> HttpResponseBase:
        secret_store.hide()
        if "fails" in request.GET:
            raise Http404
        parts = (value().encode().ljust(PIECE_BYTES) for _ in range(2))
        return streamed(request, parts, "text/plain")

    async def read() -> None:
        response: Any = await sync_to_async(view)(ASGIRequest(SCOPE, BytesIO()))
        async for piece in response:
            found.extend((piece.decode().strip(), await sync_to_async(value)()))

    response: Any = view(RequestFactory().get("/"))
    for piece in response:
        found.extend((piece.decode().strip(), value()))
    asyncio.run(read())
    assert found == [secret_store.HIDDEN, secret_store.TOMBSTONE] * 4
    with pytest.raises(Http404):
        view(RequestFactory().get("/?fails"))
    assert value() == secret_store.TOMBSTONE
    with pytest.raises(LookupError):  # nothing would end it
        secret_store.hide()
