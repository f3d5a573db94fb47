"""A second program on the engine, with adapters and a policy of its own: a refund desk."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from celery import Celery

from engine import application
from engine.application import of_program
from engine.entropy import uuid7
from engine.evidence.fsck.audit import audit
from engine.models import Run
from engine.ops.processes import ROOT, redis_server, running, spawn_celery_worker
from engine.runtime import api, chains, warrants
from engine.runtime.create_run import NewRun, make_run
from engine.runtime.queue import DRIVE, place_of
from engine.vault import secret_store
from engine.work import Answer
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import AnswerArrived, EffectWaiting
from sabotage.kit.waiting import wait_until
from tests.engine.refund_desk.application import TOOL, RefundDesk, asked, refunded
from tests.kit.house import House, bodies, invoice, reason

SETTINGS = "tests.engine.refund_desk.settings"
DONE_MS_MAX = 60_000


@pytest.fixture
def desk(house: House, monkeypatch: pytest.MonkeyPatch) -> RefundDesk:
    """The desk, installed beside the invoices."""
    made = RefundDesk()
    monkeypatch.setitem(application._INSTALLED, made.name, made)
    return made


@pytest.fixture
def send(house: House) -> Iterator[Callable[[Run], None]]:
    """Sends a worker, which is a process of its own, the message that drives a run."""
    env = {**os.environ, "NANOVM_DATA": str(house.folder), "DJANGO_SETTINGS_MODULE": SETTINGS}
    with ExitStack() as stack:
        url = stack.enter_context(redis_server(house.folder / "outside"))
        queue = stack.enter_context(Celery("tests", broker=url))
        stack.enter_context(running(spawn_celery_worker({**env, "REDIS_URL": url})))
        yield lambda run: queue.send_task(DRIVE, args=[str(run.id), *place_of(str(run.id))[:2]])


def comes_to(run: Run, state: str) -> bool:
    run.refresh_from_db()
    return run.state == state


def an_invoice(log_of: Run) -> Run:
    """A run of the invoices' program in the same log, made through the engine alone."""
    run, invoices, origin = uuid7(), of_program("invoice_payment"), log_of.workspace.origin
    given = {"file_name": b"invoice.pdf", "document": invoice()}
    sealed = secret_store.seal_values(str(run), origin, given)
    new = NewRun(
        workspace=log_of.workspace,
        program=invoices.source(),
        policy=invoices.policy_source(),
        slots={
            **{slot: each.ref for slot, each in sealed.items()},
            "payment_method": "pm_card_visa",
            "advisor": "none",
        },
        sealed=tuple(sealed.values()),
        model="faithful",
        started_by="operator",
    )
    return make_run(new, run).run


def test_a_refund_desk_runs_beside_the_invoices_in_one_worker(
    desk: RefundDesk, send: Callable[[Run], None]
) -> None:
    log = chains.create()
    paid, signed, before = (asked(log, order) for order in ("A-1", "A-3", "A-2"))
    bill = an_invoice(paid)
    for run in (paid, signed, before, bill):
        send(run)
    ends = ((paid, life.COMPLETED), (signed, life.WAITING), (before, life.COMPLETED))
    for run, state in (*ends, (bill, life.APPROVAL)):  # of a supplier that nobody registered
        assert wait_until(partial(comes_to, run, state), DONE_MS_MAX), (run.state, reason(run))
    assert refunded() == ["A-1"]
    now = decode_snapshot(bytes(signed.snapshot))
    answer = AnswerArrived(
        run=str(signed.id), program=now.program, key=now.awaits, out={"signed_by": "ada"}
    )
    api.submit(str(signed.id), [answer], actor="ada", vouched=True)
    send(signed)
    assert wait_until(partial(comes_to, signed, life.COMPLETED), DONE_MS_MAX), signed.state
    assert refunded() == ["A-1", "A-3"]
    steps = [each["step"] for each in bodies(before) if each["kind"] == "intent"]
    assert steps == ["look_up", "apologise"]  # its own rule let it ask no model
    assert {bodies(each)[0]["program"] for each in (paid, signed, before)} != {
        bodies(bill)[0]["program"]
    }
    assert audit().damage == ()


def test_a_revoked_tool_is_the_refund_desks_alone(desk: RefundDesk) -> None:
    log = chains.create()
    warrants.revoke(str(log.id), TOOL, "operator")
    run = asked(log, "A-1")
    drive.drive_patiently(str(run.id))
    bill = an_invoice(run)
    drive.drive_patiently(str(bill.id))
    assert (refunded(), comes_to(run, life.COMPLETED)) == ([], True)  # it apologised
    assert "CAP-008" in json.dumps(bodies(run))
    assert comes_to(bill, life.APPROVAL)


def test_an_application_that_is_not_installed_loses_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = asked(chains.create(), "A-1")
    drive.drive(str(run.id))
    run.refresh_from_db()
    assert (run.state, run.tries, refunded()) == (life.ACTIVE, 1, [])
    desk = RefundDesk()
    monkeypatch.setitem(application._INSTALLED, desk.name, desk)
    drive.drive_patiently(str(run.id))
    assert (comes_to(run, life.COMPLETED), refunded()) == (True, ["A-1"])


def test_a_run_that_waits_is_left_waiting_where_its_application_is_gone(
    desk: RefundDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = desk.adapters()
    later = {**own, TOOL: lambda work: Answer(event=EffectWaiting(key=work.effect.key))}
    monkeypatch.setattr(desk, "adapters", lambda: later)
    run = asked(chains.create(), "A-1")
    drive.drive(str(run.id))
    assert comes_to(run, life.WAITING)
    with monkeypatch.context() as patch:
        patch.delitem(application._INSTALLED, desk.name)
        api.wake(str(run.id), "operator")
        drive.drive(str(run.id))
    assert comes_to(run, life.WAITING)


def test_of_two_applications_one_program_has_one(desk: RefundDesk) -> None:
    application.install(desk)
    with pytest.raises(ValueError, match="rename one"):
        application.install(RefundDesk())


def test_it_runs_where_neither_invoices_nor_reader_can_be_imported(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "NANOVM_DATA": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": f"{SETTINGS}_alone",
    }
    command = [sys.executable, "-m", "tests.engine.refund_desk.alone"]
    ran = subprocess.run(
        command, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "state": life.COMPLETED,
        "refunded": ["A-1"],
        "erased": "done",
        "kept": ["envelopes", "amounts, dates and rule codes"],
        "damage": 0,
    }
