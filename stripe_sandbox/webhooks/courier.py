"""The courier: a thread of its own that sends events to their endpoints, signed, with retries."""

import contextlib
import hashlib
import hmac
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from stripe_sandbox.store import Account, Store
from stripe_sandbox.webhooks.endpoints import target_of

RETRIES = 3
"""After the first attempt, as Stripe retries in a sandbox."""
RETRY_FACTOR = 4
"""Each pause is this many times the one before; Stripe's own schedule takes hours."""
ANSWER_S_MAX = 5.0
"""How long an endpoint may take to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event that is owed to one endpoint; ``due`` is in Unix seconds."""

    row: int
    account: str
    event: str
    owner: str
    endpoint: str
    attempts: int
    due: float


class Courier:
    """Sends what the records owe, one delivery at a time, until it is stopped.

    A delivery that was not recorded as made is made again after a restart: an
    endpoint may read an event twice, and never misses one that was due.
    """

    def __init__(
        self, store: Store, *, first_pause_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._first_pause_s = first_pause_s
        self._clock = clock
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Have the records looked at: there may be a new delivery."""
        self._news.set()

    def stop(self) -> None:
        """End the thread, an attempt under way included, before the records are closed."""
        self._stopped.set()
        self._news.set()
        connection = self._connection
        if connection is not None and isinstance(connection.sock, socket.socket):
            with contextlib.suppress(OSError):  # it has just ended by itself
                connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(2 * ANSWER_S_MAX)

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._news.clear()
            delivery = self._next()
            pause_s = None if delivery is None else delivery.due - self._clock()
            if delivery is None or (pause_s is not None and pause_s > 0):
                self._news.wait(pause_s)
            else:
                self._attempt(delivery)

    def _next(self) -> Delivery | None:
        rows = self._store.rows(
            "SELECT id, account, event, owner, endpoint, attempts, due FROM delivery "
            "ORDER BY due, id LIMIT 1",
            (),
        )
        if not rows:
            return None
        row, account, event, owner, endpoint, attempts, due = map(str, rows[0])
        return Delivery(
            row=int(row),
            account=account,
            event=event,
            owner=owner,
            endpoint=endpoint,
            attempts=int(attempts),
            due=float(due),
        )

    def _attempt(self, delivery: Delivery) -> None:
        account, owner = (
            Account(self._store, delivery.account),
            Account(self._store, delivery.owner),
        )
        event = account.find("event", delivery.event)
        endpoint = owner.find("webhook_endpoint", delivery.endpoint)
        secret = owner.link("webhook_endpoint", delivery.endpoint)
        if event is None or endpoint is None or secret is None:
            self._store.rows("DELETE FROM delivery WHERE id = ?", (delivery.row,))
            return
        payload = json.dumps(event, indent=2).encode()
        accepted = self._post(endpoint["url"], payload, secret)
        if not self._stopped.is_set() or accepted:
            self._record(delivery, account, accepted=accepted)

    def _post(self, url: str, payload: bytes, secret: str) -> bool:
        """Send one signed event; whether the endpoint answered with a 2xx."""
        target = target_of(url)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(payload, secret, int(self._clock())),
            "User-Agent": "Stripe/1.0 (local counterpart)",
        }
        connection = http.client.HTTPConnection(target.host, target.port, timeout=ANSWER_S_MAX)
        self._connection = connection
        try:
            connection.request("POST", target.path, body=payload, headers=headers)
            return 200 <= connection.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            return False
        finally:
            self._connection = None
            connection.close()

    def _record(self, delivery: Delivery, account: Account, *, accepted: bool) -> None:
        with self._store.transaction():
            if accepted:
                event = account.find("event", delivery.event)
                if event is not None:
                    event["pending_webhooks"] -= 1
                    account.replace(event)
            if accepted or delivery.attempts == RETRIES:
                self._store.rows("DELETE FROM delivery WHERE id = ?", (delivery.row,))
                return
            pause_s = self._first_pause_s * RETRY_FACTOR**delivery.attempts
            self._store.rows(
                "UPDATE delivery SET attempts = attempts + 1, due = ? WHERE id = ?",
                (self._clock() + pause_s, delivery.row),
            )


def signature(payload: bytes, secret: str, at_s: int) -> str:
    """The ``Stripe-Signature`` of a payload: HMAC-SHA256 over the time, a full stop and it."""
    signed = f"{at_s}.".encode() + payload
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={digest}"
