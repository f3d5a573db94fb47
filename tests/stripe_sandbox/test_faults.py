"""Faults on demand: who may ask for them, and in what order they strike."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.stripe_sandbox.conftest import ALPHA, Sandbox, serving
from tests.stripe_sandbox.door import INTENTS, Answer, Door, no_check, payment

PLACE = "/faults"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A counterpart that takes faults, for all tests in which it lives."""
    with serving(tmp_path_factory.mktemp("faults"), "--faults") as running:
        yield running


@pytest.fixture
def door(faulty: Sandbox) -> Door:
    return replace(faulty.door(), check=no_check)  # the document has no rate_limit_error


def pay(door: Door, key: str = "k") -> Answer:
    return door.post(INTENTS, payment(), key=key)


def told(door: Door, kind: str, **more: object) -> None:
    assert door.post(PLACE, {"kind": kind, **more}).status == 200


def waiting(door: Door) -> list[str]:
    return list(door.get(PLACE).body["waiting"])


def test_without_being_allowed_nobody_asks_for_a_fault(sandbox: Sandbox) -> None:
    door = sandbox.door(ALPHA)  # of a counterpart that takes none
    assert door.post(PLACE, {"kind": "die_after"}).status == 404
    assert pay(door).status == 200


def test_faults_come_in_order_and_strike_payments_under_a_key_alone(door: Door) -> None:
    told(door, "busy", count=2)
    told(door, "error_before")
    assert waiting(door) == ["busy", "busy", "error_before"]
    assert door.post(INTENTS, payment()).status == 200
    assert len(door.ids()) == 1
    assert [pay(door).status for _ in range(4)] == [409, 409, 500, 200]
    told(door, "busy")
    assert door.send("DELETE", PLACE, headers={}).body == {"waiting": []}
    assert pay(door).status == 200
