"""The alerts of logs, posted to the operator's receiver: signed, at least once, one at a time."""

import asyncio
import hmac
import logging
import threading
from dataclasses import dataclass, field
from itertools import islice

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
TAKEN = range(200, 300)
RETRY_MS, RETRY_MS_MAX = 5_000, 600_000  # the first wait after a failure; each next one is twice
SIGNATURE = "Nanovm-Signature"  # sha256=HMAC-SHA256(secret, body), in lower-case hex


@dataclass(slots=True)
class Patience:
    """How long this process waits after failures; one thread at a time waits for an answer."""

    busy: threading.Lock = field(default_factory=threading.Lock)
    failures: int = 0
    until_ms: int = 0


_later = Patience()


def tell() -> None:
    """Post what was not told yet, and keep in its log that it was; nothing without a receiver.

    A crash after the post, and two processes at once, tell it twice: its id, log and time are the
    same. A receiver that hangs or refuses delays the next try, and nothing else.
    """
    receiver = settings.NANOVM_ALERT
    if not receiver or now_ms() < _later.until_ms or not _later.busy.acquire(blocking=False):
        return
    try:
        untold = (  # by what the logs seal; their rows only say where to look
            (workspace, name, alert)
            for workspace in ledgers.with_untold()
            for name, alert in agents.read(workspace.id).alerts.items()
            if not alert.told_ms
        )
        for workspace, name, alert in islice(untold, ALERTS_MAX):
            if not _taken(body_of(workspace, name, alert), **receiver):
                _later.until_ms = now_ms() + min(RETRY_MS << _later.failures, RETRY_MS_MAX)
                _later.failures = min(_later.failures + 1, 32)
                return
            _later.failures = 0
            agents.told(workspace.id, name, alert)
    finally:
        _later.busy.release()


def body_of(workspace: Workspace, name: str, alert: Alert) -> bytes:
    """What is posted: canonical JSON."""
    said = {key: value for key, value in alert._asdict().items() if key != "told_ms"}
    return encode({"v": "nanovm-alert/1", "log": workspace.origin, "id": name, **said})


def _taken(body: bytes, *, url: str, secret: str) -> bool:
    """Whether the receiver took it: 2xx in time. No redirect is followed, no proxy asked."""
    import httpx2  # takes 80 ms, and most processes post nothing

    signature = hmac.digest(secret.encode(), body, "sha256").hex()
    headers = {"Content-Type": "application/json", SIGNATURE: f"sha256={signature}"}

    async def status() -> int:
        async with (
            httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            return response.status_code  # its body is not read

    try:
        answer: int | str = asyncio.run(asyncio.wait_for(status(), TIMEOUT_S))
    except (TimeoutError, OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        answer = type(error).__name__
    if answer not in TAKEN:
        log.warning("an alert was not taken: %s", answer)
    return answer in TAKEN
