"""The follower beside a collector that is away, slow or wrong, and through kills: nothing lost."""

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any

import pytest
from django.conf import settings

from engine.clock import now_ms
from engine.models import Envelope, Workspace
from engine.ops import said
from engine.queries.telemetry import follow
from engine.queries.telemetry.collector import Collector
from engine.queries.telemetry.follow import SPANS_MAX, Follower
from engine.queries.telemetry.spans import Spans, resource
from engine.runtime import chains
from engine.store.state_file import StateFile, private
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import canonical_hash
from tests.engine.telemetry.receiver import Answer, Receiver, answered, receiving, rejecting
from tests.engine.telemetry.test_spans import CANARY, canaried
from tests.kit.house import ROOT, House, sql
from tests.kit.trees import PLACE, grown, truncated

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A collector that the environment names."""
    with receiving() as found:
        monkeypatch.setenv(ENDPOINT, found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.4")
        yield found


def follower() -> Follower:
    """A follower as the command makes it."""
    file = private(settings.NANOVM_DATA / follow.NAME) / follow.NAME
    return Follower(StateFile(file=file), Spans(), Collector().send)


def finished(each: Follower) -> int:
    """Rounds until nothing waits; how many envelopes were taken."""
    total = 0
    while taken := each.round(now_ms()):
        total += taken
    return total


def dripping(handler: BaseHTTPRequestHandler) -> None:
    answered(length=1_000)(handler)
    with suppress(OSError):  # it is not waited for
        for _ in range(12):
            handler.wfile.write(b"\x08")
            time.sleep(0.1)


BAD: dict[str, tuple[Answer, str]] = {
    "drips": (dripping, "does not answer"),
    "500": (answered(500), "answers 500"),
    "400": (answered(400, CANARY.encode()), "answers 400"),
    "401": (answered(401), "OTEL_EXPORTER_OTLP_HEADERS"),
    "404": (answered(404), ENDPOINT),
    "half": (answered(body=rejecting(12, CANARY)), "rejects 12 spans"),
    "JSON": (answered(body=b'{"partialSuccess":{"rejectedSpans":"3"}}', kind="application/json"),
             "rejects 3 spans"),
    "gzip": (answered(body=gzip.compress(rejecting(7)), coding="gzip"), "rejects 7 spans"),
    "closes": (answered(length=50), "does not answer"),
    "redirects": (answered(302), "redirects"),
    "10 MB": (answered(body=bytes(10_000_000)), "no OTLP"),
    "a page": (answered(body=b"<html>Welcome</html>", kind="text/html"), "no OTLP"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_taken_whole_is_sent_again(house: House, receiver: Receiver, name: str) -> None:
    grown(chains.create(), 24)
    each, (receiver.answer, why), at_ms = follower(), BAD[name], now_ms()
    assert each.round(at_ms) == 0
    status = said.heard("follow")
    assert status is not None
    assert why in status.why
    assert CANARY not in status.why
    assert status.facts == {"behind": 25, "exported": 0}
    assert each.round(at_ms + 999) == 0
    assert set(receiver.sizes) == {25}
    assert each.round(at_ms + 1_000) == 0
    assert receiver.sizes[-1] == 12
    receiver.answer = answered()
    taken = [each.round(at_ms + 9_000) for _ in range(4)]
    assert taken == [6, 12, 7, 0]
    assert len(receiver.spans) == 25
    assert receiver.doubles == 0
    assert said.heard("follow")[1:] == ("", {"behind": 0, "exported": 25})  # type: ignore[index]


def test_waits_grow_to_a_minute_and_a_span_that_is_never_taken_holds_up_no_other_log(
    house: House, receiver: Receiver
) -> None:
    logs = sorted((grown(chains.create(), 3) for _ in range(3)), key=lambda log: log.origin)
    refused = logs[0].id.bytes

    def answer(handler: BaseHTTPRequestHandler) -> None:
        answered(400 if refused in receiver.raw[-1] else 200)(handler)

    each, at_ms, attempts = follower(), now_ms(), 0
    receiver.answer = answer
    while said.heard("follow") is None or said.heard("follow").facts["behind"] > 4:  # type: ignore[union-attr]
        at_ms, attempts = at_ms + 60_000, attempts + 1
        each.round(at_ms)
        assert attempts < 40
    receiver.answer, waits = answered(503), []
    for _ in range(9):
        at_ms += 60_000
        each.round(at_ms)
        waits.append(each._again_ms - at_ms)
    assert waits[-1] == max(waits) == 60_000
    assert receiver.sizes[-1] == 1


WRONG = {
    f"{ENDPOINT}= ": "No collector is named",
    f"{ENDPOINT}=http://127.0.0.1:9": "does not answer. Start it",
    f"{ENDPOINT}=localhost:4318": "does not answer. Start it",
    "OTEL_EXPORTER_OTLP_PROTOCOL=grpc": "must be http/protobuf",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json": "must be http/protobuf",
    "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca.pem": "does not answer. Start it",
    "OTEL_SDK_DISABLED=true": "Unset it",
}


@pytest.mark.parametrize("setting", WRONG)
def test_once_names_a_wrong_variable_or_a_collector_that_is_away(
    house: House, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    chains.create()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.4")
    monkeypatch.setenv(ENDPOINT, "https://127.0.0.1:9")
    monkeypatch.setenv(*setting.split("="))
    done = house.command("follow", "--once")
    assert done.returncode == 2
    assert WRONG[setting] in done.stderr


def test_the_usual_variables_are_kept_to(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains.create()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    assert house.command("follow", "--once").returncode == 0
    assert receiver.headers[0]["authorization"] == "Bearer t"
    assert receiver.headers[0]["content-encoding"] == "gzip"
    expected = {"service.name": "nanovm", "deployment.environment.name": "test"}
    assert receiver.resource.items() >= expected.items()
    monkeypatch.setenv("OTEL_SERVICE_NAME", "till")
    assert resource().attributes["service.name"] == "till"


def test_a_log_that_went_back_is_said_and_holds_up_no_other(
    house: House, receiver: Receiver
) -> None:
    back, other, rewritten = (grown(chains.create(), 5) for _ in range(3))
    assert finished(follower()) == 18
    truncated(back, 3)
    truncated(rewritten, 3)
    sql(
        (
            f"UPDATE pipeline_workspace SET size = 3 WHERE size = 6 AND origin <> '{other.origin}'",
            (),
        )
    )
    grown(rewritten, 7)
    grown(other, 1)
    each = follower()
    assert finished(each) == 1
    assert all(log.origin in each.why for log in (back, rewritten))
    assert "restore" in each.why
    sql(("UPDATE pipeline_envelope SET kind = CAST(x'ff41' AS TEXT) WHERE seq = 8", ()))
    assert each.round(now_ms()) == 0
    assert f"{rewritten.origin} cannot be read" in each.why
    Workspace.objects.exclude(id=other.id).update(successor=other)  # as restore does
    sql(("DELETE FROM pipeline_envelope WHERE workspace_id <> %s", (other.id.hex,)))
    each.round(now_ms())
    assert each.why == ""
    for damaged in (b"\xff damaged", b"[]", b'{"x": 5}', b""):
        (settings.NANOVM_DATA / follow.NAME / follow.NAME).write_bytes(damaged)
        assert finished(follower()) == 7  # once more, with the ids of before
    assert receiver.doubles == 0


def test_what_somebody_puts_into_the_database_stops_no_export(
    house: House, receiver: Receiver
) -> None:
    logs = [grown(chains.create(), 3) for _ in range(5)]
    for each, change in zip(logs, ("run = x'ff'", "hash = x'ff'", "n = 'x'"), strict=False):
        sql((f"UPDATE pipeline_envelope SET {change} {PLACE}", (each.id.hex, 3)))
    for each, change in zip(logs[3:], ("origin = x'ff'", "size = 'x'"), strict=True):
        sql((f"UPDATE pipeline_workspace SET {change} WHERE id = %s", (each.id.hex,)))
    assert finished(follower()) == 16
    assert [each.name for each in receiver.parsed()].count("damaged") == 7


def planted(house: House, count: int) -> Workspace:
    """A log with this many envelopes of a run; two of three with the canary in every text."""
    run, log = house.run(), chains.create()
    bodies: list[Any] = [
        decode(bytes(each.bytes)) for each in Envelope.objects.filter(run=run.name)
    ]
    rows = []
    for n in range(count):
        body = bodies[n % len(bodies)]
        place = {"log": log.origin, "seq": log.size + n, "run": run.name, "n": n}
        data = encode((canaried(body, CANARY) if n % 3 else body) | place)
        found = Envelope(workspace=log, seq=log.size + n, run=run.name, n=n, bytes=data)
        found.hash, found.kind = canonical_hash(data), body["kind"]
        rows.append(found)
    Envelope.objects.bulk_create(rows, batch_size=500)
    Workspace.objects.filter(id=log.id).update(size=log.size + count)
    return log


@pytest.mark.parametrize(
    ("count", "kills"), [(2_000, 2), pytest.param(100_000, 50, marks=pytest.mark.soak)]
)
def test_nothing_is_lost_or_changed_by_kills(
    house: House,
    receiver: Receiver,
    count: int,
    kills: int,
    record_property: Callable[[str, object], None],
) -> None:
    planted(house, count)
    dice = Random(39)  # noqa: S311

    def answer(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.05 + dice.random() * 0.1)
        answered(200 if dice.random() < 0.9 else 503)(handler)

    receiver.answer = answer
    for number in range(kills):
        seen = len(receiver.sizes)
        command = [sys.executable, "manage.py", "follow"]
        env = {**os.environ, "NANOVM_DATA": str(house.folder)}
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL) as process:
            while len(receiver.sizes) == seen and process.poll() is None:
                time.sleep(0.01)
            time.sleep(number % 2 * dice.random() * 0.3)  # the first is not answered yet
            process.kill()
    receiver.answer, total = answered(), Envelope.objects.count()
    with house.running("follow") as (_, ready):
        assert ready == {"ready": True}
        while len(receiver.spans) < total:
            time.sleep(0.02)
    last = said.heard("follow")
    assert last is not None
    assert (last.why, last.facts) == ("", {"behind": 0, "exported": total})
    assert max(receiver.sizes) == SPANS_MAX
    assert receiver.doubles == 0
    assert not any(CANARY.encode() in each for each in receiver.raw)
    record_property(
        "spans that were sent more than once", sum(receiver.sizes) - len(receiver.spans)
    )
