"""Unknown outcomes, at a real counterpart that dies, hangs up, fails and is slow on demand."""

import http.client
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from django.conf import settings

from engine.errors import NotSentError
from engine.models import AdapterCall, Run
from engine.ops.processes import Child, ready
from engine.runtime import api
from engine.store import outbox
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from pipeline.ops.stripe_counterpart import spawn_stripe_counterpart
from pipeline.steps.charge import gateway
from tests.kit.clock import Leap, stopped, with_backoff
from tests.kit.house import House, accounts, bodies, failing_once, payments, reason, succeeded

PAY = "stripe.create_payment_intent"
ONE = [(12_000, "eur")]
KEYS = [f"sk_test_far_{number:04}" for number in range(100)]


class FarSide:
    """The counterpart, and what it is told. Each test has an account of its own there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys = [*KEYS]
        self.child = self.starts()

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.child.url).netloc

    def tells(self, method: str, path: str, form: dict[str, object], **headers: str) -> int:
        """One request of our own; the status of the answer."""
        place = http.client.HTTPConnection(self.place, timeout=15)
        said = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        try:
            place.request(method, path, urlencode(form), said)
            return place.getresponse().status
        finally:
            place.close()

    def told(self, kind: str, **more: object) -> None:
        """What is to become of the next payment."""
        assert self.tells("POST", "/faults", {"kind": kind, **more}) == 200

    def starts(self, port: str = "0") -> Child:
        """Start it, again where it ended, on the same records."""
        options = [word for key in KEYS for word in ("--key", f"{key}=acct_{key[-4:]}")]
        child = spawn_stripe_counterpart(self.folder, *options, "--faults", "--port", port)
        self.child = ready(child)
        return self.child

    def ends(self) -> str:
        """Kill it; the port at which it was."""
        self.child.popen.kill()
        self.child.popen.wait()
        return self.place.partition(":")[2]


@pytest.fixture(autouse=True)
def leap(monkeypatch: pytest.MonkeyPatch) -> Leap:
    """The time of runs stands still, so that no try comes due by itself."""
    return stopped(monkeypatch)


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarSide]:
    """A counterpart of the module's own."""
    made = FarSide(tmp_path_factory.mktemp("far"))
    yield made
    made.ends()


@pytest.fixture
def far(house: House, side: FarSide, monkeypatch: pytest.MonkeyPatch) -> FarSide:
    """The counterpart, which nobody has told anything; it lives, whatever a test did to it."""
    if side.child.popen.poll() is not None:
        side.starts()
    assert side.tells("DELETE", "/faults", {}) == 200
    monkeypatch.setitem(settings.STRIPE, "api_base", side.child.url)
    monkeypatch.setitem(settings.STRIPE, "key", side.keys.pop())
    return side


def keys(run: Run) -> set[str]:
    """The idempotency keys under which this run's payment was intended."""
    sealed = [body for body in bodies(run) if body.get("tool") == PAY]
    return {body["idempotency_key"] for body in sealed if body["kind"] == "intent"}


def paid_once(house: House, run: Run) -> bool:
    """Whether the run completes with one payment under one key."""
    assert house.drive(run).state == life.COMPLETED
    return (succeeded(run), len(payments(run)), len(keys(run))) == (ONE, 1, 1)


def tried(run: Run) -> list[str]:
    """What came of each call to the far side."""
    calls = AdapterCall.objects.filter(run=run, tool=PAY).order_by("number")
    return [*calls.values_list("outcome", flat=True)]


@pytest.mark.parametrize(
    ("kind", "outcomes"),
    [
        ("hang_up_before", ["TransientError", "EffectDone"]),
        ("hang_up_after", ["TransientError", "EffectDone"]),
        ("error_before", ["TransientError", "EffectDone"]),
        ("error_after", ["EffectDone"]),
        ("busy", ["TransientError", "EffectDone"]),
        ("rate_limit", ["NotSentError", "EffectDone"]),
    ],
)
def test_one_fault_ends_with_one_payment_under_one_key(
    house: House, far: FarSide, kind: str, outcomes: list[str]
) -> None:
    far.told(kind)
    run = house.run()
    assert paid_once(house, run)
    assert tried(run) == outcomes
    assert accounts(run)["workspace/EUR"].spent == 12_000


