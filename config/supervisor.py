"""Starts everything that the demo needs, watches it, and stops it again."""

import errno
import fcntl
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from django.conf import settings
from django.db import connections

from pipeline.ops import schema, webhook_endpoint
from pipeline.ops.processes import (
    LOOPBACK,
    Child,
    ProcessError,
    free_port,
    ready,
    spawn_celery_worker,
    spawn_daphne,
    spawn_redis_server,
    spawn_signer,
    spawn_stripe_counterpart,
    stop,
)
from pipeline.runtime.queue import require_server

HEALTHY_SECONDS_MAX = 20
WATCH_SECONDS = 0.2
FRONT_STOP_SECONDS = 1.2  # a task that is cut off here is delivered again at the next start
BACK_STOP_SECONDS = 0.6


class Stopped(BaseException):
    """Someone asked the demo to end; like KeyboardInterrupt, no ``except Exception`` eats it."""


def run(port: int, say: Callable[[str], None]) -> None:
    """Run the demo on ``port`` (0: any free one) until a signal ends it.

    Raises:
        ProcessError: something could not start, or ended by itself; all of it is stopped.
    """
    front: list[Child] = []  # they use those at the back, so they stop first
    back: list[Child] = []
    with _only_demo(settings.NANOVM_DATA), _stop_signals():
        _require_free(port)
        if settings.REDIS_URL:
            require_server(settings.REDIS_URL)
        try:
            _migrate()
            _start(port, front, back, say)
            _watch([*front, *back])
        except Stopped:
            say("Stopping.")
        finally:
            _ignore_signals()
            stop(front, FRONT_STOP_SECONDS)
            stop(back, BACK_STOP_SECONDS)


def _start(port: int, front: list[Child], back: list[Child], say: Callable[[str], None]) -> None:
    data, port = settings.NANOVM_DATA, port or free_port()
    env = {"NANOVM_DATA": str(data), "DJANGO_SETTINGS_MODULE": "config.settings"}
    if settings.REDIS_URL:
        env["REDIS_URL"] = settings.REDIS_URL
    else:
        back.append(spawn_redis_server(data))
        env["REDIS_URL"] = ready(back[-1]).url
    if settings.STRIPE["local"] and settings.STRIPE["api_base"] is None:
        back.append(spawn_stripe_counterpart(data))
        env["STRIPE_API_BASE"] = ready(back[-1]).url
        if not settings.STRIPE_WEBHOOK_SECRET:
            env["STRIPE_WEBHOOK_SECRET"] = webhook_endpoint.registered(
                env["STRIPE_API_BASE"], settings.STRIPE["key"], f"http://{LOOPBACK}:{port}"
            )
    back.append(spawn_signer(env))  # what the others sealed last is still signed
    front.append(spawn_celery_worker(env))
    front.append(spawn_daphne(env, port))
    url = [ready(child).url for child in (*back, *front)][-1]
    _await_health(url, [*front, *back])
    say(f"nanovm is running at {url}/")
    say(f"Payments go to {_stripe_in_words(env)}.")
    say(f"Everything it writes is in {data}. Ctrl-C stops it.")


def _stripe_in_words(env: dict[str, str]) -> str:
    if settings.STRIPE["local"]:
        where = env.get("STRIPE_API_BASE", settings.STRIPE["api_base"])
        return f"the local Stripe counterpart at {where}: no request leaves this machine"
    return "Stripe's test mode, with the key in STRIPE_SECRET_KEY"


def _migrate() -> None:
    schema.migrate()
    connections.close_all()


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
    except URLError as error:
        return f"web: {error.reason}"


def _watch(children: Sequence[Child]) -> NoReturn:
    while True:
        _require_running(children)
        time.sleep(WATCH_SECONDS)


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
