"""Starts everything that the demo needs, has it supervised, and stops it again."""

import errno
import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from django.conf import settings
from django.db import connections

from config import tree, walled, walls
from config.environment import value
from engine.management import schema
from engine.ops import process_file, processes
from engine.ops.members import Member, Spawn
from engine.ops.processes import LOOPBACK, Child, ProcessError, free_port
from engine.ops.supervisor import Supervisor
from engine.runtime.processes import Sealing
from engine.runtime.queue import require_server
from engine.store import actors, state_file
from engine.vault.key_store import keystore
from engine.worker import alerts
from nanovm_core.errors import ProgramError
from pipeline.ops.stripe_counterpart import register_endpoint, spawn_stripe_counterpart

HEALTHY_SECONDS_MAX = 20
WATCH_SECONDS = 0.2
# What the others use stops last; the signer too, so that what they sealed last is still signed.
BACK = ("queue", "stripe", "signer")
# Commands that begin once all others answer. ``follow`` runs where there is somewhere to send to.
WATCHERS = ("controller", "follow")
OTLP = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
FRONT_STOP_SECONDS = 1.2  # a task that is cut off here is delivered again at the next start
BACK_STOP_SECONDS = 0.6
READER = "reader"  # the agent behind walls, and the child that NANOVM_READERS counts


class Stopped(BaseException):
    """The demo was asked to end; like KeyboardInterrupt, no ``except Exception`` catches it."""


