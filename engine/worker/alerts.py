"""The alerts of logs, posted to the operator's receiver: signed, at least once, one at a time."""

import asyncio
import hmac
import logging
import threading
from collections.abc import Iterator
from typing import NamedTuple

from django.conf import settings

from engine.clock import now_ms
from engine.models import Workspace
from engine.runtime import agents
from engine.store import ledgers
from nanovm_core.core.canonical import encode
from nanovm_core.ledger.value import Alert

log = logging.getLogger(__name__)

TIMEOUT_S = 3.0  # of one alert, from the connection to the answer's head
ALERTS_MAX = 10  # that are told in one sweep; the first one that is not taken ends it
RETRY_MS, RETRY_MS_MAX = 5_000, 600_000  # the first wait after a failure; each next one is twice
SIGNATURE = "Nanovm-Signature"  # sha256=HMAC-SHA256(secret, body), in lower-case hex


class Receiver(NamedTuple):
    """Where alerts are posted to, and the secret that both sides know."""

    url: str
    secret: str


class _Patience:
    """How long this process waits after failures; one thread at a time waits for an answer."""

    def __init__(self) -> None:
        self.busy = threading.Lock()
        self.failures = self.until_ms = 0

    def note(self, *, taken: bool) -> None:
        self.failures = 0 if taken else self.failures + 1
        wait_ms = min(RETRY_MS << min(self.failures - 1, 32), RETRY_MS_MAX) if not taken else 0
        self.until_ms = now_ms() + wait_ms


_patience = _Patience()


def tell() -> None:
    """Post what was not told yet, and keep in its log that it was; nothing without a receiver.

    A crash after the post, and two processes at once, tell it twice: its id, log and time are the
    same. A receiver that hangs or refuses delays the next try, and nothing else.
    """
    if not settings.NANOVM_ALERT or now_ms() < _patience.until_ms:
        return
    if not _patience.busy.acquire(blocking=False):
        return
    try:
        _tell(Receiver(**settings.NANOVM_ALERT))
    finally:
        _patience.busy.release()


def _tell(receiver: Receiver) -> None:
    for count, (workspace, name, alert) in enumerate(_untold()):
        if count == ALERTS_MAX:
            return
        taken = _post(receiver, body_of(workspace, name, alert))
        _patience.note(taken=taken)
        if not taken:
            return
        agents.told(workspace.id, name, alert)


def _untold() -> Iterator[tuple[Workspace, str, Alert]]:
    """What nobody was told of, as the logs seal it; their rows only say where to look."""
    for workspace in ledgers.with_untold():
        for name, alert in agents.read(workspace.id).alerts.items():
            if not alert.told_ms:
                yield workspace, name, alert


def body_of(workspace: Workspace, name: str, alert: Alert) -> bytes:
    """What is posted: canonical JSON."""
    said = {key: value for key, value in alert._asdict().items() if key != "told_ms"}
    return encode({"v": "nanovm-alert/1", "log": workspace.origin, "id": name, **said})


def _post(receiver: Receiver, body: bytes) -> bool:
    """Whether the receiver took it: 2xx in time. No redirect is followed, no proxy asked."""
    import httpx2  # takes 80 ms, and most processes post nothing

    signature = hmac.digest(receiver.secret.encode(), body, "sha256").hex()
    headers = {"Content-Type": "application/json", SIGNATURE: f"sha256={signature}"}
    try:
        status = asyncio.run(asyncio.wait_for(_status(receiver.url, body, headers), TIMEOUT_S))
    except (TimeoutError, OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        log.warning("an alert was not taken: %s", type(error).__name__)
        return False
    if not 200 <= status < 300:
        log.warning("an alert was not taken: %s", status)
    return 200 <= status < 300


async def _status(url: str, body: bytes, headers: dict[str, str]) -> int:
    from httpx2 import AsyncClient

    async with (
        AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
        client.stream("POST", url, content=body, headers=headers) as response,
    ):
        return response.status_code  # its body is not read
