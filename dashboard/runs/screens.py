"""What a run's viewers see: drawn once for all of them, when something changed."""

import asyncio
import contextlib
import logging
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import DatabaseError
from redis.exceptions import RedisError

from dashboard.runs import frames
from dashboard.runs.changes import Stamp, stamps
from dashboard.web.broadcast import group_of

log = logging.getLogger(__name__)

HEARTBEAT_S = 15


class Viewer(Protocol):
    """An open socket."""

    @property
    def cursor(self) -> frames.Cursor: ...

    async def show(self, frame: frames.Frame) -> None: ...

    async def heartbeat(self) -> None: ...

    async def fail(self) -> None: ...


class Screen:
    """A watched run. It keeps no page: what was drawn is sent and forgotten."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.viewers: set[Viewer] = set()
        self.stamp: Stamp = None  # as the last beat found it: one may look in vain
        self.stale = False
        self.closed = False
        self.drawing: asyncio.Task[None] | None = None
        self.hearing: asyncio.Task[None] | None = None

    def change(self) -> None:
        """Something changed: draw, or draw again after what is being drawn now."""
        self.stale = True
        if self.drawing is None:
            self.drawing = asyncio.create_task(self._draw())
            self.drawing.add_done_callback(self._drawn)

    async def _draw(self) -> None:
        while self.stale:
            self.stale = False
            viewers = list(self.viewers)
            if self.stamp is None:  # later the beats read it
                self.stamp = (await database_sync_to_async(stamps)([self.run_id])).get(self.run_id)
            # The next drawing has the same connection; a beat or a new screen closes it.
            found = await sync_to_async(frames.frames)(self.run_id, [one.cursor for one in viewers])
            shows = [each.show(frame) for each, frame in zip(viewers, found, strict=True)]
            outcomes = await asyncio.gather(*shows, return_exceptions=True)
            _failed([each for each in zip(viewers, outcomes, strict=True) if each[1] is not None])

    def _drawn(self, task: "asyncio.Task[None]") -> None:
        self.drawing = None
        if task.cancelled() or task.exception() is None:
            return
        _failed([(viewer, task.exception()) for viewer in self.viewers])

    async def listen(self) -> None:
        """Subscribe to changes; if the queue server does not answer, the next beat retries."""
        layer: Any = get_channel_layer()
        with contextlib.suppress(RedisError, OSError):
            channel = await layer.new_channel()
            await layer.group_add(group_of(self.run_id), channel)
            self.hearing = asyncio.create_task(self._hear(layer, channel))
            if self.closed:  # while this waited, the last viewer left
                self.hearing.cancel()

    async def _hear(self, layer: Any, channel: str) -> None:
        try:
            while True:
                await layer.receive(channel)
                self.change()
        finally:
            with contextlib.suppress(RedisError, OSError):  # the layer forgets us by itself
                await layer.group_discard(group_of(self.run_id), channel)

    def close(self) -> None:
        """Stop listening and drawing: the run has no viewers left."""
        self.closed = True
        for task in (self.hearing, self.drawing):
            if task is not None:
                task.cancel()


class Screens:
    """The runs that are watched in this event loop, and the heartbeat of all their viewers."""

    def __init__(self) -> None:
        self.by_run: dict[str, Screen] = {}
        self.beating: asyncio.Task[None] | None = None

    async def enter(self, viewer: Viewer, run_id: str) -> None:
        """Send this viewer what it has not seen, then each change.

        It joins the group before it reads, so a change that is committed in between arrives twice
        and is never missed.
        """
        is_new = run_id not in self.by_run
        screen = self.by_run.setdefault(run_id, Screen(run_id))
        screen.viewers.add(viewer)  # from here on no other viewer's leaving closes it
        if is_new:
            await screen.listen()
        screen.change()
        if self.beating is None:
            self.beating = asyncio.create_task(self._beats())

    def leave(self, viewer: Viewer, run_id: str) -> None:
        """The viewer is gone; with the last one the screen is too."""
        screen = self.by_run.get(run_id)
        if screen is None:
            return
        screen.viewers.discard(viewer)
        if not screen.viewers:
            self.by_run.pop(run_id).close()
        if not self.by_run and self.beating is not None:
            self.beating.cancel()
            self.beating = None

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self.beat()

    async def beat(self) -> None:
        """Send every viewer a heartbeat, and draw the changes that no message reported."""
        for screen in list(self.by_run.values()):
            for viewer in list(screen.viewers):
                await viewer.heartbeat()
            if not screen.closed and (screen.hearing is None or screen.hearing.done()):
                await screen.listen()
        try:
            now = await database_sync_to_async(stamps)(list(self.by_run))
        except DatabaseError as error:
            log.warning("a heartbeat could not look for changes: %s", type(error).__name__)
            return
        for run_id, screen in self.by_run.items():
            if screen.stamp != now.get(run_id):
                screen.stamp = now.get(run_id)
                screen.change()


def here() -> Screens:
    """This loop's ``Screens``."""
    return _SCREENS.setdefault(asyncio.get_running_loop(), Screens())


def _failed(viewers: list[tuple[Viewer, BaseException | None]]) -> None:
    """End the sockets of those who could not be shown something: their pages open new ones."""
    for viewer, error in viewers:
        log.error("a viewer could not be shown a run", exc_info=error)
        task = asyncio.create_task(viewer.fail())
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


_SCREENS: "WeakKeyDictionary[asyncio.AbstractEventLoop, Screens]" = WeakKeyDictionary()
_TASKS: set["asyncio.Task[None]"] = set()  # a loop itself holds its tasks weakly
