"""A streamed download keeps nothing of the server's between its pieces."""

import asyncio
import threading
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections

from dashboard.web.downloads import PIECE_BYTES, streamed

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