Say = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Programs:
    """What each child of the tree is, and the environment that those share that are ours."""

    port: int
    data: Path = field(default_factory=lambda: settings.NANOVM_DATA)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give all of them the same data folder and, where it is an outside one, queue."""
        self.env |= {"NANOVM_DATA": str(self.data), "DJANGO_SETTINGS_MODULE": "config.settings"}
        if settings.REDIS_URL:
            self.env["REDIS_URL"] = settings.REDIS_URL

    def members(self, agents: Mapping[str, str]) -> Iterator[Member]:
        """All that can be started; ``agents`` are those of children that are workers."""
        yield Member(name="queue", spawn=self._queue, first=self._has_queue)
        yield Member(name="stripe", spawn=self._counterpart, first=self._has_counterpart)
        yield Member(name="signer", spawn=lambda _: processes.spawn_signer(self.env))
        yield Member(name="web", spawn=lambda _: processes.spawn_daphne(self.env, self.port))
        for name in WATCHERS:
            yield Member(name=name, spawn=partial(self._watcher, name))
        for name, agent in agents.items():
            yield Member(name=name, agent=agent, spawn=partial(self._worker, name, agent))

    def _queue(self, given: Spawn) -> Child:
        return processes.spawn_redis_server(self.data, given.url)

    def _has_queue(self, url: str) -> None:
        self.env["REDIS_URL"] = settings.REDIS_URL = url  # this process wakes workers, too

    def _counterpart(self, given: Spawn) -> Child:
        """The counterpart, at the port of its address where it has one already."""
        port = urlsplit(given.url).port or 0
        return spawn_stripe_counterpart(self.data, "--port", str(port))

    def _has_counterpart(self, url: str) -> None:
        self.env["STRIPE_API_BASE"] = url
        if not settings.STRIPE_WEBHOOK_SECRET:
            self.env["STRIPE_WEBHOOK_SECRET"] = register_endpoint(
                url, settings.STRIPE["key"], f"http://{LOOPBACK}:{self.port}"
            )

    def _watcher(self, name: str, _: Spawn) -> Child:
        command = [sys.executable, "-m", "config.later", str(self.port), name]
        return processes.spawn(name, f"manage.py {name}", command, self.data, env=self.env)

    def _worker(self, name: str, agent: str, given: Spawn) -> Child:
        env = {**self.env, "NANOVM_AGENT": agent, "NANOVM_PROCESS": given.tag}
        if agent != READER:
            return processes.spawn_celery_worker(env, name=name)
        env |= walled.without(os.environ)
        return processes.spawn_celery_worker(env, ("config.walled",), name)


def run(port: int, say: Say) -> None:
    """Run the demo on ``port`` (0: any free one) until a signal ends it.

    Raises:
        ProcessError: something could not start, or ended too often; all of it is stopped.
    """
    with _only_demo(settings.NANOVM_DATA), _stop_signals():
        _require_free(port)
        if settings.REDIS_URL:
            require_server(settings.REDIS_URL)
        sealing, programs = Sealing(alerts.tell), Programs(port=port or free_port())
        supervisor = _supervisor(programs, sealing, say)
        try:
            schema.migrate()
            connections.close_all()
            _prepare(programs.data)
            process_file.write(supervisor.status())
            supervisor.start()
            url = f"http://{LOOPBACK}:{programs.port}"
            _await_health(url, supervisor.children())
            say(f"nanovm is running at {url}/")
            say(f"Payments go to {_stripe_in_words(programs.env)}.")
            say(f"Everything it writes is in {programs.data}. Ctrl-C stops it.")
            _watch(supervisor, sealing)
        except Stopped:
            say("Stopping.")
        finally:
            _ignore_signals()
            supervisor.stop(FRONT_STOP_SECONDS, but=BACK)
            sealing.close(BACK_STOP_SECONDS)
            supervisor.stop(BACK_STOP_SECONDS)
            process_file.remove()


def _prepare(data: Path) -> None:
    """Make the files that the reader's walls leave open, which name only those that are there.

    A connection to each database stays open: without one SQLite would make its logs anew.
    """
    keystore().prepare()
    state_file.private(state_file.private(data / "signer") / "logs")
    walls.hold(data)


def _supervisor(programs: Programs, sealing: Sealing, say: Say) -> Supervisor:
    """What supervises the tree of config/agents.toml, without the servers that others run."""
    stripe_is_outside = not settings.STRIPE["local"] or settings.STRIPE["api_base"] is not None
    outside = [
        *(["queue"] if settings.REDIS_URL else []),
        *(["stripe"] if stripe_is_outside else []),
        *([] if any(map(os.environ.get, OTLP)) else ["follow"]),
    ]
    try:
        found = tree.load(tree.FILE.read_bytes(), (*BACK, "web", *WATCHERS), actors.agents())
    except ProgramError as error:
        raise ProcessError(f"{tree.FILE.name}: {error}") from error
    found = tree.fitted(found, outside, READER, value("NANOVM_READERS"))
    workers = {name: agent for name, agent in found.agents.items() if agent}
    return Supervisor(
        found.root,
        tuple(programs.members(workers)),
        told=sealing.told,
        sealed=sealing.sealed,
        say=say,
        instances=found.instances,
    )


def _stripe_in_words(env: dict[str, str]) -> str:
    if settings.STRIPE["local"]:
        where = env.get("STRIPE_API_BASE", settings.STRIPE["api_base"])
        return f"the local Stripe counterpart at {where}: no request leaves this machine"
    return "Stripe's test mode, with the key in STRIPE_SECRET_KEY"


def _await_health(url: str, children: Sequence[Child]) -> None:
    deadline = time.monotonic() + HEALTHY_SECONDS_MAX
    while (problem := _unhealthy(url)) is not None:
        for child in children:
            if reason := child.ended():
                stopped = "The rest was stopped too; start it again, and see"
                raise ProcessError(f"{reason}. {stopped} {child.log}.")
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


def _watch(supervisor: Supervisor, sealing: Sealing) -> NoReturn:
    sealed: Mapping[str, int] = {}
    while True:
        supervisor.tend()
        if supervisor.changed or sealing.incarnations is not sealed:
            supervisor.changed, sealed = False, sealing.incarnations
            found = supervisor.status()
            for name, process in found.processes.items():
                process.incarnation = sealed.get(name, process.incarnation)
            process_file.write(found)
        time.sleep(WATCH_SECONDS)


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
