"""What was answered stays answered: over a stop, over kill -9, over kill -9 under load."""

import http.client
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.stripe_sandbox.conftest import ALPHA, BETA, serving
from tests.stripe_sandbox.door import INTENTS, Answer, Door, created, paid, payment
from tests.stripe_sandbox.server import Server

WORKERS = 8
ANSWERS_BEFORE_THE_KILL = 40
DAY_SECONDS = 24 * 60 * 60


@pytest.mark.parametrize("end", [Server.terminate, Server.kill])
def test_records_and_keys_survive(tmp_path: Path, end: Callable[[Server], int]) -> None:
    declined = payment(payment_method="pm_card_chargeDeclined")
    with serving(tmp_path) as running:
        before = running.door(ALPHA)
        first = before.post(INTENTS, payment(metadata={"run": "r-1"}), key="k-1")
        failed = before.post(INTENTS, declined, key="k-2")
        opened, ids = created(before), before.ids()
        end(running.server)
    with serving(tmp_path) as again:
        assert again.door(BETA).ids() == []
        records_and_keys_are_there(again.door(ALPHA), first, failed, opened, ids)


def records_and_keys_are_there(
    after: Door, first: Answer, failed: Answer, opened: Any, ids: list[str]
) -> None:
    declined = payment(payment_method="pm_card_chargeDeclined")
    assert after.ids() == ids
    assert after.get(f"{INTENTS}/{first.body['id']}").body == first.body
    assert after.get(f"/v1/charges/{first.body['latest_charge']}").status == 200
    for params, key, answer in (
        (payment(metadata={"run": "r-1"}), "k-1", first),
        (declined, "k-2", failed),
    ):
        again = after.post(INTENTS, params, key=key)
        assert (again.status, again.replayed, again.body) == (answer.status, True, answer.body)
    changed = after.post(INTENTS, payment(amount=1), key="k-1")
    assert (changed.status, changed.body["error"]["type"]) == (400, "idempotency_error")
    done = after.post(f"{INTENTS}/{opened['id']}/confirm", {"payment_method": "pm_card_visa"})
    assert done.body["status"] == "succeeded"
    fresh = paid(after)
    assert fresh["id"] not in ids
    assert after.ids() == [fresh["id"], *ids]


def _post_until_dead(door: Door, numbers: Iterator[int], enough: Event) -> dict[str, Answer | None]:
    """Post payments under fresh keys until the server dies; None: no answer came back."""
    sent: dict[str, Answer | None] = {}
    while True:
        number = next(numbers)
        key = f"k-{number}"
        sent[key] = None
        try:
            sent[key] = door.post(INTENTS, payment(metadata={"key": key}), key=key)
        except (ConnectionError, http.client.HTTPException, TimeoutError):
            return sent
        if number >= ANSWERS_BEFORE_THE_KILL:
            enough.set()


def test_a_kill_under_load_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    numbers, enough = itertools.count(), Event()
    with serving(tmp_path) as running, ThreadPoolExecutor(WORKERS) as pool:
        door = Door(url=running.server.url, key=ALPHA)  # no shapes: here speed makes overlap
        waits = [pool.submit(_post_until_dead, door, numbers, enough) for _ in range(WORKERS)]
        try:
            assert enough.wait(timeout=20)
        finally:
            running.server.kill()
        sent = {key: answer for wait in waits for key, answer in wait.result().items()}
    with serving(tmp_path) as again:
        after = again.door(ALPHA)
        for key, answer in sent.items():
            repeat = after.post(INTENTS, payment(metadata={"key": key}), key=key)
            assert repeat.status == 200, repeat.raw
            if answer is not None:  # what was acknowledged is the very same payment
                assert (repeat.replayed, repeat.body) == (True, answer.body)
        assert len(after.ids()) == len(sent) > ANSWERS_BEFORE_THE_KILL


def test_a_key_lasts_a_day_and_no_longer(tmp_path: Path) -> None:
    # "removed ... after they're at least 24 hours old. We generate a new request if a key is
    # reused after the original is pruned."
    with serving(tmp_path) as running:
        first = running.door(ALPHA).post(INTENTS, payment(), key="k-1")
    with serving(tmp_path, later_seconds=DAY_SECONDS - 60) as running:
        within = running.door(ALPHA).post(INTENTS, payment(), key="k-1")
        assert (within.replayed, within.body) == (True, first.body)
    with serving(tmp_path, later_seconds=DAY_SECONDS + 60) as running:
        after = running.door(ALPHA)
        fresh = after.post(INTENTS, payment(amount=5000), key="k-1")
        assert (fresh.status, fresh.replayed, fresh.body["amount"]) == (200, False, 5000)
        assert after.ids() == [fresh.body["id"], first.body["id"]]
