"""The signal that a run changed: ids, never values."""

import logging
from collections.abc import Callable

from engine.models import Run

log = logging.getLogger(__name__)

Listener = Callable[..., object]


class RunChanged:
    """Listeners, called after the commit with the ``run_id`` of a run that changed.

    Each worker tells it several hundred times a second, so it is a list and no Django signal.
    """

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def connect(self, listener: Listener) -> None:
        """Add a listener, at most once."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def disconnect(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners.remove(listener)

    def tell(self, run_id: str) -> None:
        """Call each listener. One that fails is logged: the commit stands."""
        for listener in self._listeners:
            try:
                listener(run_id=run_id)
            except Exception as error:  # noqa: BLE001 - told, and the others are told too
                log.error("%r failed: %s", listener, type(error).__name__)  # noqa: TRY400


run_changed = RunChanged()


def announce(run: Run) -> None:
    """Say that a run changed."""
    run_changed.tell(run.name)
