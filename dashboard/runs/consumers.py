"""The live socket and its addresses: receive-only for the browser, a cursor for us."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path, re_path

from dashboard.runs import frames, screens
from dashboard.web import workspace
from engine.queries import runs
from nanovm_core.core.canonical import encode

NOT_YOURS = 4404
FAILED = 4500  # what it has to show could not be drawn
BUILD = "1"


class RunConsumer(AsyncWebsocketConsumer):
    """One viewer of one run. What it is sent is read by its cursor, together with the others'."""

    run: runs.RunHead | None = None
    after = 0
    mark = ""
    known: Mapping[str, str] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Watch until the socket is closed, fails or is cut off."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self.run is not None:
                screens.here().leave(self, self.run.id)

    async def connect(self) -> None:
        await self.accept()
        owner = workspace.of_headers(self.scope["headers"])
        code = self.scope["url_route"]["kwargs"]["code"].upper()
        self.run = await database_sync_to_async(runs.by_code)(owner, code)
        if self.run is None:
            await self.close(code=NOT_YOURS)
            return
        self.after, self.mark = _cursor(self.scope["query_string"])
        run = self.run
        await self._say(kind="hello", run=run.code, seq=run.length, server_build=BUILD)
        await screens.here().enter(self, run.id)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Commands are HTTP posts: what a browser sends here is not read."""

    @property
    def cursor(self) -> frames.Cursor:
        """What this viewer has seen."""
        return frames.Cursor(after=self.after, mark=self.mark, known=self.known)

    async def show(self, frame: frames.Frame) -> None:
        """Send what is new, and remember that it was sent."""
        self.after = frame.upto
        if frame.resync:
            await self._say(kind="resync", seq=frame.upto)
            return
        self.mark, self.known = frame.mark, frame.known
        if frame.html:
            await self.send(text_data=frame.html)

    async def heartbeat(self) -> None:
        """Send a heartbeat with this viewer's position."""
        await self._say(kind="heartbeat", seq=self.after)

    async def fail(self) -> None:
        """Close after a failed rendering: the page opens a new socket."""
        await self.close(code=FAILED)

    async def _say(self, **message: str | int) -> None:
        await self.send(text_data=encode(message).decode())


class NowhereConsumer(AsyncWebsocketConsumer):
    """A socket at an unknown address: closed as one of an unknown run."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(code=NOT_YOURS)


def _cursor(query: bytes) -> tuple[int, str]:
    asked: dict[str, Any] = parse_qs(query.decode("latin-1"))
    return frames.cursor_of(asked.get("after", [""])[0], asked.get("mark", [""])[0])


websocket_urlpatterns = [
    path("ws/runs/<slug:code>/", RunConsumer.as_asgi()),
    re_path("", NowhereConsumer.as_asgi()),
]
