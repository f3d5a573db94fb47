"""What comes into the queue that no sender of ours made is dropped before Celery reads it."""

import base64
import json
import uuid
from pathlib import Path

import pytest
import redis
from celery import Celery

from config.celery import app
from engine.ops.processes import ready, redis_server, running, spawn_celery_worker
from engine.runtime.queue import DRIVE, DROPPED, QUEUE
from engine.worker import messages, tasks
from engine.worker.messages import Json, MalformedError, checked
from tests.kit.house import House

CANARY = "Erika Mustermann"
ARGS = (str(uuid.UUID(int=7)), "0" * 64)
NEVER = "9999-12-31T23:59:59+00:00"


def body(args: object = ARGS, kwargs: object = None, embed: object = None) -> str:
    """The body of a message that calls a task."""
    embedded = messages.NO_FOLLOWERS if embed is None else embed
    whole = [args, kwargs or {}, embedded]
    return base64.b64encode(json.dumps(whole).encode()).decode()


OWN: dict[str, object] = {
    "lang": "py",
    "task": DRIVE,
    "id": str(uuid.UUID(int=1)),
    "root_id": str(uuid.UUID(int=1)),
    "argsrepr": "()",
    "kwargsrepr": "{}",
    "origin": "gen1@host",
    "retries": 0,
    "replaced_task_nesting": 0,
    "timelimit": [None, None],
    "stamps": {},
    **dict.fromkeys(("shadow", "group", "group_index", "parent_id", "stamped_headers")),
    **dict.fromkeys(("eta", "expires", "ignore_result")),
}
SENT: dict[str, object] = {
    "correlation_id": str(uuid.UUID(int=2)),
    "reply_to": str(uuid.UUID(int=3)),
    "delivery_tag": str(uuid.UUID(int=4)),
    "delivery_mode": 2,
    "priority": 0,
    "body_encoding": "base64",
    "delivery_info": {"exchange": "", "routing_key": QUEUE},
}


