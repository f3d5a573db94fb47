"""Webhooks: signed ones make a worker look at Stripe's own record, and are never a result."""

import random
from typing import Any

import pytest
from django.conf import settings

from config.webhooks import SIZE_BYTES_MAX
from engine.models import Envelope, Run
from engine.runtime import api
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from pipeline.after_payment import webhooks
from pipeline.models import StripeEvent
from pipeline.steps.charge import gateway
from tests.kit.house import House, crash, payments, snapshot, succeeded
from tests.pipeline.after_payment.events import delivered, driven, happened, listening
from tests.pipeline.after_payment.pages import DEBIT, asked, press, settle


@pytest.fixture(autouse=True)
def _listening(monkeypatch: pytest.MonkeyPatch) -> None:
    listening(monkeypatch)


def due(run: Run) -> int:
    """When the run is to be asked after; 0: now."""
    due_ms = Run.objects.get(id=run.id).due_ms
    assert due_ms is not None
    return due_ms


def counted(**names: int) -> dict[str, int]:
    """All counts: those named, and else none."""
    return dict.fromkeys(webhooks.COUNTS, 0) | names


def test_event_has_a_worker_look_at_once_and_ends_the_wait(house: House) -> None:
    run = asked(house)
    assert due(run) > 0
    press(run, "complete")
    (event,) = happened(run, "payment_intent.succeeded")
    assert delivered(event) == 200
    assert due(run) == 0
    assert (driven(run).state, len(succeeded(run))) == (life.COMPLETED, 1)
    assert webhooks.counts() == counted(accepted=1)


def test_event_is_a_hint_and_no_result(house: House) -> None:
    """What it says is not believed: Stripe's record says that nothing was paid."""
    run = asked(house)
    (event,) = happened(run, "payment_intent.requires_action")
    paid = event["data"]["object"] | {"status": "succeeded", "amount_received": 12_000}
    lie = event | {"type": "payment_intent.succeeded", "data": {"object": paid}}
    assert delivered(lie) == 200
    assert (driven(run).state, "payment" in snapshot(run).slots) == (life.WAITING, False)
    assert not StripeEvent.objects.filter(looked_ms=None).exists()


FORGED: dict[str, dict[str, Any]] = {
    "another secret": {"secret": "whsec_of_somebody"},
    "no signature": {"header": ""},
    "no scheme": {"header": "t=1,v0=00"},
    "nonsense": {"header": "v1"},
    "older than five minutes": {"age_s": 302},
}


@pytest.mark.parametrize("how", FORGED.values(), ids=FORGED)
def test_forged_event_is_refused_and_moves_nothing(house: House, how: dict[str, Any]) -> None:
    run = asked(house)
    press(run, "complete")
    (event,) = happened(run, "payment_intent.succeeded")
    before = due(run)
    assert delivered(event, **how) == 400
    assert (due(run), StripeEvent.objects.count()) == (before, 0)
    assert webhooks.counts() == counted(refused=1)
    assert delivered(event, age_s=270) == 200


def test_unknown_foreign_and_repeated_events_are_counted_and_change_nothing(house: House) -> None:
    run = asked(house)
    (event,) = happened(run, "payment_intent.requires_action")
    before, sealed = due(run), Envelope.objects.count()
    other = event["data"]["object"] | {"metadata": {"run": "nobody"}}
    for strange in (
        *(
            "{",
            "[" * 99_999,
            "[]",
            "{}",
            '{"id": 7}',
            event | {"type": "payout.paid"},
            event | {"id": ""},
        ),
        *(event | {"account": "acct_other"}, event | {"livemode": True}),
        event | {"id": "evt_1", "data": {"object": other}},
        event | {"id": "evt_2", "data": {"object": {"payment_intent": "pi_of_nobody"}}},
    ):
        assert delivered(strange) == 200, strange
    assert (due(run), Envelope.objects.count()) == (before, sealed)
    found = webhooks.counts()
    assert found == counted(unknown=4, foreign=7)
    assert delivered(event) == delivered(event) == delivered(event) == 200
    assert webhooks.counts() == found | {"accepted": 1, "repeated": 2}


def test_endpoint_is_bounded_takes_posts_alone_and_needs_a_secret(
    house: House, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    assert delivered("x" * (SIZE_BYTES_MAX + 1)) == 413
    assert delivered('"' + "x" * (SIZE_BYTES_MAX - 2) + '"') == 200
    assert client.get("/webhooks/stripe/").status_code == 405
    monkeypatch.setattr(settings, "STRIPE_WEBHOOK_SECRET", "")
    assert delivered("{}") == 404
    assert webhooks.counts() == counted(foreign=1)


def storm(house: House, monkeypatch: pytest.MonkeyPatch, seed: int, deliveries: int) -> None:
    """Deliver the events of one payment again and again, in any order, and kill workers between."""
    dice = random.Random(seed)  # noqa: S311 - a test's own order
    run = asked(house, DEBIT if seed % 2 else "pm_card_threeDSecure2Required")
    early = happened(run)
    (settle if seed % 2 else press)(run, "succeeded" if seed % 2 else "complete")
    events = [*early, *happened(run)]
    at = [(api, "answer"), (drive, "_ask_later"), (gateway, "find_outcome"), (gateway, "_checked")]
    for _ in range(deliveries):
        assert delivered(dice.choice(events)) == 200
        with monkeypatch.context() as patch:
            if dice.random() < 0.7:
                patch.setattr(*dice.choice(at), crash)
            try:
                driven(run)
            except KeyboardInterrupt:
                Run.objects.filter(id=run.id).update(until_ms=1)  # its time is over
    house.drive(run)
    Run.objects.filter(id=run.id, due_ms__isnull=False).update(due_ms=0)
    assert (house.drive(run).state, len(payments(run)), len(succeeded(run))) == (
        life.COMPLETED,
        1,
        1,
    )
    moved = [
        e for e in Envelope.objects.filter(run=str(run.id)) if b"AnswerArrived" in bytes(e.bytes)
    ]
    assert len([e for e in moved if e.kind == "result"]) == 1
    counts = webhooks.counts()
    assert counts["accepted"] + counts["repeated"] == deliveries
    assert counts["accepted"] == StripeEvent.objects.count() <= len(events)


def test_a_hundred_deliveries_in_any_order_move_a_run_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    storm(house, monkeypatch, 1, 100)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 40))
def test_many_storms_of_deliveries_move_a_run_once(
    house: House, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    storm(house, monkeypatch, seed, 100)
