"""What was answered stays answered: over a stop, over kill -9, over kill -9 under load."""

from __future__ import annotations

import http.client
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tests.stripe_sandbox.conftest import ACCOUNTS, ALPHA, BETA
from tests.stripe_sandbox.door import INTENTS, Answer, Door, created, no_check, paid, payment
from tests.stripe_sandbox.server import Server, command, start
from tests.stripe_sandbox.shapes import published

WORKERS = 8
ANSWERS_BEFORE_THE_KILL = 40
DAY_SECONDS = 24 * 60 * 60

Starter = Callable[..., Server]


@pytest.fixture
def starter(database: Path, tmp_path: Path) -> Iterator[Starter]:
    """Start the counterpart on one database, as often as wanted; what still runs is stopped."""
    started: list[Server] = []

    def run(later_seconds: int = 0) -> Server:
        line = command(database=database, accounts=ACCOUNTS, later_seconds=later_seconds)
        started.append(start(line, log=tmp_path / "stderr.log"))
        return started[-1]

    yield run
    for server in started:
        server.terminate()


def _door(server: Server, key: str = ALPHA) -> Door:
    shapes = published()
    return Door(url=server.url, key=key, check=shapes.check if shapes else no_check)


@pytest.mark.parametrize("end", [Server.terminate, Server.kill])
def test_records_and_keys_survive(starter: Starter, end: Callable[[Server], int]) -> None:
    server = starter()
    before = _door(server)
    first = before.post(INTENTS, payment(metadata={"run": "r-1"}), key="k-1")
    declined = payment(payment_method="pm_card_chargeDeclined")
    failed = before.post(INTENTS, declined, key="k-2")
    opened = created(before)
    ids = before.ids()
    end(server)

    after = _door(starter())
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
    assert _door(Server(process=server.process, url=after.url), BETA).ids() == []


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


def test_a_kill_under_load_loses_nothing_and_doubles_nothing(starter: Starter) -> None:
    server = starter()
    numbers, enough = itertools.count(), Event()
    door = Door(url=server.url, key=ALPHA)  # shapes are held elsewhere: here speed makes overlap
    with ThreadPoolExecutor(WORKERS) as pool:
        waits = [pool.submit(_post_until_dead, door, numbers, enough) for _ in range(WORKERS)]
        try:
            assert enough.wait(timeout=20)
        finally:
            server.kill()
        sent = {key: answer for wait in waits for key, answer in wait.result().items()}

    after = _door(starter())
    for key, answer in sent.items():
        again = after.post(INTENTS, payment(metadata={"key": key}), key=key)
        assert again.status == 200, again.raw
        if answer is not None:  # what was acknowledged is the very same payment
            assert (again.replayed, again.body) == (True, answer.body)
    assert len(after.ids()) == len(sent) > ANSWERS_BEFORE_THE_KILL


def test_a_key_lasts_a_day_and_no_longer(starter: Starter) -> None:
    # "removed ... after they're at least 24 hours old. We generate a new request if a key is
    # reused after the original is pruned."
    server = starter()
    first = _door(server).post(INTENTS, payment(), key="k-1")
    server.terminate()
    server = starter(later_seconds=DAY_SECONDS - 60)
    within = _door(server).post(INTENTS, payment(), key="k-1")
    assert (within.replayed, within.body) == (True, first.body)
    server.terminate()
    after = _door(starter(later_seconds=DAY_SECONDS + 60))
    fresh = after.post(INTENTS, payment(amount=5000), key="k-1")
    assert (fresh.status, fresh.replayed, fresh.body["amount"]) == (200, False, 5000)
    assert after.ids() == [fresh.body["id"], first.body["id"]]
