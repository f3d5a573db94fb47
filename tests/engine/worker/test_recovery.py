"""Recovery: leases that are renewed, workers that die or hang, runs that are stopped half-way."""

import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError

from engine.clock import now_ms
from engine.errors import FailedForNowError
from engine.models import AdapterCall, Run
from engine.runtime import api
from engine.store import leases, outbox
from engine.work import Answer, Work, failed
from engine.worker import drive, effects, tasks
from engine.worker.lease_renewal import LeaseRenewal
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import EffectWaiting
from pipeline.steps import adapters, vault
from pipeline.steps import extract as extract_step
from reader import ExtractionError, ReaderLostError
from tests.kit.clock import HOUR_MS, Leap, with_backoff
from tests.kit.house import (
    House,
    accounts,
    bodies,
    failing_once,
    payments,
    reason,
    snapshot,
    succeeded,
)
from tests.kit.reading import read_here

DEAD_MS = leases.TTL_MS + 1
DUE_MS = tasks.SWEEP_AFTER_MS + 1
PATIENCE_S = 20
PAY = "stripe.create_payment_intent"


def with_adapter(
    monkeypatch: pytest.MonkeyPatch, tool: str, adapter: Callable[[Work], Answer]
) -> None:
    """Put an adapter in the place of another."""
    monkeypatch.setattr(adapters, "ADAPTERS", {**adapters.ADAPTERS, tool: adapter})


def owed(run: Run) -> int:
    """How many effects the run's row says that it owes."""
    return Run.objects.filter(id=run.id, due_ms__isnull=False).exclude(owed_key="").count()


@pytest.mark.postgres
def test_leases_of_effects_under_way_are_renewed_and_no_others(house: House, leap: Leap) -> None:
    mine, other = house.started(), house.started()
    works = [api.take(str(run.id))[1] for run in (mine, other)]
    assert works[0] is not None
    until_ms = now_ms() + HOUR_MS
    renewal = LeaseRenewal()
    with renewal.renewing(str(mine.id), works[0].holder, until_ms):
        leap(leases.RENEW_EVERY_MS)
        before = Run.objects.get(id=other.id).until_ms
        renewal.renew_all()
        assert Run.objects.get(id=mine.id).until_ms >= now_ms() + leases.TTL_MS - 1_000
        assert Run.objects.get(id=other.id).until_ms == before
    leap(leases.TTL_MS)
    renewal.renew_all()
    assert Run.objects.get(id=mine.id).until_ms <= now_ms()


def test_lease_of_a_worker_that_hangs_is_kept_up_to_the_deadline_and_no_longer(
    house: House, leap: Leap
) -> None:
    run = house.started()
    work = api.take(str(run.id))[1]
    assert work is not None
    assert work.deadline_ms >= now_ms() + HOUR_MS - 60_000
    renewal = LeaseRenewal()
    with renewal.renewing(str(run.id), work.holder, work.deadline_ms):
        leap(work.deadline_ms - now_ms() - 500)
        renewal.renew_all()
        leap(501)
        renewal.renew_all()
        assert tasks.stranded() == []
        leap(leases.TTL_MS - 250)
        assert tasks.stranded() == [str(run.id)]
    tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    assert (run.state, reason(run)) == (life.FAILED, "FSM-014")


def test_a_renewal_that_fails_takes_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[str] = []

    def renew(run_id: str, holder: str) -> bool:
        if holder == "first":
            raise OperationalError("database is locked")
        renewed.append(holder)
        return True

    monkeypatch.setattr(leases, "renew", renew)
    renewal = LeaseRenewal()
    with renewal.renewing("a run", "first", 0), renewal.renewing("another", "second", 0):
        renewal.renew_all()
    assert renewed == ["second"]


