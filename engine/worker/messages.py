"""Checks queue messages: one that no sender of ours made is counted and dropped, and not run."""

import base64
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from queue import Empty
from typing import Any

from celery import current_app
from django.db.models import Model
from kombu.transport import redis

from engine.runtime.queue import DROPPED

log = logging.getLogger(__name__)

SIZE_BYTES_MAX = 16_384  # a message of ours has under 2,000
_signature = cache(inspect.signature)  # of a task's function: there are few
TEXT_CHARS_MAX = 256  # of what Celery notes of a message's arguments and sender
AHEAD = timedelta(minutes=10)  # a later message would be held in the worker's memory until then
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HASH = re.compile(r"[0-9a-f]{64}")
REPLIES = ".reply.celery.pidbox"  # where answers to a ping arrive: no tasks

Json = dict[str, Any]
Check = Callable[[Any], bool]


class MalformedError(ValueError):
    """A message that is none of ours; ``str`` says in fixed words why, and quotes nothing."""


def _is(*allowed: object) -> Check:
    return lambda value: any(type(value) is type(each) and value == each for each in allowed)


def _is_id(value: object) -> bool:
    return type(value) is str and ID.fullmatch(value) is not None


def _is_note(value: object) -> bool:
    return type(value) is str and len(value) <= TEXT_CHARS_MAX


def _is_moment(value: object) -> bool:
    """None, or a time with its zone that is not far ahead."""
    if value is None:
        return True
    try:
        return datetime.fromisoformat(str(value)) <= datetime.now(UTC) + AHEAD
    except (ValueError, TypeError):  # TypeError: a time without a zone
        return False


HEADERS: Mapping[str, Check] = {
    "lang": _is("py"),
    "parent_id": lambda value: value is None or _is_id(value),
    "eta": _is_moment,
    "expires": _is_moment,
    **dict.fromkeys(("id", "root_id"), _is_id),
    **dict.fromkeys(("task", "argsrepr", "kwargsrepr", "origin"), _is_note),
    "retries": _is(0),
    "replaced_task_nesting": _is(0),
    "ignore_result": _is(None, True, False),
    "timelimit": _is([None, None]),
    "stamps": _is({}),
    **dict.fromkeys(("shadow", "group", "group_index", "stamped_headers"), _is(None)),
}
PROPERTIES: Mapping[str, Check] = {
    "correlation_id": _is_id,
    "reply_to": _is_id,
    "delivery_tag": _is_id,
    "delivery_mode": _is(1, 2),
    "priority": _is(0),
    "body_encoding": _is("base64"),
    "delivery_info": lambda value: type(value) is dict,
    "expiration": lambda value: value is None or _is_note(value),  # absent where it does not expire
}
FRAME: Mapping[str, Check] = {
    "body": lambda value: type(value) is str,
    "content-type": _is("application/json"),
    "content-encoding": _is("utf-8"),
    "headers": lambda value: type(value) is dict,
    "properties": lambda value: type(value) is dict,
}
AGAIN = "redelivered"  # what is added when a message that a worker did not finish is put back
NO_FOLLOWERS = dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))


def checked(raw: bytes, queue: str) -> Json:
    """The message that these bytes are, every part of it of the kind that Celery makes here.

    Raises:
        MalformedError: it is none of ours.
    """
    if len(raw) > SIZE_BYTES_MAX:
        raise MalformedError("it is too long")
    message = _parsed(raw)
    if queue.endswith(REPLIES):
        return message
    _require(message, FRAME, "it is no message of Celery's")
    headers = {name: value for name, value in message["headers"].items() if name != AGAIN}
    _require(headers, HEADERS, "its headers are not ours")
    properties = message["properties"]
    _require({"expiration": None, **properties}, PROPERTIES, "its properties are not ours")
    sent_to = {name: value for name, value in properties["delivery_info"].items() if name != AGAIN}
    if sent_to != {"exchange": "", "routing_key": queue}:
        raise MalformedError("it was sent to another queue")
    _check_call(headers["task"], message["body"])
    return message


def _parsed(raw: bytes) -> Json:
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise MalformedError("it is not JSON") from error
    if type(message) is not dict:
        raise MalformedError("it is no JSON object")
    return message


def _require(value: Json, table: Mapping[str, Check], why: str) -> None:
    if value.keys() != table.keys() or not all(table[name](value[name]) for name in table):
        raise MalformedError(why)


def _check_call(name: str, body: str) -> None:
    """Return if the body calls a task that there is, with arguments of the kinds it takes."""
    task = current_app.tasks.get(name)
    if task is None:
        raise MalformedError("there is no such task")
    try:
        args, kwargs, embed = json.loads(base64.b64decode(body, validate=True))
        call = _signature(task.run).bind(*args, **kwargs)
    except (ValueError, TypeError, RecursionError) as error:
        raise MalformedError("its arguments are not those of its task") from error
    kinds = call.signature.parameters
    if embed != NO_FOLLOWERS or not all(
        _fits(kinds[name], value) for name, value in call.arguments.items()
    ):
        raise MalformedError("its arguments are not those of its task")


def _fits(parameter: inspect.Parameter, value: object) -> bool:
    """Whether a value is of a parameter's type, and of its form where the name tells one."""
    if type(value) is not parameter.annotation:
        return False
    if parameter.name.endswith("_id"):
        return _is_id(value)
    return type(value) is not str or HASH.fullmatch(value) is not None


class Channel(redis.Channel):
    """Kombu's channel, which hands on what is ``checked`` and drops the rest."""

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        # Kombu makes one for each command, which takes longer than the command.
        if not asynchronous and self._kept and self._kept.connection_pool is self.pool:
            return self._kept
        made: Any = super()._create_client(asynchronous)  # type: ignore[no-untyped-call]
        self._kept = self._kept if asynchronous else made
        return made

    def _brpop_read(self, **options: object) -> bool:
        # Kombu's own, but for the check: there a message that is not JSON ends the worker.
        connection = self.client.connection
        try:
            found: Any = self.client.parse_response(connection, "BRPOP", **options)
        except self.connection_errors:
            connection.disconnect()  # so that the next turn connects again
            raise
        finally:
            self._in_poll = None  # type: ignore[assignment] # as kombu has it
            self._flush_brpop_reauth()  # type: ignore[no-untyped-call]
        if not found:
            raise Empty
        queue = found[0].decode("utf-8", "replace").rsplit(self.sep, 1)[0]
        self._queue_cycle.rotate(queue)
        try:
            message = checked(found[1], queue)
        except MalformedError as error:
            with self.conn_or_acquire() as client:
                _drop(client, str(error))
        else:
            self.connection._deliver(message, queue)
        return True


class Transport(redis.Transport):
    """Redis as the queue; every message is checked."""

    Channel = Channel


@contextmanager
def of_known(row: type[Model]) -> Iterator[None]:
    """Count and drop a message about something that there is not."""
    try:
        yield
    except row.DoesNotExist:  # type: ignore[attr-defined] # each model has one
        with current_app.pool.acquire() as connection:
            _drop(connection.default_channel.client, "what it is about does not exist")


def _drop(client: Any, why: str) -> None:
    log.warning("a queue message was dropped: %s", why)
    client.incr(DROPPED)
