"""``manage.py demo`` starts everything, says what is wrong, and leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engine.ops.processes import redis_server
from reader import sandbox
from sabotage.kit.waiting import wait_until
from tests.house.demo import ROOT, Demo, launch, processes_of, refusal, start

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


HEALTHY_MS_MAX = 180_000  # on a busy machine
PARTS = ("database", "queue", "worker", "stripe", "signer", "keys", "policy", "controller")
HEALTHY = {"ok": True, **dict.fromkeys(PARTS, "ok"), "refusals": 0}
PROGRAMS = {  # in its command line, and its name in /healthz
    "config.walled": "reader",
    "-m celery": "payer",
    "config.web": "web",
    "manage.py signer": "signer",
    "manage.py controller": "controller",
    "stripe_sandbox": "stripe",
    "valkey-server": "queue",
}
RUN_AND_WAIT = """
import sys
from pathlib import Path
import django
django.setup()
import config.celery
from engine.runtime import api
from pipeline.create_run import create_run
from pipeline.register import sample_register
from sabotage.kit.waiting import wait_until
given = {"file_name": "plain.pdf", "pace_ms": int(sys.argv[1])}
document = Path("samples/plain.pdf").read_bytes()
run = create_run(sample_register.new_workspace(), document, **given)
api.start(str(run.id), "operator")
print("begun", run.code, flush=True)
def ended():
    run.refresh_from_db()
    return run.ended_ms is not None
wait_until(ended, 120_000)
print(run.state)
"""


def healthy(demo: Demo, **restarts: int) -> bool:
    """Whether everything answers, and each of these was restarted so often at least.

    Where the queue server is killed under a task, Celery may end its worker: it is restarted too.
    """
    try:
        found = health(demo)
    except OSError:  # the web server is away; HTTPError: something else is
        return False
    counted = {name: each["count"] for name, each in found.pop("restarts").items()}
    walled = found.pop("walls")  # none, where the reader's process starts anew
    varies = ("webhooks", "disk", "queue_length", "oldest_waiting_ms", "dropped")
    said = {name: found.pop(name) for name in varies}
    away = "The process that reads PDFs" in str(found["reader"])  # it was killed, or is slow
    if away or found["controller"] != "ok":
        return False
    assert found.pop("follow") == "not in use: manage.py follow starts it"
    assert found == {**HEALTHY, "reader": sandbox.confinement()}
    assert all(type(said[name]) is int for name in varies[2:])
    assert {*walled} <= {"reader"}
    return bool(walled) and all(counted.get(name, 0) >= count for name, count in restarts.items())


def health(demo: Demo) -> dict[str, Any]:
    """What the application says of itself."""
    with urllib.request.urlopen(f"{demo.url}/healthz") as answer:
        return dict(json.load(answer))


@contextmanager
def begun(demo: Demo, pace_ms: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has started a run on the demo's queue and waits for its end; its code."""
    command = [sys.executable, "-c", RUN_AND_WAIT, str(pace_ms)]
    with subprocess.Popen(
        command, cwd=ROOT, env=demo.env, stdout=subprocess.PIPE, text=True
    ) as popen:
        assert popen.stdout is not None
        code = popen.stdout.readline().removeprefix("begun ").strip()
        try:
            assert code
            yield popen, code
        finally:
            popen.kill()


def outcome(run: subprocess.Popen[str]) -> str:
    """How its run ended."""
    return run.communicate(timeout=150)[0].strip()


def kill(demo: Demo, *parts: str) -> None:
    """Kill components at once, without a warning; they have ended when this returns."""
    found = processes_of(demo.data)
    pids = {pid for pid, command in found for part in parts if part in command}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: pids.isdisjoint(dict(processes_of(demo.data))), HEALTHY_MS_MAX)


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
    assert "STRIPE_SECRET_KEY is not a Stripe test key" in errors
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
    assert not [*(tmp_path / "data" / "logs").glob("payer*")]