@pytest.mark.postgres
def test_effect_that_takes_longer_than_a_lease_keeps_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread itself: the adapter goes on only once its lease was renewed twice."""
    renewed, enough = [0], threading.Event()
    real_renew, real_split = leases.renew, vault.split

    def renew(run_id: str, holder: str) -> bool:
        held = real_renew(run_id, holder)
        renewed[0] += held
        if renewed[0] >= 2:
            enough.set()
        return held

    def slow(work: Work) -> Answer:
        assert enough.wait(PATIENCE_S)
        return real_split(work)

    monkeypatch.setattr(drive, "renewal", LeaseRenewal())
    monkeypatch.setattr(leases, "RENEW_EVERY_MS", 10)
    monkeypatch.setattr(leases, "renew", renew)
    with_adapter(monkeypatch, "vault.split", slow)
    run = house.run()
    assert run.state == life.COMPLETED
    assert succeeded(run) == [(12_000, "eur")]


@pytest.mark.postgres
def test_run_of_a_worker_that_died_waits_for_its_lease_alone(house: House, leap: Leap) -> None:
    assert leases.TTL_MS <= 15_000
    lost, run = house.started(), house.started()  # the message of the first was lost
    assert api.take(str(run.id))[1] is not None
    assert tasks.stranded() == []
    leap(DUE_MS)
    assert tasks.stranded() == [str(lost.id)]
    assert house.drive(lost).state == life.COMPLETED
    assert tasks.stranded() == []
    leap(DEAD_MS - DUE_MS + 1_000)
    assert tasks.stranded() == [str(run.id)]
    tasks.deliver(str(run.id), run.program_hash)
    run.refresh_from_db()
    assert run.state == life.COMPLETED
    assert len(payments(run)) == 1


def test_silent_outside_is_left_alone_for_longer_each_time_and_not_by_all_at_once() -> None:
    keys = [f"{number:02x}" * 32 for number in range(1, 256)]
    for tries in range(drive.TRIES_MAX - 1):
        least_ms = drive.BACKOFF_MS << tries
        waits = {drive.backoff_ms(key, tries) for key in keys}
        assert all(least_ms <= each <= least_ms * 5 // 4 for each in waits)
        assert len(waits) > 50
    assert drive.backoff_ms(keys[0], 3) == drive.backoff_ms(keys[0], 3)


@pytest.mark.parametrize(("code", "again"), [("DOC-007", True), ("DOC-010", False)])
def test_document_is_read_again_where_reading_took_too_long(
    house: House, monkeypatch: pytest.MonkeyPatch, code: str, again: bool
) -> None:
    told: list[bool] = []

    def told_of(work: Work, code: str, text: str, *, retry: bool) -> Answer:
        told.append(retry)
        return failed(work, code, text, retry=retry)

    monkeypatch.setattr(effects, "failed", told_of)
    monkeypatch.setattr(extract_step, "extract", failing_once(print, ExtractionError(code)))
    run = house.run()
    assert (run.state, reason(run), told) == (life.FAILED, code, [again])


def test_machine_that_lets_no_document_be_read_is_named_as_such(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise lost

    lost = ReaderLostError("The reader was killed: look at the machine.")
    monkeypatch.setattr(drive, "BACKOFF_MS", 0)
    monkeypatch.setattr(extract_step, "extract", failing_once(read_here, lost))
    assert house.run().state == life.COMPLETED  # once is no matter
    monkeypatch.setattr(extract_step, "extract", killed)
    run = house.run()
    assert (run.state, snapshot(run).reason) == (
        life.FAILED,
        ("RUN-002", "The reader was killed: look at the machine. Tried 8 times; nothing was done."),
    )
    assert AdapterCall.objects.filter(run=run, tool="invoice.extract").count() == drive.TRIES_MAX


def test_run_that_is_stopped_while_an_effect_is_under_way_takes_no_answer_of_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = extract_step.extract_invoice

    def stopped(work: Work) -> Answer:
        assert api.kill(str(work.run.id), "operator").refusal is None
        return real(work)

    with_adapter(monkeypatch, "invoice.extract", stopped)
    run = house.run()
    assert (run.state, owed(run), payments(run)) == (life.KILLED, 0, [])
    assert bodies(run)[-1]["kind"] == "ignored"
    assert not Run.objects.get(id=run.id).secrets.filter(slot="staging").exists()
    assert Run.objects.get(id=run.id).holder == ""


def waits(work: Work) -> Answer:
    return Answer(event=EffectWaiting(key=work.effect.key))


def fails_for_now(_: Work) -> Answer:
    raise FailedForNowError("STR-001", "The card was declined (processing_error).")


@pytest.mark.parametrize(
    ("tool", "adapter"), [(PAY, fails_for_now), ("vault.split", waits)], ids=["pause", "wait"]
)
def test_run_that_is_stopped_between_attempts_makes_no_further_one(
    house: House,
    monkeypatch: pytest.MonkeyPatch,
    leap: Leap,
    tool: str,
    adapter: Callable[[Work], Answer],
) -> None:
    with_backoff(monkeypatch, 60_000)
    with_adapter(monkeypatch, tool, adapter)
    run = house.started()
    drive.drive(str(run.id))
    assert snapshot(run).state not in life.TERMINAL
    run.refresh_from_db()  # no one can be asked about a split: it is due when it times out
    assert adapter is not waits or run.due_ms == run.deadline_ms
    assert api.kill(str(run.id), "operator").snapshot.state == life.KILLED
    leap(HOUR_MS)
    assert (tasks.stranded(), owed(run)) == ([], 0)
    house.drive(run)
    assert (run.state, run.deadline_ms, payments(run)) == (life.KILLED, None, [])
    assert not any(each.reserved for each in accounts(run).values())


@pytest.mark.postgres
def test_call_whose_record_is_gone_may_have_acted(house: House) -> None:
    run = house.once(House.run)
    key = AdapterCall.objects.filter(run=run, tool=PAY).get().key
    assert outbox.may_have_acted(run.id, key)
    AdapterCall.objects.filter(key=key).update(outcome="NotSentError")
    assert not outbox.may_have_acted(run.id, key)
    AdapterCall.objects.filter(key=key).delete()
    assert outbox.may_have_acted(run.id, key)
