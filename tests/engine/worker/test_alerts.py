"""Alerts are posted to the operator's receiver: signed, until it takes them, and no more then."""

import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config.environment import alert_settings
from engine.evidence.fsck.audit import audit
from engine.models import Workspace
from engine.runtime import chains
from engine.store import ledgers
from engine.worker import alerts, tasks
from tests.engine.runtime.test_agents import ledger, ruled
from tests.kit.clock import Leap
from tests.kit.house import House


@contextmanager
def receiver(answers: list[int]) -> Iterator[tuple[str, list[tuple[bytes, str]]]]:
    """A server that answers with these statuses, in order; 0: not at all. What came, with it."""
    came: list[tuple[bytes, str]] = []
    over = threading.Event()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((body, self.headers[alerts.SIGNATURE]))
            status = answers.pop(0)
            if not status:
                over.wait(30)
                return
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alerts", came
    finally:
        over.set()
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("named", [
    {"NANOVM_ALERT_URL": "https://pay.example/alerts"},
    {"NANOVM_ALERT_URL": "https://pay.example/alerts", "NANOVM_ALERT_SECRET": "short"},
    {"NANOVM_ALERT_URL": "file:///etc/passwd", "NANOVM_ALERT_SECRET": "0123456789abcdef"},
    {"NANOVM_ALERT_URL": "https://me@pay.example/", "NANOVM_ALERT_SECRET": "0123456789abcdef"},
])  # fmt: skip
def test_a_receiver_without_a_secret_or_of_another_scheme_is_refused(named: dict[str, str]) -> None:
    with pytest.raises(ImproperlyConfigured):
        alert_settings(named)


def test_an_alert_is_posted_until_it_is_taken_and_then_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch, leap: Leap
) -> None:
    log, secret = house.new().workspace_id, "a-secret-of-the-test"
    ruled(log)
    monkeypatch.setattr(alerts, "_later", alerts.Patience())
    with receiver([500, 302, 0, 204]) as (url, came):
        monkeypatch.setattr(settings, "NANOVM_ALERT", {"url": url, "secret": secret})
        for tries in range(1, 5):
            assert ledger(log).alerts["agent/payer"].told_ms == 0
            tasks.sweep()
            tasks.sweep()  # at once after a failure it is not tried again
            assert len(came) == tries
            leap(100_000)
        tasks.sweep()
    assert (len(came), {*came}) == (4, {came[0]})
    assert ledger(log).alerts["agent/payer"].told_ms > 0
    body, signature = came[0]
    assert signature == f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
    said = json.loads(body)
    assert (said["id"], said["rule"], said["agent"]) == ("agent/payer", "POL-004", "payer")
    assert said["log"] == Workspace.objects.get(id=log).origin
    assert audit().damage == ()


def test_logs_that_a_restore_closed_keep_no_open_one_waiting(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, log = chains.create(), house.new().workspace
    ruled(log.id)
    Workspace.objects.filter(id=closed.id).update(ledger=b'"told_ms":0}', successor=log)
    monkeypatch.setattr(ledgers, "_UNTOLD", ledgers._UNTOLD.replace("100", "1"))
    assert ledgers.with_untold() == [log]
