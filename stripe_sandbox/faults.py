"""Faults on demand: what becomes of the next payments that are asked for, and when."""

import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from stripe_sandbox.errors import ApiError, ApiResult, invalid_request, server_error
from stripe_sandbox.forms import Form

PLACE = "/faults"
FAULTY = ("POST", "/v1/payment_intents")
"""The request that faults strike: the one that moves money."""
KINDS = (
    *("die_before", "die_after"),  # the process dies before the execution, or after it
    *("hang_up_before", "hang_up_after"),  # the connection alone
    *("delay_before", "delay_after"),  # with the key held, as a slow execution holds it
    *("error_before", "error_stored", "error_after"),  # a 500: unstored; stored undone; stored done
    *("busy", "rate_limit"),  # a 409 for the key, a 429; nothing is done
)
PENDING_MAX = 1000
DELAY_MS_MAX = 60_000


class HangUpError(Exception):
    """The connection is to be closed without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The fault of one request; "none" lets it through."""

    kind: str = "none"
    delay_ms: int = 0

    def before(self) -> None:
        """Strike before anything is executed or replayed."""
        if self.kind == "delay_before":
            time.sleep(self.delay_ms / 1000)
        elif self.kind == "error_before":
            raise server_error()
        elif self.kind == "busy":
            raise ApiError(409, "idempotency_error", _BUSY, code="idempotency_key_in_use")
        elif self.kind == "rate_limit":
            raise ApiError(429, "rate_limit_error", _OFTEN, code="rate_limit")
        self._end("before")

    def around(self, execution: Callable[[], ApiResult]) -> Callable[[], ApiResult]:
        """The execution as it goes under this fault: what it answers is kept under the key."""
        if self.kind == "error_stored":
            return _undone
        if self.kind == "error_after":
            return lambda: _badly_told(execution())
        return execution

    def after(self) -> None:
        """Kill the process once the result and its answer are on disk."""
        if self.kind == "delay_after":
            time.sleep(self.delay_ms / 1000)
        self._end("after")

    def _end(self, when: str) -> None:
        if self.kind == f"die_{when}":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == f"hang_up_{when}":
            raise HangUpError(self.kind)


NO_FAULT = Fault()


class Faults:
    """The faults that wait for their requests, in order; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Fault] = deque()

    def take(self, method: str, path: str) -> Fault:
        """The fault of this request, which is then spent."""
        if (method, path) != FAULTY:
            return NO_FAULT
        with self._lock:
            return self._waiting.popleft() if self._waiting else NO_FAULT

    def configure(self, method: str, form: Form) -> ApiResult:
        """Answer a request at ``PLACE``: POST adds faults, DELETE drops all, GET lists them.

        Raises:
            ApiError: a 400, for a kind that does not exist or a number out of bounds.
        """
        with self._lock:
            if method == "DELETE":
                self._waiting.clear()
            elif method == "POST":
                self._waiting.extend(_asked(form, PENDING_MAX - len(self._waiting)))
            return ApiResult(status=200, body={"waiting": [each.kind for each in self._waiting]})


_NUMBER = re.compile(r"[0-9]{1,6}")
_BUSY = "There is currently another in-progress request using this Idempotent Key (told to say so)."
_OFTEN = "Too many requests in too short a time (told to say so). Please try again later."


def _undone() -> ApiResult:
    raise RuntimeError("told to fail")  # rolled back, and kept as a 500


def _badly_told(_: ApiResult) -> ApiResult:
    return server_error().answer()


def _asked(form: Form, room: int) -> list[Fault]:
    kind = form.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise invalid_request(f"kind must be one of {', '.join(KINDS)}.", param="kind")
    fault = Fault(kind=kind, delay_ms=_number(form, "delay_ms", 0, DELAY_MS_MAX))
    return [fault] * _number(form, "count", 1, room)


def _number(form: Form, name: str, default: int, most: int) -> int:
    given = form.get(name, str(default))
    if not isinstance(given, str) or _NUMBER.fullmatch(given) is None or int(given) > most:
        raise invalid_request(f"{name} must be a whole number up to {most}.", param=name)
    return int(given)
