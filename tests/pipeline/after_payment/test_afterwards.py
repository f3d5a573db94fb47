"""Refunds and disputes: recorded once for each new state, and no sealed result changes."""

from uuid import UUID

import pytest
import stripe
from django.db import transaction

from engine.clock import now_ms
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Workspace
from engine.privacy import erasure
from engine.queries.runs import head_of
from engine.runtime import chains
from engine.store import records
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import decode_snapshot, encode_snapshot
from pipeline.after_payment import far_side, webhooks
from pipeline.models import FarSide, StripeEvent
from pipeline.queries import far_side as queries
from pipeline.queries import stuck_runs
from pipeline.steps.charge import afterwards, gateway
from tests.kit.clock import Leap
from tests.kit.house import House, bodies, invoice, succeeded
from tests.pipeline.after_payment.events import delivered, driven, every, happened, listening
from tests.pipeline.after_payment.pages import DEBIT, DOLLARS, asked, far, settle
from tests.pipeline.reconcile.world import refunded


@pytest.fixture(autouse=True)
def _listening(monkeypatch: pytest.MonkeyPatch) -> None:
    listening(monkeypatch)


def told(run: Run) -> list[tuple[str, int, str]]:
    """What the log's own chain says of this run: the word, the sum, the dispute's status."""
    of_run = [each for each in bodies("log") if each["kind"] == "alert"]
    assert all(each["in"] == {"run": str(run.id)} for each in of_run)
    of_none = [each["outcome"] for each in of_run if "received_minor" in each["out"]]
    assert {*of_none} <= {"unexpected", "unclear"}
    outs = [(each["outcome"], each["out"]) for each in of_run]
    return [(word, out["amount_minor"], out["dispute"]) for word, out in outs]


def test_refund_is_recorded_once_a_state_and_changes_no_result(house: House) -> None:
    run = house.run(DOLLARS)
    head, length, snapshot = run.head, run.length, bytes(run.snapshot)
    refunded(run, 5_000)
    first = [*happened(run, "charge.refunded"), *every("refund.")]
    assert len(first) == 2  # the refund itself names only the payment
    for event in (*first, *first):
        assert delivered(event) == 200
        driven(run)
    refunded(run, 7_000)
    assert {delivered(each) for each in (*every("charge.refunded"), *every("refund."))} == {200}
    driven(run)
    assert told(run) == [("refunded", 5_000, ""), ("refunded", 12_000, "")]
    assert (run.head, run.length, bytes(run.snapshot)) == (head, length, snapshot)
    assert (run.state, succeeded(run)) == (life.COMPLETED, [(12_000, "usd")])
    assert [row.refunded_minor for row in FarSide.objects.filter(run=run)] == [5_000, 12_000]
    assert webhooks.counts()["accepted"] == 4
    assert (audit().damage, StripeEvent.objects.filter(looked_ms=None).count()) == ((), 0)


