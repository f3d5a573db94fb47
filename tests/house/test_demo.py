"""``manage.py demo`` starts everything, says what is wrong, and leaves nothing behind."""

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from pipeline.ops.processes import redis_server
from pipeline.steps.charge import gateway
from pipeline.steps.extract import sandbox
from sabotage.kit.waiting import wait_until
from tests.house.demo import Demo, launch, processes_of, refusal, start

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A demo that was started on an empty data folder."""
    running = start(tmp_path / "data")
    yield running
    running.close()


def refused(demo: Demo) -> str:
    """What a demo complains of that ends by itself, with status 2."""
    _, errors = demo.popen.communicate(timeout=60)
    assert demo.popen.returncode == 2
    assert "Traceback" not in errors
    return errors


PARTS = ("database", "queue", "worker", "stripe", "signer")
HEALTHY = {"ok": True, **dict.fromkeys(PARTS, "ok"), "refusals": 0}
TITLES = {
    "celery": "the worker",
    "config.web": "the web server",
    "manage.py signer": "the signer",
    "stripe_sandbox": "the local Stripe counterpart",
    "valkey-server": "the queue server",
}


def healthy(demo: Demo) -> bool:
    """Whether everything that the application needs answers."""
    found = health(demo)
    counted = {name: found[name] for name in ("webhooks", "disk")}
    return found == {**HEALTHY, "reader": sandbox.confinement(), **counted}


def health(demo: Demo) -> dict[str, Any]:
    """What the application says of itself."""
    with urllib.request.urlopen(f"{demo.url}/healthz") as answer:
        return dict(json.load(answer))


def kill(demo: Demo, part: str) -> None:
    """Kill a component; the demo names it, stops the rest and ends with status 2."""
    victim = next(pid for pid, command in processes_of(demo.data) if part in command)
    os.kill(victim, signal.SIGKILL)
    errors = refused(demo)
    assert f"{TITLES[part]} ended with signal SIGKILL" in errors
    assert "start it again" in errors
    assert processes_of(demo.data) == []


def test_it_refuses_a_second_one_stops_with_a_component_and_starts_again(demo: Demo) -> None:
    assert healthy(demo)
    assert any("local Stripe counterpart" in line for line in demo.said)
    assert len(processes_of(demo.data)) == 6  # supervisor, queue, counterpart, signer, worker, web
    assert "Another demo runs on the data folder" in refused(launch(demo.data))
    assert len(processes_of(demo.data)) == 6
    kill(demo, "celery")
    again = start(demo.data)
    try:
        assert healthy(again)  # its webhook endpoint has taken the place of the first one's
        far = gateway.client(settings.STRIPE["key"], again.env["STRIPE_API_BASE"], 20)
        assert len(far.v1.webhook_endpoints.list().data) == 1
        far.v1.payment_intents.create({"amount": 100, "currency": "eur"})  # of no run
        assert wait_until(lambda: health(again)["webhooks"]["unknown"] == 1, 30_000)
        assert again.signal(signal.SIGINT) == 0
        assert processes_of(demo.data) == []
    finally:
        again.close()


@pytest.mark.soak  # the first test has one of them
@pytest.mark.parametrize("part", sorted({*TITLES} - {"celery"}))
def test_a_component_that_dies_is_named_and_the_rest_is_stopped(demo: Demo, part: str) -> None:
    kill(demo, part)


def test_a_taken_port_is_one_sentence_and_starts_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        errors = refused(launch(tmp_path, PORT=str(port)))
    assert f"Port {port} on 127.0.0.1 is taken; choose another one with PORT=" in errors
    assert len(errors.strip().splitlines()) == 1
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("wrong", ["eighty", "65536", "-1"])
def test_a_port_that_is_none_is_one_sentence(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", wrong)
    with pytest.raises(CommandError, match=f"PORT={wrong} is no port") as caught:
        call_command("demo")
    assert caught.value.returncode == 2


def test_a_live_key_refuses_to_start(tmp_path: Path) -> None:
    key = "sk_live_" + "4" * 24
    errors = refused(launch(tmp_path, STRIPE_SECRET_KEY=key))
    assert "STRIPE_SECRET_KEY is a live key" in errors
    assert key not in errors
    assert processes_of(tmp_path) == []


def test_a_counterpart_that_cannot_start_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "stripe_sandbox.sqlite3").mkdir()
    errors = refused(launch(tmp_path))
    assert "the local Stripe counterpart ended with status" in errors
    assert "stripe_sandbox.sqlite3" in errors
    assert processes_of(tmp_path) == []


def test_a_queue_server_that_is_away_is_named_and_starts_nothing(tmp_path: Path) -> None:
    with redis_server(tmp_path / "queue") as url:
        place = url.partition("@")[2].removesuffix("/0")
        wrong = url.replace("redis://:", "redis://:not-")
        strange = refusal(tmp_path / "data", "manage.py", "demo", REDIS_URL=wrong, PORT="0")
    silent = refusal(tmp_path / "data", "manage.py", "sabotage", "skip_step", REDIS_URL=wrong)
    for errors, says in ((strange, "refuses its password"), (silent, "does not answer")):
        assert f"The queue server {says} at {place}, which REDIS_URL names: start it" in errors
        assert "not-" not in errors
    assert not [*(tmp_path / "data" / "logs").glob("worker*")]