def test_500_after_which_the_list_is_lost_may_have_been_a_payment(
    house: House, far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.told("error_after")
    lost = NotSentError("STR-007", "Stripe's list could not be read; trying again.")
    monkeypatch.setattr(gateway, "_find", failing_once(gateway._find, lost))
    run = house.run()
    assert tried(run) == ["TransientError", "EffectDone"]
    assert paid_once(house, run)


@pytest.mark.parametrize("when", ["before", "after"])
def test_payment_that_is_made_while_nobody_waits_for_it_is_the_only_one(
    house: House, far: FarSide, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    run = house.started()
    far.told(f"delay_{when}", delay_ms=1_500)
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "TIMEOUT_S", 0.5)  # which is over: this request gets no answer
        drive.drive(str(run.id))
    assert tried(run) == ["TransientError"]
    while not payments(run):
        time.sleep(0.05)  # the far side answers no sooner for being asked
    assert paid_once(house, run)


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_far_side_that_dies_is_asked_again_once_it_is_back(
    house: House, far: FarSide, leap: Leap, when: str, made: int
) -> None:
    run = house.started()
    far.told(f"die_{when}")
    assert drive.drive(str(run.id))
    assert far.child.popen.wait(10) == -signal.SIGKILL
    port = far.ends()
    assert tried(run) == ["TransientError"]
    leap(drive.BACKOFF_MS * 2)
    drive.drive(str(run.id))
    assert tried(run) == ["TransientError", "NotSentError"]
    far.starts(port)
    assert len(payments(run)) == made
    assert paid_once(house, run)


def test_stored_500_without_a_deed_asks_a_person_and_is_never_paid_under_a_new_key(
    house: House, far: FarSide
) -> None:
    far.told("error_stored")
    run = house.run()
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-004")
    assert tried(run) == ["TransientError", "EffectUnknown"]
    api.approve(str(run.id), "operator")
    assert house.drive(run).state == life.APPROVAL
    assert (payments(run), len(keys(run))) == ([], 1)
    ended = api.decline(str(run.id), "operator").snapshot
    assert (ended.state, ended.reason and ended.reason[0]) == (life.FAILED, "POL-023")
    assert accounts(run)["workspace/EUR"].reserved == 12_000


def test_busy_key_asks_a_person_in_the_end_who_may_have_it_tried_again(
    house: House, far: FarSide
) -> None:
    far.told("busy", count=drive.TRIES_MAX)
    run = house.run()
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-004")
    assert tried(run) == ["TransientError"] * drive.TRIES_MAX
    assert payments(run) == []
    api.approve(str(run.id), "operator")
    assert house.drive(run).state == life.COMPLETED
    assert (succeeded(run), len(keys(run))) == (ONE, 1)


def test_far_side_out_of_reach_fails_the_attempts_that_the_program_has(
    house: House, far: FarSide
) -> None:
    """No connection was ever made: that is known, so each attempt has a key of its own."""
    run = house.owing()
    port = far.ends()
    house.drive(run)
    assert (run.state, reason(run)) == (life.FAILED, "STR-007")
    assert tried(run)[: drive.TRIES_MAX - 1] == ["NotSentError"] * (drive.TRIES_MAX - 1)
    assert (len(tried(run)), len(keys(run))) == (3 * drive.TRIES_MAX, 3)
    assert accounts(run)["workspace/EUR"].reserved == 0
    far.starts(port)
    assert payments(run) == []


def test_far_side_out_of_reach_after_a_try_that_may_have_paid_asks_a_person(
    house: House, far: FarSide
) -> None:
    run = house.started()
    far.told("hang_up_after")
    drive.drive(str(run.id))
    port = far.ends()
    house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-007")
    assert tried(run)[0] == "TransientError"
    far.starts(port)
    api.approve(str(run.id), "operator")
    assert paid_once(house, run)


def test_another_attempt_never_pays_what_an_earlier_one_did(
    house: House, far: FarSide, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database writer hides that the first attempt may have paid; the far side still knows.

    The writer changes the time of the run's creation as well, which no envelope seals.
    """
    monkeypatch.setattr(outbox, "may_have_acted", lambda *_: False)
    monkeypatch.setattr(drive, "TRIES_MAX", 2)
    with_backoff(monkeypatch, 60_000)
    run = house.started()
    far.told("hang_up_after")
    drive.drive(str(run.id))
    port = far.ends()
    leap(1_000)
    drive.drive(str(run.id))
    run.refresh_from_db()
    assert run.state == life.IDLE
    far.starts(port)
    Run.objects.filter(id=run.id).update(created_ms=0)
    house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-006")
    assert (succeeded(run), len(payments(run))) == (ONE, 1)
    api.approve(str(run.id), "operator")
    assert (house.drive(run).state, reason(run)) == (life.APPROVAL, "STR-006")
    assert len(payments(run)) == 1


def test_payment_is_found_behind_a_hundred_others(
    house: House, far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.started()
    far.told("hang_up_after")
    drive.drive(str(run.id))
    other = {"amount": 500, "currency": "eur", "payment_method_types[]": "card"}
    key = {"Authorization": f"Bearer {settings.STRIPE['key']}"}
    for _ in range(100):
        assert far.tells("POST", "/v1/payment_intents", other, **key) == 200
    monkeypatch.setattr(gateway, "_post", None)  # a second POST would end the run
    assert house.drive(run).state == life.COMPLETED
    assert len(payments(run)) == 1


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "mark deleted"])
@pytest.mark.parametrize("paid", [True, False], ids=["paid", "not paid"])
def test_key_of_yesterday_is_looked_for_and_never_sent(
    house: House, far: FarSide, leap: Leap, paid: bool, marked: bool
) -> None:
    """Also where a database writer has deleted every record of the try."""
    run = house.started()
    far.told("hang_up_after" if paid else "hang_up_before")
    drive.drive(str(run.id))
    leap(gateway.KEY_LIFE_MS)
    house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "FSM-014")
    if not marked:
        Run.objects.filter(id=run.id).update(begun_ms=None)
        AdapterCall.objects.filter(run=run).delete()
    api.approve(str(run.id), "operator")
    house.drive(run)
    expected = (life.COMPLETED, "") if paid else (life.APPROVAL, "STR-004")
    assert (run.state, reason(run)) == expected
    assert len(payments(run)) == (1 if paid else 0)