def test_of_an_ended_run_with_its_payment_only_what_came_later_is_looked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged run says nothing of its payment, and a run without one may have been paid."""
    run, unpaid = house.run(DOLLARS), house.run(DOLLARS, payment_method="pm_card_chargeDeclined")
    sent = list[str]()
    monkeypatch.setattr(far_side, "schedule_look", sent.append)
    made = happened(run)
    assert {each["type"] for each in made} >= {"payment_intent.succeeded", "charge.succeeded"}
    assert {delivered(each) for each in made} == {200}
    assert (sent, StripeEvent.objects.filter(looked_ms=None).count()) == ([], 0)
    refunded(run, 100)
    later = [*every("charge.refunded"), *every("refund."), *happened(unpaid, "payment_intent.")]
    assert {delivered(each) for each in later} == {200}
    assert sent == [str(run.id), str(run.id), *[str(unpaid.id)] * (len(later) - 2)]
    Run.objects.filter(id=run.id).update(snapshot=b"{}")
    assert delivered(made[0] | {"id": "evt_again"}) == 200
    assert (sent[-1], webhooks.counts()["accepted"]) == (str(run.id), len(made) + len(later) + 1)


def test_two_workers_that_read_the_same_refund_seal_it_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lock, waited = house.run(DOLLARS), records.lock_log, list[str]()

    def granted(log: UUID) -> Workspace:
        """The lock, after another worker had it: that one recorded the same state."""
        if not waited:
            waited.append(str(run.id))
            far_side._record(str(run.id), afterwards.Afterwards(refunded_minor=100), "USD")
        return lock(log)

    refunded(run, 100)
    assert {delivered(each) for each in happened(run, "charge.refunded")} == {200}
    monkeypatch.setattr(records, "lock_log", granted)
    driven(run)
    assert (waited, told(run)) == ([str(run.id)], [("refunded", 100, "")])


def test_dispute_is_recorded_with_its_status(house: House) -> None:
    run = house.run(DOLLARS, payment_method="pm_card_createDispute")
    assert {delivered(each) for each in every("charge.dispute.")} == {200}
    driven(run)
    assert told(run) == [("disputed", 0, "needs_response")]


def test_event_about_a_refund_is_no_source_of_one(house: House) -> None:
    run = house.run(DOLLARS)
    (event,) = happened(run, "charge.succeeded")
    charge = event["data"]["object"] | {"amount_refunded": 12_000, "refunded": True}
    lie = event | {"type": "charge.refunded", "data": {"object": charge}}
    assert delivered(lie) == 200
    driven(run)
    assert (told(run), StripeEvent.objects.filter(looked_ms=None).count()) == ([], 0)


def test_news_survives_a_lost_message_and_a_far_side_that_is_away(
    house: House, leap: Leap, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.run(DOLLARS)
    refunded(run, 100)
    (event,) = happened(run, "charge.refunded")
    with monkeypatch.context() as patch:
        patch.setattr(far_side, "schedule_look", lambda *_, **__: None)
        assert delivered(event) == 200
    leap(far_side.NEWS_AFTER_MS + 1)
    assert far_side.with_news(now_ms()) == [str(run.id)]
    with monkeypatch.context() as patch:
        patch.setattr(afterwards, "configured", away)
        driven(run)
        (unnamed,) = every("refund.")
        assert delivered(unnamed) == 503  # Stripe sends it again
    assert told(run) == []
    driven(run)
    assert told(run) == [("refunded", 100, "")]
    assert delivered(unnamed) == 200
    assert driven(run).state == life.COMPLETED
    assert (told(run), far_side.with_news(now_ms())) == ([("refunded", 100, "")], [])


def away() -> stripe.StripeClient:
    raise stripe.APIConnectionError("away")  # type: ignore[no-untyped-call]


def test_refund_of_an_erased_run_is_not_looked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.run(DOLLARS)
    erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    refunded(run, 100)
    (event,) = happened(run, "charge.refunded")
    sealed = Envelope.objects.count()
    assert delivered(event) == 200
    monkeypatch.setattr(afterwards, "configured", away)
    driven(run)
    assert (told(run), Envelope.objects.count()) == ([], sealed)
    assert not StripeEvent.objects.filter(looked_ms=None).exists(), "Stripe was asked"


def test_refund_after_a_restore_is_sealed_in_the_log_that_goes_on(house: House) -> None:
    run, goes_on = house.run(DOLLARS), chains.create()
    Workspace.objects.filter(id=run.workspace_id).update(successor=goes_on)
    far_side._record(str(run.id), afterwards.Afterwards(refunded_minor=5), "USD")
    (sealed,) = Envelope.objects.filter(run="log", kind="alert")
    assert sealed.workspace_id == goes_on.id


def test_payment_of_another_run_is_not_read(house: House) -> None:
    one, two = house.run(DOLLARS), house.run(invoice("Total  USD 77.00"))
    payment = far(one).id
    assert afterwards.payment_record(payment, one.id, "USD") == afterwards.Afterwards()
    assert afterwards.payment_record(payment, two.id, "USD") is None


def test_payment_of_a_run_that_recorded_none_is_sealed_and_asks_a_person(house: House) -> None:
    """Nobody completed it in time by our record; by Stripe's it was paid after all."""
    run = asked(house, DEBIT)
    Run.objects.filter(id=run.id).update(state=life.FAILED, due_ms=None, deadline_ms=None)
    settle(run, "succeeded")
    event = happened(run, "payment_intent.succeeded")[-1]
    assert delivered(event) == 200
    assert driven(run).state == life.FAILED
    (body,) = (each for each in bodies("log") if each["kind"] == "alert")
    assert (body["outcome"], body["in"]) == ("unexpected", {"run": str(run.id)})
    assert body["out"]["received_minor"] == 12_000
    ((listed, why),) = stuck_runs.of_workspace(run.workspace_id)
    assert (listed.id, why, why.command) == (str(run.id), stuck_runs.UNEXPECTED, "checked")
    FarSide.objects.create(run=house.run(DOLLARS), refunded_minor=1, at_ms=1, sealed_n=1)
    assert not afterwards.is_unchecked(FarSide.objects.latest("id").run_id)
    assert stuck_runs.waiting(run.workspace_id) == 1
    for kind, changed in ((FarSide, {"dispute": "lost"}), (Run, {"state": life.PAUSED}),
        (Run, {"quarantined": True}), (Run, {"workspace": chains.create()})):  # fmt: skip
        with transaction.atomic():
            kind.objects.update(**changed)
            assert stuck_runs.waiting(run.workspace_id) == 0, changed
            transaction.set_rollback(True)
    (later,) = queries.later(head_of(run))
    assert later.says.startswith("unexpected payment: a person")
    far_side.checked(str(run.id), "visitor")
    sealed = Envelope.objects.count()
    far_side.checked(str(run.id), "visitor")
    StripeEvent.objects.update(looked_ms=None)
    assert driven(run) == run
    assert (stuck_runs.of_workspace(run.workspace_id), Envelope.objects.count()) == ([], sealed)
    assert stuck_runs.waiting(run.workspace_id) == 0
    last = queries.later(head_of(run))[-1]
    assert (last.row.outcome, last.row.actor, last.row.at_ms > 0) == ("checked", "visitor", True)
    assert last.says == "visitor compared the run with Stripe's dashboard"
    far_side._record(str(run.id), afterwards.Afterwards(dispute=afterwards.UNCLEAR), "USD")
    assert len(stuck_runs.of_workspace(run.workspace_id)) == 1  # another finding is open again


