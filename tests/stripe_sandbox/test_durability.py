"""What was answered stays answered: over a stop, over kill -9, over kill -9 under load."""

import http.client
import itertools
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.stripe_sandbox.conftest import ALPHA, BETA, serving
from tests.stripe_sandbox.door import INTENTS, Answer, Door, created, payment

WORKERS = 8
ANSWERS_BEFORE_THE_END = 40
DAY_SECONDS = 24 * 60 * 60


def _given(key: str) -> dict[str, Any]:
    """The payment that is sent under a key; one in ten is declined."""
    card = "pm_card_chargeDeclined" if key.endswith("1") else "pm_card_visa"
    return payment(metadata={"key": key}, payment_method=card)


def _post_until_dead(door: Door, numbers: Iterator[int], enough: Event) -> dict[str, Answer | None]:
    """Post payments under fresh keys until the server dies; None: no answer came back."""
    sent: dict[str, Answer | None] = {}
    while True:
        number = next(numbers)
        key = f"k-{number}"
        sent[key] = None
        try:
            sent[key] = door.post(INTENTS, _given(key), key=key)
        except (ConnectionError, http.client.HTTPException, TimeoutError):
            return sent
        if number >= ANSWERS_BEFORE_THE_END:
            enough.set()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_an_end_under_load_loses_nothing_and_doubles_nothing(
    tmp_path: Path, end: signal.Signals
) -> None:
    numbers, enough = itertools.count(), Event()
    with serving(tmp_path) as running, ThreadPoolExecutor(WORKERS) as pool:
        door = Door(url=running.child.url, key=ALPHA)  # no shapes: here speed makes overlap
        opened = created(door)
        waits = [pool.submit(_post_until_dead, door, numbers, enough) for _ in range(WORKERS)]
        try:
            assert enough.wait(timeout=60)
        finally:
            running.child.popen.send_signal(end)
        sent = {key: answer for wait in waits for key, answer in wait.result().items()}
    with serving(tmp_path) as again:
        after = again.door(ALPHA)
        for key, answer in sent.items():
            repeat = after.post(INTENTS, _given(key), key=key)
            assert repeat.status == (402 if key.endswith("1") else 200), repeat.raw
            if answer is not None:  # what was acknowledged is the very same payment
                assert (repeat.replayed, repeat.body) == (True, answer.body)
        assert len(after.ids()) == len(sent) + 1 > ANSWERS_BEFORE_THE_END
        changed = after.post(INTENTS, payment(amount=1), key="k-1")
        assert (changed.status, changed.body["error"]["type"]) == (400, "idempotency_error")
        done = after.post(f"{INTENTS}/{opened['id']}/confirm", {"payment_method": "pm_card_visa"})
        assert done.body["status"] == "succeeded"
        assert after.get(f"/v1/charges/{done.body['latest_charge']}").status == 200
        assert again.door(BETA).ids() == []


def test_a_key_lasts_a_day_and_no_longer(tmp_path: Path) -> None:
    # "removed ... after they're at least 24 hours old. We generate a new request if a key is
    # reused after the original is pruned."
    with serving(tmp_path) as running:
        first = running.door(ALPHA).post(INTENTS, payment(), key="k-1")
    with serving(tmp_path, later_s=DAY_SECONDS - 60) as running:
        within = running.door(ALPHA).post(INTENTS, payment(), key="k-1")
        assert (within.replayed, within.body) == (True, first.body)
    with serving(tmp_path, later_s=DAY_SECONDS + 60) as running:
        after = running.door(ALPHA)
        fresh = after.post(INTENTS, payment(amount=5000), key="k-1")
        assert (fresh.status, fresh.replayed, fresh.body["amount"]) == (200, False, 5000)
        assert after.ids() == [fresh.body["id"], first.body["id"]]


def test_a_database_of_the_first_version_keeps_its_balance(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        door = running.door(ALPHA)
        for card in ("pm_card_visa", "pm_card_bypassPending", "pm_card_chargeDeclined"):
            door.post(INTENTS, payment(payment_method=card))
        paid_out = [door.post("/v1/payouts", {"amount": 100, "currency": "usd"}) for _ in range(2)]
        door.post(f"/v1/payouts/{paid_out[0].body['id']}/cancel")
        before = door.get("/v1/balance").body
    with closing(sqlite3.connect(tmp_path / "stripe_sandbox.sqlite3")) as database:
        database.executescript("DROP TABLE movement; DROP TABLE delivery; PRAGMA user_version = 1")
    with serving(tmp_path) as again:
        assert again.door(ALPHA).get("/v1/balance").body == before
        assert before["available"][0]["amount"] == 999
