"""Tell viewers that a run changed: its id, after the commit, and never a value."""

import asyncio
import logging
import threading
from functools import cache

from asgiref.sync import SyncToAsync, async_to_sync
from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from django.conf import settings

from engine.signals import run_changed

log = logging.getLogger(__name__)

# A run that is driven commits every few milliseconds; telling it each time would take the time
# of the very worker that drives it. Nobody sees so short a wait.
SOON_S = 0.025


def connect() -> None:
    run_changed.connect(announce)


def group_of(run_id: str) -> str:
    return f"run.{run_id}"


def announce(run_id: str) -> None:
    """Wake the run's viewers, without waiting for it.

    A lost message costs nothing: they read by their cursor. Without a queue server the only
    viewers are those of this process's own event loop, where it has one.
    """
    if settings.REDIS_URL:
        _teller().announce(run_id)
    elif getattr(SyncToAsync.threadlocal, "main_event_loop", None) is not None:
        async_to_sync(send)(run_id)


async def send(run_id: str) -> None:
    """Send the message. Where it cannot be sent, that is logged."""
    from redis.exceptions import RedisError  # most processes start, and announce nothing

    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group_of(run_id), {"type": "run.changed"})
    except (RedisError, OSError, ChannelFull) as error:
        log.warning("viewers of a run were not told of a change: %s", type(error).__name__)


class Teller:
    """A thread with its own loop that tells viewers; changes that follow soon are batched."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._waiting: set[str] = set()
        threading.Thread(target=self._loop.run_forever, name="broadcast", daemon=True).start()

    def announce(self, run_id: str) -> None:
        """Have viewers told within ``SOON_S``."""
        if run_id not in self._waiting:
            self._waiting.add(run_id)
            self._loop.call_soon_threadsafe(self._loop.call_later, SOON_S, self._begin, run_id)

    def _begin(self, run_id: str) -> None:
        self._waiting.discard(run_id)  # what changes from now on is told again
        task = self._loop.create_task(send(run_id))
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


_TASKS: set[asyncio.Task[None]] = set()  # a loop itself holds its tasks weakly


@cache
def _teller() -> Teller:
    return Teller()
