"""Faults on demand: each strikes once, when it was told to, and leaves what it promises."""

import http.client
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stripe_sandbox.faults import PENDING_MAX
from tests.stripe_sandbox.conftest import ALPHA, Sandbox, serving
from tests.stripe_sandbox.door import INTENTS, Answer, Door, no_check, payment, refusal

PLACE = "/faults"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A counterpart that takes faults, for all tests in which it lives."""
    with serving(tmp_path_factory.mktemp("faults"), faults=True) as running:
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


@pytest.mark.parametrize("when", ["before", "after"])
def test_process_dies_before_or_after_the_deed(tmp_path: Path, when: str) -> None:
    with serving(tmp_path, faults=True) as running:
        door = running.door(ALPHA)
        told(door, f"die_{when}")
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            pay(door)
        assert running.server.process.wait(10) == -9
    with serving(tmp_path, faults=True) as again:
        after = again.door(ALPHA)
        assert len(after.ids()) == (1 if when == "after" else 0)
        answer = pay(after)
        assert (answer.status, answer.replayed) == (200, when == "after")
        assert len(after.ids()) == 1


@pytest.mark.parametrize(("kind", "deeds"), [("hang_up_before", 0), ("hang_up_after", 1)])
def test_connection_ends_before_or_after_the_deed(door: Door, kind: str, deeds: int) -> None:
    told(door, kind)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        pay(door)
    assert len(door.ids()) == deeds
    assert pay(door).replayed is bool(deeds)
    assert len(door.ids()) == 1


@pytest.mark.parametrize(
    ("kind", "status", "deeds", "then"),
    [
        ("error_before", 500, 0, 200),
        ("error_stored", 500, 0, 500),
        ("error_after", 500, 1, 500),
        ("busy", 409, 0, 200),
        ("rate_limit", 429, 0, 200),
    ],
)
def test_refusal_before_instead_of_or_after_the_deed(
    door: Door, kind: str, status: int, deeds: int, then: int
) -> None:
    told(door, kind)
    first = pay(door)
    assert (first.status, refusal(first)[1] == "api_error") == (status, status == 500)
    assert len(door.ids()) == deeds
    again = pay(door)
    assert (again.status, again.replayed) == (then, then == 500)


@pytest.mark.parametrize("kind", ["delay_before", "delay_after"])
def test_slow_execution_holds_its_key(door: Door, kind: str) -> None:
    told(door, kind, delay_ms=1500)
    answers: list[Answer] = []
    slow = threading.Thread(target=lambda: answers.append(pay(door)))
    slow.start()
    while waiting(door):  # until it is at work
        pass
    assert refusal(pay(door))[2] == "idempotency_key_in_use"
    assert pay(door, "another").status == 200
    slow.join(15)
    assert [each.status for each in answers] == [200]
    assert len(door.ids()) == 2


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


def test_nonsense_is_refused_and_as_many_wait_as_may(door: Door) -> None:
    nonsense: list[dict[str, object]] = [
        {},
        {"kind": "none"},
        {"kind": "busy", "count": PENDING_MAX + 1},
        {"kind": "busy", "count": "-1"},
        {"kind": "delay_after", "delay_ms": 60_001},
        {"kind": "delay_after", "delay_ms": "1e3"},
    ]
    assert [door.post(PLACE, each).status for each in nonsense] == [400] * len(nonsense)
    assert waiting(door) == []
    told(door, "busy", count=PENDING_MAX)
    assert waiting(door) == ["busy"] * PENDING_MAX
    assert door.post(PLACE, {"kind": "busy"}).status == 400
    assert door.send("DELETE", PLACE, headers={}).body == {"waiting": []}
