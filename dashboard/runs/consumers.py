"""The live socket: receive-only for the browser, a cursor into the database for us."""

import asyncio
import contextlib
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from redis.exceptions import RedisError

from dashboard.runs import frames
from dashboard.web import workspace
from dashboard.web.broadcast import group_of
from nanovm_core.core.canonical import encode
from pipeline.queries import runs
from pipeline.queries.runs import RunHead

NOT_YOURS = 4404
HEARTBEAT_S = 15
BUILD = "1"


class RunConsumer(AsyncWebsocketConsumer):
    """One viewer of one run. A broadcast only wakes it; what it sends it reads by its cursor."""

    run: RunHead | None = None
    beat: "asyncio.Task[None] | None" = None

    async def connect(self) -> None:
        self.reading = asyncio.Lock()  # a heartbeat and a broadcast do not read the same rows twice
        await self.accept()
        owner = workspace.of_headers(self.scope["headers"])
        code = self.scope["url_route"]["kwargs"]["code"].upper()
        self.run = await database_sync_to_async(runs.by_code)(owner, code)
        if self.run is None:
            await self.close(code=NOT_YOURS)
            return
        self.after, self.mark = _cursor(self.scope["query_string"])
        self.known: dict[str, str] = {}
        await self._join(group_of(self.run.id))
        await self._hello(self.run)
        self.beat = asyncio.create_task(self._beats())

    async def disconnect(self, code: int) -> None:
        if self.beat is not None:
            self.beat.cancel()
        if self.run is not None:
            with contextlib.suppress(RedisError, OSError):  # the layer forgets us by itself
                await self.channel_layer.group_discard(group_of(self.run.id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Commands are HTTP posts: what a browser sends here is not read."""

    async def run_changed(self, _: dict[str, Any]) -> None:
        await self._catch_up()

    async def _join(self, group: str) -> None:
        """Join before reading: what is committed in between is told twice, not never."""
        with contextlib.suppress(RedisError, OSError):  # heartbeats look into the database too
            await self.channel_layer.group_add(group, self.channel_name)

    async def _hello(self, run: RunHead) -> None:
        await self._say(kind="hello", run=run.code, seq=run.length, server_build=BUILD)
        await self._catch_up()

    async def _catch_up(self) -> None:
        if self.run is None:
            return
        async with self.reading:
            await self._send_news(self.run)

    async def _send_news(self, run: RunHead) -> None:
        news = await database_sync_to_async(frames.frame)(run.id, self.after, self.mark, self.known)
        if news.resync:
            self.after = news.upto
            await self._say(kind="resync", seq=news.upto)
            return
        self.after, self.mark, self.known = news.upto, news.mark, dict(news.known)
        if news.html:
            await self.send(text_data=news.html)

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self._say(kind="heartbeat", seq=self.after)
            await self._catch_up()

    async def _say(self, **message: str | int) -> None:
        await self.send(text_data=encode(message).decode())


def _cursor(query: bytes) -> tuple[int, str]:
    asked = parse_qs(query.decode("latin-1"))
    return frames.cursor_of(asked.get("after", [""])[0], asked.get("mark", [""])[0])
