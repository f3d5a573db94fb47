"""Turns of agents' requests: few work at once, so that however many come, pages stay quick.

Pages and the gate share a process, each request in work is a thread of it, and one thread computes
at a time: a page would wait for as many as there are.
"""

import asyncio
from contextvars import ContextVar
from typing import Any

from django.db import connection

from gate.doors.errors import ROOT

# SQLite has one writer: more at once make no more calls a second, and pages slower. A server of its
# own may keep one of them waiting, for a lock of its log, while others work.
AT_ONCE = 1 if connection.vendor == "sqlite" else 4


class Turns:
    """Passes requests on: those of the gate in the order of arrival, AT_ONCE of them at a time."""

    def __init__(self, application: Any) -> None:
        self.application, self._places = application, asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if not scope["path"].startswith(ROOT):
            await self.application(scope, receive, send)
            return
        turn = _Turn(self._places)
        _mine.set(turn)
        try:
            await turn.take()
            await self.application(scope, receive, send)
        finally:
            turn.give()


class _Turn:
    """A request's place among those that work; it has one, or waits for one."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places, self._has = places, False

    async def take(self) -> None:
        await self._places.acquire()
        self._has = True

    def give(self) -> None:
        if self._has:
            self._has = False
            self._places.release()


_mine: ContextVar[_Turn | None] = ContextVar("turn", default=None)


async def pause(seconds: float) -> None:
    """Wait in the middle of a request of the gate, while others have its place."""
    turn = _mine.get()
    if turn is None:
        await asyncio.sleep(seconds)
        return
    turn.give()
    await asyncio.sleep(seconds)
    await turn.take()
