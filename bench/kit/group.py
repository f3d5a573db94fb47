"""Jobs of one event loop, committed together once every task has had its turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Any


class Group:
    """``commit`` commits jobs at once, and answers the outcome of each, or its error."""

    def __init__(self, commit: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self.loop, self.together = asyncio.get_running_loop(), commit
        self.context = copy_context()  # one, so that all commits are on one connection
        self.waiting: list[tuple[Any, asyncio.Future[Any]]] = []

    def commit(self, job: Any) -> asyncio.Future[Any]:
        """The outcome of a job, after the commit that it shares."""
        future: asyncio.Future[Any] = self.loop.create_future()
        self.waiting.append((job, future))
        if len(self.waiting) == 1:
            self.loop.call_soon(self._turn, context=self.context)
        return future

    def _turn(self) -> None:
        self.loop.call_soon(self._flush, context=self.context)

    def _flush(self) -> None:
        taken, self.waiting = self.waiting, []
        outcomes = self.together([job for job, _ in taken])
        for (_, future), outcome in zip(taken, outcomes, strict=True):
            if isinstance(outcome, BaseException):  # the others are not to wait for ever
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def in_flight(
    number: int,
    secs: float,
    commit: Callable[[Sequence[Any]], Sequence[Any]],
    one: Callable[[Group], Awaitable[None]],
) -> None:
    """So many runs at a time until the time is up, one of each at least; they share commits."""

    async def line(group: Group, end: float) -> None:
        while True:
            await one(group)
            if time.perf_counter() >= end:
                return

    async def lines() -> None:
        group, end = Group(commit), time.perf_counter() + secs
        await asyncio.gather(*[line(group, end) for _ in range(number)])

    asyncio.run(lines())
