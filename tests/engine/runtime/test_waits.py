"""Runs that wait for a person, and what a person can do about them."""

from collections.abc import Callable

import pytest

from engine.clock import now_ms
from engine.models import Run
from engine.runtime import api, queue
from engine.work import Answer, Work
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from pipeline.reports import decision
from pipeline.steps import adapters
from samples import path
from tests.kit.house import House, accounts, bodies, payments, reason, refusal, succeeded


def over_limit(house: House) -> Run:
    """A run whose payment is held for a person."""
    return house.run(path("over_limit").read_bytes())


def test_held_payment_is_made_after_approval_and_not_before(house: House) -> None:
    run = house.once(over_limit)
    assert (run.state, reason(run)) == (life.APPROVAL, "POL-020")
    house.drive(run)
    assert payments(run) == []
    assert refusal(api.approve(str(run.id), "operator")) == ""
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == [(1_840_000, "eur")]
    resumed = next(body for body in bodies(run) if body["kind"] == "resumed")
    assert resumed["actor"] == "operator"


def test_declined_payment_is_never_made(house: House) -> None:
    run = house.once(over_limit)
    api.decline(str(run.id), "operator")
    api.approve(str(run.id), "operator")
    house.drive(run)
    assert (run.state, reason(run)) == (life.FAILED, "POL-022")
    assert payments(run) == []


def test_paused_run_begins_nothing(house: House) -> None:
    run = house.started()
    api.pause(str(run.id), "visitor")
    house.drive(run)
    assert (run.state, run.step) == (life.PAUSED, "receive")
    assert Run.objects.get(id=run.id).begun_ms is None
    assert house.resumed(run).state == life.COMPLETED


def test_pause_under_an_effect_takes_its_answer_and_goes_on_whole(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pausing(tool: str) -> Callable[[Work], Answer]:
        real = adapters.ADAPTERS[tool]

        def adapter(work: Work) -> Answer:
            api.pause(str(work.run.id), "visitor")
            return real(work)

        return adapter

    slow = {tool: pausing(tool) for tool in adapters.ADAPTERS}
    monkeypatch.setattr(adapters, "ADAPTERS", slow)
    run, seen = house.run(), []
    while run.state == life.PAUSED:
        seen.append(run.step)
        assert api.check(str(run.id)) is None
        house.resumed(run)
    assert seen == ["extract", "vault", "propose", "authorize", "seal"]
    assert (run.state, len(payments(run))) == (life.COMPLETED, 1)


@pytest.mark.postgres
def test_kill_is_refused_while_a_payment_is_under_way(house: House) -> None:
    run = house.owing()
    Run.objects.filter(id=run.id).update(begun_ms=now_ms())
    assert refusal(api.kill(str(run.id), "operator")) == "FSM-009"
    Run.objects.filter(id=run.id).update(begun_ms=None)
    assert api.kill(str(run.id), "operator").snapshot.state == life.KILLED
    assert payments(run) == []
    assert accounts(run)["workspace/EUR"].reserved == 0


def test_run_that_is_stopped_after_its_payment_is_still_told_as_paid(house: House) -> None:
    run = house.once(House.paused, "seal")
    api.kill(str(run.id), "visitor")
    run.refresh_from_db()
    assert (run.state, decision(run)) == (life.KILLED, "paid")
    assert len(succeeded(run)) == 1


def test_paced_run_puts_its_effects_off_and_keeps_no_worker_waiting(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(queue, "wake", lambda _, in_ms=0: woken.append(in_ms))
    run = house.started(pace_ms=3_600_000)
    assert drive.drive(str(run.id))
    run.refresh_from_db()
    assert (run.state, run.step) == (life.ACTIVE, "receive")
    assert not run.adapter_calls.exists()
    assert woken == [0, 3_600_000]
    Run.objects.filter(id=run.id).update(due_ms=1)
    drive.drive(str(run.id))
    run.refresh_from_db()
    assert run.step == "extract"
