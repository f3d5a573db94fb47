"""The programs beside the application: they answer when ready, and end with their parent."""

import errno
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from django.conf import settings

from engine.ops import processes
from engine.ops.processes import (
    Child,
    ProcessError,
    redis_server,
    running,
    spawn_celery_worker,
    stop,
)
from pipeline.after_payment import far_side, webhooks
from pipeline.ops.stripe_counterpart import ENDPOINT_PATH, EVENTS, register_endpoint
from pipeline.ops.stripe_counterpart import stripe_counterpart as counterpart
from pipeline.steps.charge import gateway
from stripe_sandbox.webhooks.endpoints import KINDS
from tests.house.demo import ROOT, await_end, ran, wait_for_none


def test_the_queue_server_answers_whoever_has_the_password_and_keeps_nothing(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path) as url:
        with redis.Redis.from_url(url) as client:
            client.set("canary", "Erika Mustermann")
        parts = urlsplit(url)
        assert parts.hostname == "127.0.0.1"
        with (
            redis.Redis(host="127.0.0.1", port=parts.port or 0) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
        assert parts.password
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
        assert not [line for line in lines if parts.password.encode() in line]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", parts.port)) == errno.ECONNREFUSED
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written == [tmp_path / "logs" / "redis.log"]


def test_a_new_start_registers_its_webhook_endpoint_in_the_place_of_the_last(
    tmp_path: Path,
) -> None:
    key = settings.STRIPE["key"]
    with counterpart(tmp_path) as url:
        for here in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
            assert register_endpoint(url, key, here)
        [left] = gateway.client(key, url, 20).v1.webhook_endpoints.list().data
        assert left.url == f"http://127.0.0.1:2{ENDPOINT_PATH}"
        assert left.enabled_events == [*EVENTS]
    left_out = {kind for kind in KINDS if kind.startswith(webhooks.ABOUT)} - {*EVENTS}
    assert left_out == {"payment_intent.created", "charge.pending", "charge.succeeded"}
    assert left_out <= far_side.MAKING


def test_a_worker_that_cannot_reach_its_queue_does_not_count_as_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "START_SECONDS_MAX", 1)
    nowhere = f"redis://127.0.0.1:{processes.free_port()}/0"
    env = {"NANOVM_DATA": str(tmp_path), "REDIS_URL": nowhere}
    with pytest.raises(ProcessError, match="the worker"), running(spawn_celery_worker(env)):
        pytest.fail("it was taken for ready")
    assert wait_for_none(tmp_path) == []


def test_a_child_of_a_passing_thread_is_refused(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(processes.spawn_redis_server, tmp_path)
    with pytest.raises(ProcessError, match="from the main thread alone"):
        started.result()


def test_a_program_that_will_not_end_is_ended(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); input()"
    popen = subprocess.Popen([sys.executable, "-c", deaf], stdin=-1, stdout=-1)
    assert popen.stdout is not None
    assert popen.stdout.readline() == b"deaf\n"
    stop([Child(title="it", popen=popen, log=tmp_path, log_start=0)], seconds=0.1)
    assert popen.returncode == -signal.SIGKILL
    popen.communicate()


def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    """The parent prints its child's id and waits; it dies without a chance to clean up."""
    child_script = "import signal; print('up', flush=True); signal.pause()"
    script = (
        "import os, signal, subprocess, sys; "
        "child = subprocess.Popen([sys.executable, "
        "'engine/ops/child_guard.py', str(os.getpid()), "
        f"sys.executable, '-c', {child_script!r}], stdin=subprocess.DEVNULL, "
        "stdout=subprocess.PIPE); "
        "child.stdout.readline(); print(child.pid, flush=True); signal.pause()"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    await_end(child)


def test_a_child_whose_parent_ended_first_does_not_start() -> None:
    guard = [sys.executable, "engine/ops/child_guard.py", "1"]
    child = [sys.executable, "-c", "print('started')"]
    orphan = subprocess.run([*guard, *child], cwd=ROOT, capture_output=True, text=True)
    assert (orphan.returncode, orphan.stdout) == (1, "")
    assert "has ended" in orphan.stderr


IN_A_DESTRUCTOR = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests
from django.core.management import execute_from_command_line

class Met:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

import django
django.setup()
from engine.management.commands import fsck

def perform(self, options):
    met = Met()
    del met
    print("went on", flush=True)

fsck.Command.perform = perform
execute_from_command_line(["manage.py", "fsck"])
"""


def test_an_interrupt_that_a_destructor_met_is_not_forgotten(tmp_path: Path) -> None:
    done = ran(tmp_path, "-c", IN_A_DESTRUCTOR, DJANGO_SETTINGS_MODULE="config.settings")
    assert "went on" in done.stdout, done.stderr  # Python dropped it there
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
