"""Say that a run changed: an id to the run's group, after the commit, and never a value."""

import logging
from typing import Any

from asgiref.sync import async_to_sync
from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from pipeline.signals import run_changed

log = logging.getLogger(__name__)


def connect() -> None:
    run_changed.connect(on_change, dispatch_uid="dashboard.broadcast")


def group_of(run_id: str) -> str:
    return f"run.{run_id}"


def on_change(sender: object, *, run_id: str, **_: Any) -> None:
    announce(run_id)


def announce(run_id: str) -> None:
    """Wake the run's viewers. A lost message costs nothing: they read by their cursor."""
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(group_of(run_id), {"type": "run.changed"})
    except (RedisError, OSError, ChannelFull) as error:
        log.warning("viewers of a run were not told of a change: %s", type(error).__name__)
