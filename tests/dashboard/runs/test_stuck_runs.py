"""Runs that stand: each is listed with its reason, in words, and with the safe way on."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import EffectUnknown
from pipeline.clock import now_ms
from pipeline.errors import NotSentError
from pipeline.models import Budget, Lease, Outbox, Run
from pipeline.queries import stuck_runs
from pipeline.queries.runs import RunHead
from pipeline.runtime import api
from pipeline.steps.charge import gateway
from pipeline.store import leases
from pipeline.worker import drive
from tests.dashboard.visitor import Visitor, by_code, words

LONG_AGO_MS = stuck_runs.STUCK_MS + 1


def listed(visitor: Visitor) -> str:
    """What the list of runs says of those that stand."""
    page = visitor.read("/runs/")
    return words(page.partition('id="stalled"')[2].partition("</section>")[0])


def abandoned(visitor: Visitor) -> RunHead:
    """A run whose message was lost and that no sweep has found."""
    run = visitor.make(hold=True)
    api.start(run.id, "visitor")
    Outbox.objects.filter(run_id=run.id).update(intent_ms=now_ms() - LONG_AGO_MS)
    return by_code(run.code)


def test_runs_that_go_on_or_have_ended_are_not_listed(visitor: Visitor) -> None:
    visitor.make()
    fresh = visitor.make(hold=True)
    assert listed(visitor) == ""
    api.start(fresh.id, "visitor")
    assert listed(visitor) == ""
    api.pause(fresh.id, "visitor")
    assert listed(visitor) == ""
    assert 'id="stall"' not in visitor.read(f"/runs/{fresh.code}/")


def test_held_payment_is_listed_with_its_rule(visitor: Visitor) -> None:
    run = visitor.make("over_limit")
    said = listed(visitor)
    assert run.code in said
    assert "POL-020" in said
    assert "Approve payment" in said
    assert 'id="stalled"' not in visitor.read(f"/runs/?q={run.code}")


def test_run_without_money_is_listed_with_the_command_that_helps(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    row = Run.objects.get(id=run.id)
    owner = str(row.workspace_id)
    Budget.objects.create(workspace=row.workspace, owner=owner, account="workspace/EUR", limit=1)
    api.start(run.id, "visitor")
    assert visitor.driven(run.code).state == life.EXHAUSTED
    said = listed(visitor)
    assert "BUD-001" in said
    assert "Try again" in said


def test_unknown_outcome_says_that_asking_again_cannot_pay_twice(visitor: Visitor) -> None:
    run = visitor.make(hold=True, pace="step")
    api.start(run.id, "visitor")
    while visitor.driven(run.code).step != "charge":
        api.step(run.id, "visitor")
    api.resume(run.id, "visitor")
    work = api.take(run.id)[1]
    assert work is not None
    unknown = EffectUnknown(key=work.effect.key, code="STR-004", text="Who knows?")
    api.answer(work, unknown, (), "EffectUnknown")
    said = listed(visitor)
    assert "STR-004" in said
    assert "cannot pay twice" in said
    page = visitor.read(f"/runs/{run.code}/")
    assert "Ask again, same key" in page
    assert "Approve payment" not in page
    visitor.command(by_code(run.code), "approve")
    assert visitor.driven(run.code).state == life.COMPLETED


def test_stuck_run_is_listed_and_woken_by_its_button(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    run = abandoned(visitor)
    monkeypatch.setattr("pipeline.runtime.queue.wake", woken.append)
    assert "no worker has taken it up" in listed(visitor)
    page = visitor.read(f"/runs/{run.code}/")
    assert f'formaction="/runs/{run.code}/wake/"' in page
    assert visitor.command(run, "wake").status_code == 303
    assert (woken, by_code(run.code).length) == ([run.id], run.length)
    monkeypatch.undo()
    assert visitor.driven(run.code).state == life.COMPLETED
    assert listed(visitor) == ""


def test_run_that_a_worker_holds_is_not_stuck(visitor: Visitor) -> None:
    run = abandoned(visitor)
    Lease.objects.update_or_create(
        run_id=run.id, defaults={"holder": "a worker", "until_ms": now_ms() + leases.TTL_MS}
    )
    assert listed(visitor) == ""
    assert stuck_runs.of_run(run) is None
    Lease.objects.filter(run_id=run.id).update(until_ms=now_ms() - 1)
    assert run.code in listed(visitor)


def test_lost_outbox_row_and_passed_deadline_are_seen(visitor: Visitor) -> None:
    lost, late = abandoned(visitor), abandoned(visitor)
    Outbox.objects.filter(run_id=lost.id).delete()
    Run.objects.filter(id=late.id).update(deadline_ms=now_ms() - LONG_AGO_MS)
    assert stuck_runs.of_run(lost) == stuck_runs.STUCK
    assert stuck_runs.of_run(late) == stuck_runs.OVERDUE
    visitor.command(lost, "wake")
    assert Outbox.objects.filter(run_id=lost.id, done_ms=None).count() == 1


def test_silent_far_side_is_told_with_the_time_of_the_next_try(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object, **__: object) -> None:
        raise NotSentError("STR-007", "Stripe could not be reached; trying again.")

    monkeypatch.setattr(gateway, "pay", silent)
    monkeypatch.setattr(drive, "BACKOFF_MS", 3_600_000)
    run = visitor.make(hold=True)
    api.start(run.id, "visitor")
    drive.drive(run.id)
    assert "tries so far: 1; it is asked again" in listed(visitor)
    assert "UTC" in listed(visitor)


def test_damaged_run_is_listed_with_its_record_and_no_command(visitor: Visitor) -> None:
    run = visitor.make()
    Run.objects.filter(id=run.id).update(length=run.length + 1)
    api.check(run.id)
    said = listed(visitor)
    assert run.code in said
    assert "damaged" in said
    assert "Look at its record" in said


def test_nobody_sees_or_wakes_the_runs_of_another(visitor: Visitor) -> None:
    run, stranger = abandoned(visitor), Visitor()
    stranger.make()
    assert listed(stranger) == ""
    assert stranger.command(run, "wake").status_code == 404
