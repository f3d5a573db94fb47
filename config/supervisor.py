"""Starts everything that the demo needs, watches it, and stops it again."""

import errno
import fcntl
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from django.conf import settings
from django.db import connections

from config import restarts
from engine.management import schema
from engine.ops import processes
from engine.ops.processes import (
    LOOPBACK,
    START_SECONDS_MAX,
    Child,
    ProcessError,
    free_port,
    ready,
    stop,
)
from engine.runtime.queue import require_server
from nanovm_core import supervision
from pipeline.ops.stripe_counterpart import register_endpoint, spawn_stripe_counterpart

HEALTHY_SECONDS_MAX = 20
WATCH_SECONDS = 0.2
FRONT_STOP_SECONDS = 1.2  # a task that is cut off here is delivered again at the next start
BACK_STOP_SECONDS = 0.6


class Stopped(BaseException):
    """The demo was asked to end; like KeyboardInterrupt, no ``except Exception`` catches it."""


Say = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Permanent:
    """A child that is restarted when it ends, at the address that the others know."""

    name: str  # as /healthz says it
    spawn: Callable[[str], Child]  # at this address; any, where it is empty
    child: Child = field(init=False)
    url: str = ""  # that of the first one, once it said it: an end before that loses nothing
    ends_s: tuple[int, ...] = ()
    due_ms: int | None = None  # it is down, and is started again then
    late_ms: int | None = None  # it has to answer until then

    def __post_init__(self) -> None:
        """Start it for the first time."""
        self.child = self.spawn("")

    def tend(self, record: restarts.Restarts, say: Say) -> None:
        """Check the child once, and restart it when due.

        Raises:
            ProcessError: it ended once more than it may be restarted.
        """
        now = time.monotonic_ns() // 1_000_000
        if self.due_ms is not None:
            if now >= self.due_ms and self._start_again(now, say):
                record.restarted(self.name)
        elif reason := self._down(now):
            self._ended(reason, now, say)
        elif self.late_ms is not None and self.child.answers():
            self.late_ms = None
            say(f"{_capital(self.child.title)} runs again.")

    def _start_again(self, now: int, say: Say) -> bool:
        self.url = self.url or self.child.url
        try:
            self.child = self.spawn(self.url)
        except OSError as error:  # no process or no file is to be had: the same as one that ended
            self._ended(f"{self.child.title} could not be started ({error})", now, say)
            return False
        self.due_ms, self.late_ms = None, now + int(START_SECONDS_MAX * 1000)
        title = _capital(self.child.title)
        say(f"{title} was started; it has {START_SECONDS_MAX:g} s to answer{self._where()}.")
        return True

    def _where(self) -> str:
        """The place where it is expected, without the password that its address may have."""
        place = urlsplit(self.url).netloc.rpartition("@")[2]
        return f" at {place}" if place else ""

    def _down(self, now: int) -> str | None:
        if self.late_ms is not None and now >= self.late_ms:
            stop([self.child])
            return f"{self.child.title} did not answer in {START_SECONDS_MAX:g} s"
        return self.child.ended()

    def _ended(self, reason: str, now: int, say: Say) -> None:
        spec = supervision.Spec(self.name, children=(supervision.Child(self.name),))
        ended = supervision.Ended(self.name, 1)
        decided = supervision.decide(spec, {self.name: 1}, ended, self.ends_s, now // 1000)
        self.ends_s, then = decided.ends, decided.actions[-1]
        if not isinstance(then, supervision.Start):
            ends, seconds = len(decided.ends), spec.within_s
            raise ProcessError(
                f"{_capital(reason)}. It ended {ends} times within {seconds} s, so the rest "
                f"was stopped too: mend what {self.child.log} says, then start it again."
            )
        self.due_ms, self.late_ms = now + then.after_ms, None
        say(f"{_capital(reason)}. It is started again in {then.after_ms / 1000:g} s.")


def run(port: int, say: Say) -> None:
    """Run the demo on ``port`` (0: any free one) until a signal ends it.

    Raises:
        ProcessError: something could not start, or ended too often; all of it is stopped.
    """
    front: list[Permanent] = []  # they use those at the back, so they stop first
    back: list[Permanent] = []
    record = restarts.Restarts()
    with _only_demo(settings.NANOVM_DATA), _stop_signals():
        _require_free(port)
        if settings.REDIS_URL:
            require_server(settings.REDIS_URL)
        try:
            schema.migrate()
            connections.close_all()
            record.write()
            _start(port, front, back, say)
            _watch([*back, *front], record, say)
        except Stopped:
            say("Stopping.")
        finally:
            _ignore_signals()
            stop([each.child for each in front], FRONT_STOP_SECONDS)
            stop([each.child for each in back], BACK_STOP_SECONDS)
            record.remove()


def _start(port: int, front: list[Permanent], back: list[Permanent], say: Say) -> None:
    data, port = settings.NANOVM_DATA, port or free_port()
    env = {"NANOVM_DATA": str(data), "DJANGO_SETTINGS_MODULE": "config.settings"}
    if settings.REDIS_URL:
        env["REDIS_URL"] = settings.REDIS_URL
    else:
        queue = Permanent(name="queue", spawn=lambda url: processes.spawn_redis_server(data, url))
        back.append(queue)
        env["REDIS_URL"] = ready(queue.child).url
    if settings.STRIPE["local"] and settings.STRIPE["api_base"] is None:
        back.append(Permanent(name="stripe", spawn=lambda url: _counterpart(data, url)))
        env["STRIPE_API_BASE"] = ready(back[-1].child).url
        if not settings.STRIPE_WEBHOOK_SECRET:
            env["STRIPE_WEBHOOK_SECRET"] = register_endpoint(
                env["STRIPE_API_BASE"], settings.STRIPE["key"], f"http://{LOOPBACK}:{port}"
            )
    # It stops late: what the others sealed last is still signed.
    back.append(Permanent(name="signer", spawn=lambda _: processes.spawn_signer(env)))
    front.append(Permanent(name="worker", spawn=lambda _: processes.spawn_celery_worker(env)))
    front.append(Permanent(name="web", spawn=lambda _: processes.spawn_daphne(env, port)))
    children = [each.child for each in (*back, *front)]
    url = [ready(child).url for child in children][-1]
    _await_health(url, children)
    say(f"nanovm is running at {url}/")
    say(f"Payments go to {_stripe_in_words(env)}.")
    say(f"Everything it writes is in {data}. Ctrl-C stops it.")


def _counterpart(data: Path, url: str) -> Child:
    """The counterpart, at the port of its address where it has one already."""
    return spawn_stripe_counterpart(data, "--port", str(urlsplit(url).port or 0))


def _stripe_in_words(env: dict[str, str]) -> str:
    if settings.STRIPE["local"]:
        where = env.get("STRIPE_API_BASE", settings.STRIPE["api_base"])
        return f"the local Stripe counterpart at {where}: no request leaves this machine"
    return "Stripe's test mode, with the key in STRIPE_SECRET_KEY"


def _await_health(url: str, children: Sequence[Child]) -> None:
    deadline = time.monotonic() + HEALTHY_SECONDS_MAX
    while (problem := _unhealthy(url)) is not None:
        _require_running(children)
        if time.monotonic() > deadline:
            raise ProcessError(f"The application started but is not well: {problem}.")
        time.sleep(WATCH_SECONDS)


def _unhealthy(url: str) -> str | None:
    """What /healthz complains about; None when it does not."""
    try:
        with urlopen(f"{url}/healthz", timeout=HEALTHY_SECONDS_MAX):  # noqa: S310 - our own server
            return None
    except HTTPError as answer:
        parts = json.loads(answer.read())
        return "; ".join(f"{name}: {said}" for name, said in parts.items())
    except OSError as error:
        return f"web: {error.reason if isinstance(error, URLError) else error}"


def _watch(children: Sequence[Permanent], record: restarts.Restarts, say: Say) -> NoReturn:
    while True:
        for each in children:
            each.tend(record, say)
        time.sleep(WATCH_SECONDS)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _require_running(children: Sequence[Child]) -> None:
    for child in children:
        if reason := child.ended():
            raise ProcessError(
                f"{reason}. The rest was stopped too; start it again, and see {child.log}."
            )


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = "is taken" if taken else f"cannot be used ({error.strerror})"
            raise ProcessError(
                f"Port {port} on {LOOPBACK} {reason}; choose another one with PORT=… "
                f"(for example PORT={free_port()} make demo)."
            ) from error


@contextmanager
def _only_demo(data: Path) -> Iterator[None]:
    with (data / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ProcessError(
                f"Another demo runs on the data folder {data}; stop that one, or set NANOVM_DATA "
                "to another folder."
            ) from error
        yield


@contextmanager
def _stop_signals() -> Iterator[None]:
    before = {name: signal.signal(name, _stop) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    _ignore_signals()  # once is enough: a second Ctrl-C must not cut the stopping short
    raise Stopped


def _ignore_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
