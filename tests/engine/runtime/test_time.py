"""Time: the kernel is told when a deadline is over, and decides; nobody else does."""

import pytest

from engine.clock import now_ms
from engine.errors import FailedForNowError
from engine.models import Run
from engine.runtime import api
from engine.work import Answer, Work
from engine.worker import drive, tasks
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import AnswerArrived, EffectWaiting
from pipeline.steps import adapters
from pipeline.steps.charge import gateway
from samples import path
from tests.kit.clock import DAY_MS, HOUR_MS, Leap, with_backoff
from tests.kit.house import House, bodies, failing_once, kinds, refusal, snapshot, succeeded

FOR_NOW = FailedForNowError("STR-001", "The card was declined (processing_error).")


def deliver(run: Run) -> Run:
    """Take a queue message about the run, as a worker does."""
    tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    return run


@pytest.mark.postgres
def test_attempt_waits_its_pause_and_the_sweep_finds_it_when_it_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch, leap: Leap
) -> None:
    with_backoff(monkeypatch, 60_000)
    monkeypatch.setattr(gateway, "_post", failing_once(gateway._post, FOR_NOW))
    run = house.started()
    drive.drive(str(run.id))
    run.refresh_from_db()
    assert run.state == life.IDLE
    assert run.deadline_ms is not None
    assert 60_000 <= run.deadline_ms - now_ms() + 5_000 <= 80_000
    assert (run.owed_key, run.due_ms) == ("", None)
    assert (tasks.stranded(), drive.owes(str(run.id))) == ([], False)
    drive.drive(str(run.id))
    leap(80_000)
    assert tasks.stranded() == [str(run.id)]
    assert deliver(run).state == life.COMPLETED
    assert (Run.objects.get(id=run.id).deadline_ms, tasks.stranded()) == (None, [])
    assert succeeded(run) == [(12_000, "eur")]
    keys = [body["idempotency_key"] for body in bodies(run) if body.get("step") == "charge"]
    assert (len(keys), len({*keys})) == (4, 2)


def waiting(house: House, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose second step waits for an answer from elsewhere."""

    def waits(work: Work) -> Answer:
        return Answer(event=EffectWaiting(key=work.effect.key))

    monkeypatch.setattr(adapters, "ADAPTERS", {**adapters.ADAPTERS, "vault.split": waits})
    return house.run()


def test_awaited_answer_counts_only_where_the_caller_vouches_for_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = waiting(house, monkeypatch)
    answer = AnswerArrived(
        run=str(run.id), program=run.program_hash, key=snapshot(run).awaits, code="EXT-1", text="no"
    )
    forged = api.submit(str(run.id), [answer], actor="attacker")
    assert (refusal(forged), forged.snapshot.state) == ("FSM-018", life.WAITING)
    taken = api.submit(str(run.id), [answer], actor="vault", vouched=True)
    assert (taken.refusal, taken.snapshot.state) == (None, life.FAILED)
    assert [body["actor"] for body in bodies(run)][-1] == "vault"


def test_clock_of_a_suspended_run_stands_still(house: House, leap: Leap) -> None:
    held, paused = house.run(path("over_limit").read_bytes()), house.started()
    api.pause(str(paused.id), "visitor")
    before = [kinds(held), kinds(paused)]
    leap(30 * DAY_MS)
    assert tasks.stranded() == []
    assert [house.drive(held).deadline_ms, house.drive(paused).deadline_ms] == [None, None]
    assert [kinds(held), kinds(paused)] == before
    assert house.resumed(paused).state == life.COMPLETED


def test_deadline_in_the_row_alone_moves_no_run(house: House) -> None:
    """The column says whom to look at; what is over, the sealed snapshot says."""
    run = house.started()
    before, deadline_ms = kinds(run), snapshot(run).deadline_ms
    Run.objects.filter(id=run.id).update(due_ms=now_ms() + 2 * HOUR_MS, deadline_ms=1)
    assert tasks.stranded() == [str(run.id)]
    deliver(run)
    assert (run.state, kinds(run), run.deadline_ms) == (life.ACTIVE, before, deadline_ms)
    assert tasks.stranded() == []
