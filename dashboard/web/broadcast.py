"""Tell viewers that a run changed: its id, after the commit, and never a value."""

import atexit
import logging
import threading
import time
from contextlib import suppress
from functools import cache

from asgiref.sync import SyncToAsync, async_to_sync
from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from django.conf import settings

from dashboard.web import counters
from engine.signals import run_changed

log = logging.getLogger(__name__)

SOON_S = 0.01  # a run that is driven commits every few milliseconds
CHANGED = {"type": "run.changed"}
NOT_TOLD = "viewers of a run were not told of a change: %s"


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
        _teller(settings.REDIS_URL).announce(run_id)
    elif getattr(SyncToAsync.threadlocal, "main_event_loop", None) is not None:
        async_to_sync(send)(run_id)


async def send(run_id: str) -> None:
    """Tell the viewers of this process. Where that fails, it is logged."""
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group_of(run_id), CHANGED)
    except (OSError, ChannelFull) as error:
        log.warning(NOT_TOLD, type(error).__name__)


class Teller:
    """A thread that tells viewers of all runs that changed, together, each ``SOON_S`` at most."""

    def __init__(self, url: str) -> None:
        from channels_redis.pubsub import RedisPubSubChannelLayer  # its group_send, in less time

        self._message = RedisPubSubChannelLayer().serialize(CHANGED)
        self._queue = counters.client(url)
        self._changed: set[str] = set()
        self._some = threading.Event()
        threading.Thread(target=self._run, name="broadcast", daemon=True).start()
        atexit.register(self.flush)

    def announce(self, run_id: str) -> None:
        """Have viewers told within ``SOON_S``."""
        self._changed.add(run_id)
        if not self._some.is_set():
            self._some.set()

    def flush(self) -> None:
        """Tell now. Where that fails, it is logged."""
        messages = self._queue.pipeline(transaction=False)
        with suppress(KeyError):  # there is none left
            while group := group_of(self._changed.pop()):
                messages.publish(f"asgi__group__{group}", self._message)
        try:
            messages.execute()
        except Exception as error:  # noqa: BLE001 - the thread goes on
            log.warning(NOT_TOLD, type(error).__name__)

    def _run(self) -> None:
        while self._some.wait():
            self._some.clear()  # what changes from now on is told again
            self.flush()
            time.sleep(SOON_S)


_teller = cache(Teller)
