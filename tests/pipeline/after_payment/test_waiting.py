"""Payments that wait for the card's owner or a bank: they end by asking, once, or in time."""

from collections.abc import Callable

import pytest

from engine.clock import now_ms
from engine.errors import ErasureRefusedError, TransientError
from engine.models import AdapterCall, Run
from engine.privacy import erasure
from engine.runtime import api
from engine.worker import drive, tasks
from nanovm_core.core import lifecycle as life
from pipeline.steps.charge import gateway
from tests.kit.clock import DAY_MS, Leap, stopped
from tests.kit.house import (
    House,
    accounts,
    bodies,
    failing_once,
    payments,
    reason,
    refusal,
    succeeded,
)
from tests.pipeline.after_payment.pages import DEBIT, THREE_D_SECURE, asked, far, press, settle


def looked(run: Run) -> Run:
    """The run after a worker asked what became of its payment."""
    Run.objects.filter(id=run.id, due_ms__isnull=False).update(due_ms=0)
    drive.drive(str(run.id))
    run.refresh_from_db()
    return run


ENDS: dict[str, tuple[str, Callable[[Run, str], None], str, str, str]] = {
    "authenticated": (THREE_D_SECURE, press, "complete", life.COMPLETED, ""),
    "not authenticated": (THREE_D_SECURE, press, "fail", life.FAILED, "STR-002"),
    "debited": (DEBIT, settle, "succeeded", life.COMPLETED, ""),
    "returned": (DEBIT, settle, "failed", life.FAILED, "STR-001"),
}


@pytest.mark.parametrize(("method", "act", "outcome", "state", "code"), ENDS.values(), ids=ENDS)
def test_payment_that_is_under_way_waits_and_ends_as_stripe_says(
    house: House, method: str, act: Callable[[Run, str], None], outcome: str, state: str, code: str
) -> None:
    run = asked(house, method)
    assert (run.state, run.step, succeeded(run)) == (life.WAITING, "charge", [])
    assert looked(run).state == life.WAITING
    length = run.length
    act(run, outcome)
    assert (looked(run).state, reason(run)) == (state, code)
    made = [(12_000, "usd")] if state == life.COMPLETED else []
    assert (succeeded(run), len(payments(run))) == (made, 1)
    assert bodies(run)[length]["state"]["event"] == "AnswerArrived"
    calls = AdapterCall.objects.filter(run=run, tool="stripe.create_payment_intent")
    assert [each.outcome for each in calls] == ["EffectDone" if made else "EffectFailed"]
    budget = accounts(run)["workspace/USD"]
    assert (budget.reserved, budget.spent) == (0, 12_000 if made else 0)


def test_far_side_is_asked_at_growing_intervals_that_a_restart_keeps(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    leap = stopped(monkeypatch)
    run, pauses = asked(house), []
    for _ in range(12):
        due_ms = Run.objects.get(id=run.id).due_ms
        assert tasks.stranded() == []
        assert due_ms is not None
        pauses.append(due_ms - now_ms())
        leap(max(pauses[-1], tasks.SWEEP_AFTER_MS) + 1)
        assert tasks.stranded() == [str(run.id)]
        tasks.deliver(str(run.id), run.program_hash)
    assert pauses[:3] == [drive.ASK_MS, 2 * drive.ASK_MS, 4 * drive.ASK_MS]
    assert (pauses, pauses[-1]) == (sorted(pauses), drive.ASK_MS_MAX)
    press(run, "complete")
    leap(drive.ASK_MS_MAX)
    tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    assert (run.state, len(succeeded(run))) == (life.COMPLETED, 1)


@pytest.mark.parametrize("method", [THREE_D_SECURE, DEBIT])
def test_payment_that_nobody_completes_is_canceled_at_the_time_out(
    house: House, leap: Leap, method: str
) -> None:
    run = asked(house, method)
    leap(DAY_MS)
    assert tasks.stranded() == [str(run.id)]
    tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    assert (run.state, reason(run), far(run).status) == (life.FAILED, "STR-010", "canceled")
    assert accounts(run)["workspace/USD"].reserved == 0


def test_payment_that_was_completed_at_the_last_moment_counts(house: House, leap: Leap) -> None:
    run = asked(house)
    leap(DAY_MS)
    press(run, "complete")
    tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    assert (run.state, len(succeeded(run))) == (life.COMPLETED, 1)


def test_what_is_open_at_the_time_out_is_left_to_a_person(
    house: House, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = asked(house, DEBIT)
    leap(DAY_MS)
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "_cancel", lambda _: None)  # Stripe does not cancel every debit
        tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    assert (run.state, reason(run)) == (life.APPROVAL, "FSM-014")
    settle(run, "succeeded")
    api.approve(str(run.id), "operator")
    assert house.drive(run).state == life.COMPLETED
    assert len(payments(run)) == 1


def test_far_side_that_does_not_answer_is_asked_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = asked(house)
    press(run, "complete")
    away = failing_once(gateway._find, TransientError("STR-004", "away"))
    monkeypatch.setattr(gateway, "_find", away)
    assert looked(run).state == life.WAITING
    assert looked(run).state == life.COMPLETED


def test_record_that_is_not_the_authorized_payment_ends_no_wait(
    house: House, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = asked(house)
    press(run, "complete")
    real = gateway._find
    monkeypatch.setattr(gateway, "_find", lambda charge: (real(charge) or {}) | {"amount": 1})
    assert looked(run).state == life.WAITING
    leap(DAY_MS)
    assert (looked(run).state, reason(run)) == (life.APPROVAL, "FSM-014")


def test_paused_run_that_waits_asks_nobody_and_goes_on_waiting(house: House) -> None:
    run = asked(house)
    api.pause(str(run.id), "visitor")
    press(run, "complete")
    assert (looked(run).state, tasks.stranded()) == (life.PAUSED, [])
    api.resume(str(run.id), "visitor")
    assert api.check(str(run.id)) is None
    assert (looked(run).state, len(payments(run))) == (life.COMPLETED, 1)


def test_waiting_payment_is_neither_stopped_nor_erased(house: House) -> None:
    run = asked(house)
    assert refusal(api.kill(str(run.id), "visitor")) == "FSM-009"
    with pytest.raises(ErasureRefusedError, match="stop it first"):
        erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    press(run, "complete")
    assert looked(run).state == life.COMPLETED
    assert erasure.erase_run(str(run.id), "art17-1-a", "visitor").state == "done"