def message(headers: Json | None = None, properties: Json | None = None, **frame: object) -> bytes:
    """A message as a sender of ours makes it, but for what is given (``_`` for a hyphen)."""
    whole = {
        "body": body(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {**OWN, **(headers or {})},
        "properties": {**SENT, **(properties or {})},
        **{name.replace("_", "-"): value for name, value in frame.items()},
    }
    return json.dumps(whole).encode()


MALFORMED: dict[str, bytes] = {
    "empty": b"",
    "no JSON": f"{CANARY} {{".encode(),
    "no UTF-8": b"\xff\xfe" + CANARY.encode(),
    "no object": json.dumps([CANARY]).encode(),
    "half a message": message()[:-1],
    "nested": b"[" * 10_000,
    "nested in an object": b'{"body":' * 2_000 + b"1" + b"}" * 2_000,
    "huge": message({"origin": CANARY * 100_000}),
    "too long by a byte": message().ljust(messages.SIZE_BYTES_MAX + 1),
    "a name too many": message(more=CANARY),
    "a name too few": json.dumps({"body": CANARY}).encode(),
    "another content type": message(content_type="application/x-python-serialize"),
    "another encoding": message(content_encoding="binary"),
    "a body that is no text": message(body={"a": CANARY}),
    "a body that is not base64": message(body=CANARY),
    "a body that is not JSON": message(body=base64.b64encode(CANARY.encode()).decode()),
    "a body of one part": message(body=base64.b64encode(b'["a"]').decode()),
    "a nested body": message(body=base64.b64encode(b"[" * 9_000).decode()),
    "an unknown task": message({"task": CANARY}),
    "a task of Celery's": message({"task": "celery.chain"}, body=body(["a"])),
    "no argument": message(body=body([])),
    "an argument too many": message(body=body([*ARGS, CANARY])),
    "a named argument that is not known": message(body=body(ARGS, {CANARY: 1})),
    "arguments that are no list": message(body=body(7)),
    "a number for a text": message(body=body([7, ARGS[1]])),
    "an object for a text": message(body=body([{"a": CANARY}, ARGS[1]])),
    "a run id that is none": message(body=body([CANARY, ARGS[1]])),
    "a hash that is none": message(body=body([ARGS[0], CANARY])),
    "a task that follows": message(body=body(embed={"callbacks": [CANARY]})),
    "an id that is none": message({"id": CANARY}),
    "headers that are none": message().replace(b'"headers": {', b'"headers": 7, "more": {'),
    "a header too many": message({"more": CANARY}),
    "a time that is none": message({"eta": CANARY}),
    "a time without a zone": message({"eta": "2026-01-01T00:00:00"}),
    "a time far ahead": message({"eta": NEVER}),
    "an end far ahead": message({"expires": NEVER}),
    "true for a number": message({"retries": False}),
    "a property too many": message(properties={"more": CANARY}),
    "a tag that is none": message(properties={"delivery_tag": [CANARY]}),
    "another queue": message(properties={"delivery_info": {"routing_key": CANARY}}),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_message_that_no_sender_makes_is_refused_in_words_that_quote_nothing(kind: str) -> None:
    with pytest.raises(MalformedError) as caught:
        checked(MALFORMED[kind], QUEUE)
    assert CANARY not in str(caught.value)
    assert "Mustermann" not in str(caught.value)


def test_one_of_the_greatest_length_is_no_more_than_long() -> None:
    assert checked(message().ljust(messages.SIZE_BYTES_MAX), QUEUE)["body"] == body()


def test_what_our_senders_send_is_handed_on_as_it_is(tmp_path: Path) -> None:
    with redis_server(tmp_path) as url, app.connection_for_write(url) as connection:
        tasks.drive.apply_async(ARGS, countdown=2, connection=connection)
        tasks.drive.apply_async(ARGS, retry=False, connection=connection)
        tasks.sweep.apply_async(expires=2.0, connection=connection)
        with redis.Redis.from_url(url) as client:
            sent = client.lrange(QUEUE, 0, -1)
    assert len(sent) == 3
    for each in [*sent, message({"redelivered": True})]:
        assert checked(each, QUEUE) == json.loads(each)


def test_a_channel_keeps_its_client_until_its_connections_are_closed(tmp_path: Path) -> None:
    with redis_server(tmp_path) as url, app.connection_for_write(url) as connection:
        channel = connection.default_channel
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
            assert first is second
        assert first is not channel.client
        channel._disconnect_pools()
        with channel.conn_or_acquire() as third:
            assert third is not first
            assert third.ping()


def test_the_queue_server_opens_no_other_port_and_writes_no_file(tmp_path: Path) -> None:
    asked = ("MIGRATE 127.0.0.1 1 key 0 9", "REPLICAOF 127.0.0.1 1", "SLAVEOF NO ONE")
    with redis_server(tmp_path) as url, redis.Redis.from_url(url) as client:
        for command in (*asked, "SAVE", "BGSAVE", "BGREWRITEAOF"):
            with pytest.raises(redis.ResponseError, match="unknown command"):
                client.execute_command(*command.split())


def test_a_worker_counts_them_in_a_line_each_and_goes_on(house: House) -> None:
    """The last one is well-formed: it is about a run that does not exist."""
    with redis_server(house.folder) as url, redis.Redis.from_url(url) as client:
        client.rpush(QUEUE, *reversed(MALFORMED.values()))
        client.lpush(QUEUE, message())
        env = {"NANOVM_DATA": str(house.folder), "REDIS_URL": url}
        with running(spawn_celery_worker(env)) as worker:
            worker.answers = lambda: "does not exist" in worker.written()
            ready(worker)
            worker.answers = lambda: client.get(DROPPED) == str(len(MALFORMED) + 1).encode()
            ready(worker)
            with Celery("another", broker=url, set_as_current=False) as sender:
                sender.control.broadcast("shutdown")  # which is no sender's to ask for
                assert sender.control.ping(timeout=10, limit=1)
            assert worker.ended() is None
        assert worker.popen.returncode == 0
        written = worker.written()
        waiting = client.lrange(QUEUE, 0, -1)  # a sweep, where the worker ended just then
        assert not {*waiting} & {message(), *MALFORMED.values()}
    assert written.count("a queue message was dropped") == len(MALFORMED) + 1
    assert "Mustermann" not in written
    assert "Traceback" not in written
