"""Many requests at the same moment: one key is one execution, one intent is one charge.

The counterpart runs here with threads that interrupt each other at every chance, so that what is
not guarded comes apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.stripe_sandbox.conftest import ACCOUNTS, Sandbox
from tests.stripe_sandbox.door import INTENTS, Answer, Door, Post, created, payment
from tests.stripe_sandbox.server import command, start

CROWD = 50


@pytest.fixture(scope="module")
def restless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("restless")
    line = command(database=folder / "stripe.sqlite3", accounts=ACCOUNTS, restless=True)
    server = start(line, log=folder / "stderr.log")
    yield Sandbox(server=server)
    assert server.terminate() == 0
    assert "Traceback" not in (folder / "stderr.log").read_text()


@pytest.fixture
def door(restless: Sandbox) -> Door:
    """The raw door of an account in which nothing has happened yet."""
    return restless.door(restless.spares.pop())


def _only_conflicts(answers: list[Answer]) -> None:
    """Every answer given is a 409 that names the key as in use."""
    for answer in answers:
        assert answer.status == 409
        assert answer.body["error"]["code"] == "idempotency_key_in_use"
        assert not answer.replayed


def test_fifty_at_once_make_one_payment(door: Door) -> None:
    answers = door.volley([Post(path=INTENTS, params=payment(), key="k-crowd")] * CROWD)
    good = [answer for answer in answers if answer.status == 200]
    _only_conflicts([answer for answer in answers if answer.status != 200])
    assert len({answer.body["id"] for answer in good}) == 1
    assert len([answer for answer in good if not answer.replayed]) == 1
    assert door.ids() == [good[0].body["id"]]
    later = door.post(INTENTS, payment(), key="k-crowd")
    assert (later.status, later.replayed, later.body) == (200, True, good[0].body)


def test_fifty_declines_at_once_are_one_attempt(door: Door) -> None:
    declined = payment(payment_method="pm_card_chargeDeclined")
    answers = door.volley([Post(path=INTENTS, params=declined, key="k-crowd")] * CROWD)
    seen = [answer for answer in answers if answer.status == 402]
    _only_conflicts([answer for answer in answers if answer.status != 402])
    assert len({answer.body["error"]["charge"] for answer in seen}) == 1
    assert len(door.ids()) == 1


def test_fifty_different_requests_under_one_key_execute_one(door: Door) -> None:
    crowd = [payment(amount=1000 + number) for number in range(CROWD)]
    answers = door.volley([Post(path=INTENTS, params=params, key="k-crowd") for params in crowd])
    statuses = Counter(answer.status for answer in answers)
    assert statuses[200] == 1
    assert set(statuses) <= {200, 400, 409}
    assert {a.body["error"]["type"] for a in answers if a.status == 400} <= {"idempotency_error"}
    assert len(door.ids()) == 1


def test_fifty_confirmations_under_fifty_keys_charge_once(door: Door) -> None:
    intent = created(door, payment_method="pm_card_visa")
    path = f"{INTENTS}/{intent['id']}/confirm"
    card = {"payment_method": "pm_card_visa"}
    answers = door.volley(
        [Post(path=path, params=card, key=f"k-{number}") for number in range(CROWD)]
    )
    good = [answer for answer in answers if answer.status == 200]
    assert len(good) == 1
    codes = {answer.body["error"]["code"] for answer in answers if answer.status != 200}
    # /error-codes: lock_timeout is the 429 of an object that another request holds
    assert codes <= {"payment_intent_unexpected_state", "lock_timeout"}
    assert door.get(f"{INTENTS}/{intent['id']}").body == good[0].body


def test_fifty_payments_at_once_are_all_kept(door: Door) -> None:
    answers = door.volley(
        [Post(path=INTENTS, params=payment(), key=f"k-{number}") for number in range(CROWD)]
    )
    assert {answer.status for answer in answers} == {200}
    ids = door.ids()
    assert len(ids) == CROWD
    assert set(ids) == {answer.body["id"] for answer in answers}
