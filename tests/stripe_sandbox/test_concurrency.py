"""Many requests at the same moment: one key is one execution, one intent is one charge."""

from collections.abc import Iterator

import pytest

from tests.stripe_sandbox.conftest import RESTLESS_S, Sandbox, serving
from tests.stripe_sandbox.door import INTENTS, Door, created, payment

CROWD = 50


@pytest.fixture(scope="module")
def restless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Its threads interrupt each other at every chance, so what is not guarded comes apart."""
    with serving(tmp_path_factory.mktemp("restless"), switch_s=RESTLESS_S) as running:
        yield running


@pytest.fixture
def door(restless: Sandbox) -> Door:
    return restless.door()


@pytest.mark.parametrize(("card", "status"), [("visa", 200), ("chargeDeclined", 402)])
def test_fifty_at_once_are_one_attempt(door: Door, card: str, status: int) -> None:
    params = payment(payment_method=f"pm_card_{card}")
    answers = door.volley([(INTENTS, params, "k-crowd")] * CROWD)
    good = [answer for answer in answers if answer.status == status]
    others = [answer for answer in answers if answer.status != status]
    told = {(each.status, each.body["error"]["code"], each.replayed) for each in others}
    assert told <= {(409, "idempotency_key_in_use", False)}
    assert all(answer.body == good[0].body for answer in good)
    assert len([answer for answer in good if not answer.replayed]) == 1
    assert len(door.ids()) == 1
    later = door.post(INTENTS, params, key="k-crowd")
    assert (later.status, later.replayed, later.body) == (status, True, good[0].body)


def test_fifty_confirmations_under_fifty_keys_charge_once(door: Door) -> None:
    intent = created(door, payment_method="pm_card_visa")
    path = f"{INTENTS}/{intent['id']}/confirm"
    card = {"payment_method": "pm_card_visa"}
    answers = door.volley([(path, card, f"k-{number}") for number in range(CROWD)])
    good = [answer for answer in answers if answer.status == 200]
    assert len(good) == 1
    codes = {answer.body["error"]["code"] for answer in answers if answer.status != 200}
    # /error-codes: lock_timeout is the 429 of an object that another request holds
    assert codes <= {"payment_intent_unexpected_state", "lock_timeout"}
    assert door.get(f"{INTENTS}/{intent['id']}").body == good[0].body
