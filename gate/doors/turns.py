"""Turns of agents' requests: few work at once, so that however many come, pages stay quick.

Pages and the gate share a process, each request in work is a thread of it, and one thread computes
at a time: a page would wait for as many as there are.
"""

import asyncio
import math
from contextvars import ContextVar
from time import monotonic
from typing import Any

from django.db import connection

from gate.doors.errors import ROOT

# SQLite has one writer: more at once make no more calls a second, and pages slower. A server of its
# own may keep one of them waiting, for a lock of its log, while others work.
AT_ONCE = 1 if connection.vendor == "sqlite" else 4
REST, REST_S_MAX = 4, 0.1  # times as long as it worked, while people open pages
OPENED_S = 1  # so long after a page


class Turns:
    """Passes requests on: those of the gate in the order of arrival, AT_ONCE of them at a time.

    While people open pages, a place rests after each turn.
    """

    def __init__(self, application: Any) -> None:
        self.application, self._places = application, asyncio.Semaphore(AT_ONCE)
        self._opened = -math.inf

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if not scope["path"].startswith(ROOT):
            self._opened = monotonic()
            await self.application(scope, receive, send)
            return
        turn = _Turn(self)
        _mine.set(turn)
        try:
            await turn.take()
            await self.application(scope, receive, send)
        finally:
            turn.end()

    async def take(self) -> float:
        """Wait for a place; when it was taken."""
        await self._places.acquire()
        return monotonic()

    def give(self, taken: float) -> None:
        """Let the next one have a place, at once or after a rest."""
        now = monotonic()
        if now - self._opened > OPENED_S:
            self._places.release()
        else:
            rest_s = min(REST * (now - taken), REST_S_MAX)
            asyncio.get_running_loop().call_later(rest_s, self._places.release)


class _Turn:
    """A request's place among those that work; it has one, or waits for one.

    A view may go on after its client has gone: it takes no place any more, since no one gives it.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns, self._taken, self._ended = turns, 0.0, False

    async def take(self) -> None:
        if not self._ended:
            self._taken = await self._turns.take()
        if self._ended:
            self.give()

    def end(self) -> None:
        self._ended = True
        self.give()

    def give(self) -> None:
        if self._taken:
            self._turns.give(self._taken)
            self._taken = 0.0


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
