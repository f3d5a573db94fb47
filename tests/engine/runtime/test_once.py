"""An effect happens once: after crashes, redeliveries, dead leases and late warrants."""

import pytest
from django.db import OperationalError

from engine.clock import now_ms
from engine.models import AdapterCall, Envelope, Run
from engine.runtime import api
from engine.store import leases
from engine.work import Answer, Work, done
from engine.worker import drive, effects, tasks
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import EffectDone
from nanovm_core.core.messages import Reservation
from pipeline.steps import adapters
from pipeline.steps.charge import gateway
from tests.kit.house import (
    House,
    bodies,
    crash,
    failing_once,
    payments,
    reason,
    refusal,
    snapshot,
    sql,
    succeeded,
)

PAY = "stripe.create_payment_intent"
ONE = [(12_000, "eur")]
NO_MARK = "UPDATE pipeline_run SET begun_ms = NULL"
NO_CALL = "DELETE FROM pipeline_adaptercall"


def crash_after_payment(house: House, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose worker died between Stripe's answer and the commit of it."""
    run = house.owing()
    with monkeypatch.context() as patch:
        patch.setattr(api, "answer", crash)
        with pytest.raises(KeyboardInterrupt):
            drive.drive(str(run.id))
    assert succeeded(run) == ONE
    assert Run.objects.get(id=run.id).begun_ms is not None
    return run


def test_driving_and_delivering_again_pays_nothing_more(house: House) -> None:
    run = house.once(House.run)
    before = Envelope.objects.filter(run=str(run.id)).count()
    for _ in range(3):
        house.drive(run)
        tasks.deliver(str(run.id), run.program_hash)
        api.start(str(run.id), "visitor")
        api.resume(str(run.id), "visitor")
    assert succeeded(run) == ONE
    assert len(payments(run)) == 1
    ignored = [body["state"]["event"] for body in bodies(run) if body["kind"] == "ignored"]
    assert ignored == ["DeliveryReceived", "RunStarted", "ResumeRequested"]
    assert Envelope.objects.filter(run=str(run.id)).count() == before + 3
    assert {each.kind: each.count for each in run.absorbed.all()} == dict.fromkeys(ignored, 2)


@pytest.mark.parametrize("lost", [None, NO_MARK, NO_CALL], ids=["nothing", "mark", "call"])
def test_either_record_of_a_begun_charge_has_it_looked_for_and_not_paid_again(
    house: House, monkeypatch: pytest.MonkeyPatch, lost: str | None
) -> None:
    run = crash_after_payment(house, monkeypatch)
    assert AdapterCall.objects.filter(run=run, tool=PAY).count() == 1
    if lost:
        sql((lost, []))
    monkeypatch.setattr(gateway, "_post", lambda _: pytest.fail("a second POST"))
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == ONE


def test_crash_and_lost_list_pays_once_by_the_same_key(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = crash_after_payment(house, monkeypatch)
    monkeypatch.setattr(gateway, "_find", lambda _: None)
    house.drive(run)
    assert run.state == life.COMPLETED
    assert succeeded(run) == ONE
    assert len(payments(run)) == 1


def test_warrant_that_ran_out_before_the_call_waits_for_a_person_and_keeps_its_key(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.owing()
    late = [3_600_000]
    monkeypatch.setattr(effects, "now_ms", lambda: now_ms() + (late.pop() if late else 0))
    house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "CAP-021")
    assert succeeded(run) == []
    api.approve(str(run.id), "visitor")
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == ONE
    keys = {b["idempotency_key"] for b in bodies(run) if b.get("tool") == PAY}
    assert len(keys) == 1


def test_lost_mark_of_a_begun_charge_never_pays_twice(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database writer hides that the charge was begun; its warrant has run out meanwhile."""
    run = crash_after_payment(house, monkeypatch)
    Run.objects.update(holder="", until_ms=0)
    sql((NO_MARK, []), (NO_CALL, []))
    late = [3_600_000]
    monkeypatch.setattr(effects, "now_ms", lambda: now_ms() + (late.pop() if late else 0))
    house.drive(run)
    assert run.state == life.APPROVAL
    api.approve(str(run.id), "visitor")
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == ONE


@pytest.mark.postgres
@pytest.mark.parametrize(("living", "drives"), [(True, False), (False, True)])
def test_lease_of_another_worker_counts_while_it_lives(
    house: House, living: bool, drives: bool
) -> None:
    run = house.owing()
    until = now_ms() + (60_000 if living else -1)
    lease = Run.objects.filter(id=run.id)
    lease.update(holder="another worker", until_ms=until, deliveries=0)
    assert drive.drive(str(run.id)) is drives
    assert (succeeded(run) == ONE) is drives
    assert lease.get().deliveries == (0 if drives else 1)


@pytest.mark.postgres
def test_lost_lease_stops_the_worker_that_lost_it(house: House) -> None:
    run = house.owing()
    _, mine = api.take(str(run.id))
    assert mine is not None
    assert api.take(str(run.id)) == (False, None)
    Run.objects.filter(id=run.id).update(until_ms=0)
    _, theirs = api.take(str(run.id))
    assert theirs is not None
    assert (theirs.holder != mine.holder, theirs.before) == (True, True)
    assert not leases.renew(str(run.id), mine.holder)
    leases.release(str(run.id), mine.holder)
    late = api.answer(mine, EffectDone(key=mine.effect.key), (), "late")
    assert (refusal(late.decision), late.work) == ("FSM-012", None)
    assert Run.objects.get(id=run.id).holder == theirs.holder


def test_step_that_breaks_ends_its_run_and_nothing_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Work) -> Answer:
        raise ZeroDivisionError("with something personal in it")

    with monkeypatch.context() as patch:
        patch.setattr(adapters, "ADAPTERS", {**adapters.ADAPTERS, "vault.split": broken})
        run = house.run()
    assert (run.state, reason(run)) == (life.FAILED, "RUN-001")
    assert "personal" not in str(bodies(run))
    assert house.run(workspace=run.workspace).state == life.COMPLETED


@pytest.mark.postgres
@pytest.mark.parametrize("step", ["vault.split", PAY])
def test_database_that_is_away_within_a_step_fails_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A connection that is cut, or a lock that is not got: the effect is owed as before."""
    lost = failing_once(adapters.ADAPTERS[step], OperationalError("server closed the connection"))
    run = house.started()
    monkeypatch.setattr(adapters, "ADAPTERS", {**adapters.ADAPTERS, step: lost})
    with pytest.raises(OperationalError):
        house.drive(run)
    assert Run.objects.get(id=run.id).holder == ""
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == ONE


def test_charge_that_breaks_waits_for_a_person(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.owing()
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "pay", failing_once(gateway.pay, ZeroDivisionError()))
        house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "RUN-001")
    assert Reservation("workspace/EUR", 12_000) in snapshot(run).reserved


def test_answer_that_the_kernel_refuses_ends_the_run_instead_of_looping(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forging(work: Work) -> Answer:
        return done(work, {"amount_minor": 1}, {})

    monkeypatch.setattr(adapters, "ADAPTERS", {**adapters.ADAPTERS, "document.receive": forging})
    run = house.run()
    assert (run.state, reason(run)) == (life.FAILED, "RUN-001")
    assert [body["rule"] for body in bodies(run) if body["kind"] == "refused"] == ["FSM-007"]


@pytest.mark.parametrize("gone", ["owed_key = '', owed_tool = '', due_ms = NULL", "due_ms = NULL"])
def test_what_is_owed_is_put_back_where_it_is_gone(house: House, gone: str) -> None:
    run = house.owing()
    sql((f"UPDATE pipeline_run SET {gone} WHERE id = %s", [run.id.hex]))
    assert tasks.stranded() == [str(run.id)]
    tasks.deliver(str(run.id), run.program_hash)
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == ONE


@pytest.mark.parametrize(
    "forged", [{"owed_key": "f" * 64}, {"owed_tool": "notify.send_email"}, {"due_ms": None}]
)
def test_what_is_owed_by_the_row_alone_is_never_done(
    house: House, forged: dict[str, str | None]
) -> None:
    run = house.owing()
    Run.objects.filter(id=run.id).update(**forged)
    house.drive(run)
    assert succeeded(run) == ONE
    assert not AdapterCall.objects.filter(key="f" * 64).exists()
    tools = ["stripe.create_payment_intent", "notify.send_email"]
    assert [
        call.tool for call in run.adapter_calls.order_by("number") if call.tool in tools
    ] == tools
    assert ("ForeignIntent" in str(bodies(run))) == ("due_ms" not in forged)
