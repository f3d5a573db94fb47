"""Runs that stand: each is listed with its reason, in words, and with the safe way on."""

import re

import pytest

from engine.clock import now_ms
from engine.errors import NotSentError
from engine.models import Run
from engine.queries.runs import RunHead
from engine.runtime import api
from engine.store import leases
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import EffectUnknown
from pipeline.queries import stuck_runs
from pipeline.steps.charge import gateway
from reader.holds import explained
from samples import generated
from tests.dashboard.visitor import Visitor, by_code, words
from tests.kit.house import limit
from tests.reader.page_view.test_page_view import paper, scan_of

pytestmark = pytest.mark.usefixtures("db")

LONG_AGO_MS = stuck_runs.STUCK_MS + 1


def stall(run: RunHead) -> stuck_runs.StuckReason | None:
    return stuck_runs.of_run(Run.objects.get(id=run.id), run)


def listed(visitor: Visitor) -> str:
    """What the inbox says of the runs that stand."""
    page = visitor.read("/inbox/")
    return words(" ".join(re.findall(r'<li class="card" id="run-.*?\n</li>', page, re.S)))


def abandoned(visitor: Visitor) -> RunHead:
    """A run whose message was lost and that no sweep has found."""
    run = visitor.make(hold=True)
    api.start(run.id, "visitor")
    Run.objects.filter(id=run.id).update(owed_ms=now_ms() - LONG_AGO_MS)
    return by_code(run.code)


@pytest.mark.usefixtures("paid")
def test_runs_that_go_on_or_have_ended_are_not_listed(owner: Visitor, ready: RunHead) -> None:
    assert listed(owner) == ""
    api.start(ready.id, "visitor")
    assert listed(owner) == ""
    api.pause(ready.id, "visitor")
    assert listed(owner) == ""
    assert 'id="stall"' not in owner.read(f"/runs/{ready.code}/")


def test_held_payment_is_listed_with_its_rule(owner: Visitor) -> None:
    run = owner.make("over_limit")
    said = listed(owner)
    assert [text for text in (run.code, "over-limit", "Approve payment") if text not in said] == []


def test_hold_that_nobody_can_approve_says_why_and_offers_no_approval(owner: Visitor) -> None:
    run = owner.upload("negative.pdf", generated.generate(2, "negative_amount").pdf)
    page = owner.read(f"/runs/{run.code}/")
    why = explained(str(run.slots["hold"]))
    assert (run.state, why in words(page), 'id="act-approve"' in page) == (
        life.APPROVAL,
        True,
        False,
    )
    assert 'id="act-decline"' in page
    assert api.approve(run.id, "visitor", run.hold).refusal.code == "POL-021"  # type: ignore[union-attr]


def test_hold_shows_the_place_in_the_document_until_it_is_erased(owner: Visitor) -> None:
    run = owner.upload("forged.pdf", generated.generate(3, "remapped_encoding").pdf)
    page = owner.read(f"/runs/{run.code}/")
    place = f"/runs/{run.code}/crops/1.png"
    assert (place in page, "Shown differently" in words(page)) == (True, True)
    assert owner.get(place).content.startswith(b"\x89PNG")
    owner.erase(run)
    assert owner.get(place).status_code == 404
    assert "crops/" not in owner.read(f"/runs/{run.code}/")


def test_scan_shows_each_field_beside_its_place(owner: Visitor) -> None:
    run = owner.upload("scan.pdf", scan_of(paper()))
    page = owner.read(f"/runs/{run.code}/")
    outcome = words(page.partition('id="outcome"')[2].partition("</section>")[0])
    names = ("Amount due", "Currency", "Seller", "IBAN", "Invoice number", "Due date")
    shown = [outcome.find(f"{name} , page 1. Read there:") for name in names]
    assert (shown == sorted(shown), -1 in shown) == (True, False), outcome
    assert "Read there: Acme Tools Ltd" in outcome
    assert owner.get(f"/runs/{run.code}/crops/5.png").content.startswith(b"\x89PNG")


def test_run_without_money_is_listed_with_the_command_that_helps(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    limit(Run.objects.get(id=run.id), "workspace/EUR", 1)
    api.start(run.id, "visitor")
    assert visitor.driven(run.code).state == life.EXHAUSTED
    said = listed(visitor)
    assert "BUD-001" in said
    assert "Try again" in said


def test_unknown_outcome_says_that_asking_again_cannot_pay_twice(owner: Visitor) -> None:
    run = owner.make(hold=True, pace="step")
    api.start(run.id, "visitor")
    while owner.driven(run.code).step != "charge":
        api.step(run.id, "visitor")
    api.resume(run.id, "visitor")
    work = api.take(run.id)[1]
    assert work is not None
    unknown = EffectUnknown(key=work.effect.key, code="STR-004", text="Who knows?")
    api.answer(work, unknown, (), "EffectUnknown")
    said = listed(owner)
    assert "STR-004" in said
    assert "cannot pay twice" in said
    page = owner.read(f"/runs/{run.code}/")
    assert "Ask again, same key" in page
    assert "Approve payment" not in page
    owner.command(by_code(run.code), "approve")
    assert owner.driven(run.code).state == life.COMPLETED


def test_stuck_run_is_listed_and_woken_by_its_button(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    run = abandoned(owner)
    monkeypatch.setattr("engine.runtime.queue.wake", woken.append)
    assert "no worker has taken it" in listed(owner)
    page = owner.read(f"/runs/{run.code}/")
    assert f'formaction="/runs/{run.code}/wake/"' in page
    assert owner.command(run, "wake").status_code == 303
    assert (woken, by_code(run.code).length) == ([run.id], run.length)
    monkeypatch.undo()
    assert owner.driven(run.code).state == life.COMPLETED
    assert listed(owner) == ""


def test_run_that_a_worker_holds_is_not_stuck(owner: Visitor) -> None:
    run = abandoned(owner)
    until_ms = now_ms() + leases.TTL_MS
    Run.objects.filter(id=run.id).update(holder="a worker", until_ms=until_ms)
    assert listed(owner) == ""
    assert stall(run) is None
    Run.objects.filter(id=run.id).update(until_ms=now_ms() - 1)
    assert run.code in listed(owner)


def test_lost_outbox_row_and_passed_deadline_are_seen(owner: Visitor) -> None:
    lost, late = abandoned(owner), abandoned(owner)
    Run.objects.filter(id=lost.id).update(owed_key="", owed_tool="", due_ms=None)
    Run.objects.filter(id=late.id).update(deadline_ms=now_ms() - LONG_AGO_MS)
    assert stall(lost) == stuck_runs.STUCK
    assert stall(late) == stuck_runs.OVERDUE
    owner.command(lost, "wake")
    assert Run.objects.get(id=lost.id).owed_key != ""


def test_silent_far_side_is_told_with_the_time_of_the_next_try(
    owner: Visitor, ready: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object, **__: object) -> None:
        raise NotSentError("STR-007", "Stripe could not be reached; trying again.")

    monkeypatch.setattr(gateway, "pay", silent)
    monkeypatch.setattr(drive, "BACKOFF_MS", 3_600_000)
    api.start(ready.id, "visitor")
    drive.drive(ready.id)
    assert "No answer from the provider after 1 tries" in listed(owner)
    assert "UTC" in listed(owner)


def test_damaged_run_is_listed_with_record_and_no_command(owner: Visitor, paid: RunHead) -> None:
    Run.objects.filter(id=paid.id).update(length=paid.length + 1)
    api.check(paid.id)
    said = listed(owner)
    for text in (paid.code, "damaged", "View the audit log"):
        assert text in said
