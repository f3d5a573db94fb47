"""Waiting for the database to say something, for a bounded time."""

from collections.abc import Callable

from engine.clock import now_ms, sleep_ms

LOOK_EVERY_MS = 20
WAIT_MS_MAX = 20_000  # for a busy machine: what is waited for comes at once on an idle one


def wait_until(holds: Callable[[], bool], limit_ms: int | None = None) -> bool:
    """Look until it holds; False where it does not within the limit."""
    deadline_ms = now_ms() + (WAIT_MS_MAX if limit_ms is None else limit_ms)
    while not holds():
        if now_ms() > deadline_ms:
            return False
        sleep_ms(LOOK_EVERY_MS)
    return True
