"""``GET /healthz``: does everything that the application needs answer?"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.error import URLError
from urllib.request import urlopen

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import KombuError

from config.celery import app
from engine.application import installed
from engine.errors import BrokenPartError
from engine.evidence import published
from engine.evidence.published import unsigned_logs
from engine.ops import disk, process_file, said
from engine.ops.error_messages import DATABASE_ERRORS
from engine.runtime import queue, warrants
from engine.store import actors, programs
from engine.store.turns import waiting_ms
from engine.vault.key_store import keystore
from gate import application
from nanovm_core.errors import ProgramError
from pipeline.after_payment import webhooks
from reader import ReaderLostError, sandbox

ANSWER_SECONDS_MAX = 2
WATCHING = ("follow", "controller")  # processes that no run waits for
ANSWER_HOLDS_SECONDS = 1.0
WALLS_SECONDS_MAX = 4.5  # for each of two waits; the supervisor gives this page 20
WALLS = ("confined", "missing")
T = TypeVar("T")
OK = "ok"
WENT_BACK = "LOG-006"
# Stripe's own test mode is not asked each time a monitor looks.
NOT_ASKED = "not asked: Stripe's test mode is outside this machine"
# What Celery raises where the queue server is away, was replaced, or all connections are in use.
BROKEN_OFF = (redis.RedisError, OSError, KombuError)


@require_safe
@never_cache
def healthz(_request: HttpRequest) -> JsonResponse:
    """200 when all of them answer, else 503 and, for each that does not, why and what to do.

    ``refusals`` counts the logs that the signer refuses to sign; ``refused`` says what to do.
    ``disk`` warns before it is full; once new documents are refused, that is a 503.
    ``reader`` tells which walls the kernel gives the process that reads PDFs, and which it lacks.
    ``follow`` and ``controller`` say what stops the export of spans and the look at Stripe's list.
    """
    queued = _queue()
    parts = {
        "database": _database(),
        "keys": _keys(),
        "policy": _policy(),
        "queue": queued,
        "worker": _worker() if queued == OK else "not asked: it is reached through the queue",
        "stripe": _stripe(),
        "signer": _signer(),
    }
    room = disk.room()
    healthy = all(answer in (OK, NOT_ASKED) for answer in parts.values()) and not room.is_full
    status = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
    # A log that is not signed is its owner's alarm; the application goes on for all others.
    answers = {
        "ok": healthy,
        **parts,
        "disk": room.said(),
        **_refusals(),
        "reader": _reader(),
        **{name: said.in_words(name) for name in WATCHING},
        **load(),
    }
    return JsonResponse(answers, status=status)


def _refusals() -> dict[str, object]:
    """How many logs are not signed, and, where there are any, what to do."""
    standing = unsigned_logs()
    if not standing:
        return {"refusals": 0}
    text = "logs that the signer refuses to sign: manage.py fsck says why"
    if any(each.code == WENT_BACK for each in standing):
        text = f"{text}; if a backup was put back, run manage.py restore"
    return {"refusals": len(standing), "refused": text}


def load() -> dict[str, Any]:
    """Numbers, of which none is a fault; what cannot be asked is left out.

    ``webhooks`` counts deliveries by what became of them, ``queue_length`` messages that no worker
    took yet, ``dropped`` those that were malformed since the queue server started, ``restarts`` the
    children of ``make demo`` that ended, ``walls`` what holds its child that reads, and what its
    kernel lacks of that.
    """
    found: dict[str, Any] = {}
    if application.BROKEN:  # the invoices go on without it
        found["gate"] = f"left out: {', '.join(sorted(application.BROKEN))}; the log says why"
    with suppress(DatabaseError):
        found["webhooks"] = webhooks.counts()
    with suppress(redis.RedisError, OSError, ValueError):
        if settings.REDIS_URL:
            found["queue_length"], found["dropped"] = queue.counts(settings.REDIS_URL)
    with suppress(DatabaseError):
        found["oldest_waiting_ms"] = waiting_ms()
    running = process_file.read()
    if running.processes:
        found["restarts"] = {
            name: {"count": each.restarts, "at_ms": each.restarted_ms}
            for name, each in running.processes.items()
            if each.restarts
        }
        found["walls"] = {
            name: {part: said for part, said in each.walls.items() if part in WALLS and said}
            for name, each in running.processes.items()
            if each.walls and each.pid
        }
    return found


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except DatabaseError as error:
        return f"no answer ({type(error).__name__}): restart the application, and see the log"
    return OK


def _keys() -> str:
    try:
        keystore().require_whole()
        warrants.require_key()
    except BrokenPartError as error:
        return str(error).replace(f"{settings.NANOVM_DATA}/", "")  # anybody may read this page
    except DATABASE_ERRORS as error:
        return f"no answer ({type(error).__name__}): see which process holds keys.sqlite3"
    return OK


def _policy() -> str:
    """OK where each program that is installed can begin a run under its policy."""
    try:
        for each in installed():
            programs.current(each)
    except ProgramError as error:
        return f"no policy ({error.code}), so no run begins: manage.py policy test says why"
    return OK


def _queue() -> str:
    if not settings.REDIS_URL:
        return "no queue server: set REDIS_URL, or start everything with make demo"
    try:
        queue.ping(settings.REDIS_URL)
    except (redis.RedisError, OSError, ValueError) as error:
        return f"no answer ({type(error).__name__}): start the server that REDIS_URL names"
    return OK


class BriefCache(Generic[T]):
    """Caches an answer for a second: one caller computes it, the others wait."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self.ask, self.asking = ask, threading.Lock()
        self.answer: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The answer, which is not older than ``ANSWER_HOLDS_SECONDS``."""
        with self.asking:
            if self.answer is None or time.monotonic() >= self.answer[0]:
                said = self.ask()
                self.answer = time.monotonic() + ANSWER_HOLDS_SECONDS, said
            return self.answer[1]


def _ask_workers() -> str:
    """OK where each agent of the installed programs has a process, or one that acts for all."""
    every = actors.agents()
    try:
        silent = [each for each in every if not _answers(each, every)]
    except BROKEN_OFF as error:  # a connection to a server that was replaced
        return f"not asked: the queue broke off ({type(error).__name__}): ask again"
    if not silent:
        return OK
    whose = "" if silent == [*every] else f" for {' and '.join(silent)}"
    return f"no worker answers{whose}: {_advice()}"


def _advice() -> str:
    supervisors = process_file.read().supervisors
    gave_up = [name for name, each in supervisors.items() if each.gave_up_ms]
    if gave_up:
        who = f"the supervisor {' and '.join(gave_up)} gave up"
        return f"{who}: see /agents/, mend it, and end and start nanovm again"
    return "start one with celery -A config.celery worker"


def _answers(agent: str, every: Sequence[str]) -> bool:
    """Whether a worker answers that is called after an agent, or after none of them."""
    pattern = f"{agent}-[0-9a-f]+@|(?!({'|'.join(every)})-[0-9a-f]+@)"
    asked = {"limit": 1, "pattern": pattern, "matcher": "pcre"}
    return bool(app.control.ping(timeout=ANSWER_SECONDS_MAX, **asked))


_worker = BriefCache(_ask_workers)  # each question is a message to all workers


@cache
def _walls() -> dict[str, str]:
    return sandbox.confinement(WALLS_SECONDS_MAX)  # its fork server stays: a comparison reads too


def _ask_for_walls() -> dict[str, str]:
    """What a child of this process says of its walls; a kernel without them is no failure."""
    try:
        return _walls()
    except ReaderLostError as error:  # it may be ready for a later question
        return {"missing": str(error)}


_reader = BriefCache(_ask_for_walls)


def _signer() -> str:
    silent_ms = published.silent_ms()
    if silent_ms is None:
        return "no signer ever ran on this data folder: start one with manage.py signer"
    if silent_ms > published.SILENT_MS_MAX:
        return f"no sign of life for {silent_ms // 1000} s: start manage.py signer again"
    return OK


def _stripe() -> str:
    stripe = settings.STRIPE
    if not stripe["local"]:
        return NOT_ASKED
    if stripe["api_base"] is None:
        return "no counterpart: set STRIPE_API_BASE, or start everything with make demo"
    try:
        # The settings admit an address on this machine alone.
        with urlopen(f"{stripe['api_base']}/healthz", timeout=ANSWER_SECONDS_MAX):  # noqa: S310
            return OK
    except (URLError, OSError) as error:
        return f"no answer ({type(error).__name__}): start python -m stripe_sandbox again"