@pytest.mark.parametrize(("endless", "told_of"), [(False, []), (True, ["unclear"])])
def test_run_that_failed_unpaid_asks_nobody_unless_stripes_list_has_no_end(
    house: House, monkeypatch: pytest.MonkeyPatch, endless: bool, told_of: list[str]
) -> None:
    run = house.run(DOLLARS, payment_method="pm_card_chargeDeclined")
    assert house.run(invoice("Total  USD 77.00")).state == life.COMPLETED
    assert run.state == life.FAILED
    assert delivered(happened(run, "payment_intent.payment_failed")[0]) == 200
    if endless:
        monkeypatch.setattr(gateway, "PAGES_MAX", 0)
    driven(run)
    assert [each[0] for each in told(run)] == told_of
    assert len(stuck_runs.of_workspace(run.workspace_id)) == len(told_of)
    assert not StripeEvent.objects.filter(looked_ms=None).exists()


def test_event_stays_new_until_the_payments_answer_is_recorded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.run(DOLLARS)
    snapshot_ = decode_snapshot(bytes(run.snapshot))
    slots = {name: each for name, each in snapshot_.slots.items() if name != "payment"}
    early = encode_snapshot(snapshot_._replace(slots=slots))
    Run.objects.filter(id=run.id).update(state=life.ACTIVE, snapshot=early)
    assert delivered(happened(run, "charge.succeeded")[0]) == 200
    assert far_side.record_changes(str(run.id))
    assert StripeEvent.objects.filter(looked_ms=None).count() == 1
    Run.objects.filter(id=run.id).update(state=run.state, snapshot=bytes(run.snapshot))
    monkeypatch.setattr(far_side, "_read", lambda *_: pytest.fail("nothing of it can be new"))
    assert far_side.record_changes(str(run.id))
    assert not far_side.record_changes(str(run.id))
