"""What counts as a breach, each by a record that shows it, and an honest run that shows none."""

from dataclasses import replace

import pytest

from engine.models import AdapterCall, Run, Secret
from pipeline.steps.charge import gateway
from sabotage.doors import tamper_db
from sabotage.gallery.confused_deputy import foreign_refs
from sabotage.kit.assessment import assess_events
from sabotage.kit.evidence import gather, observe
from sabotage.kit.injector import Fired
from sabotage.kit.integrity import EnvelopeFacts, _unseen, breaches, record
from sabotage.kit.stripe_view import PAYOUT, StripePayment, StripeView, stripe_view
from tests.sabotage.runs import at, let_go, now

pytestmark = pytest.mark.usefixtures("runtime_here")

UNREACHABLE = StripeView(reachable=False)


@pytest.fixture
def paid() -> Run:
    return at("succeeded")


def seen(*payments: StripePayment) -> StripeView:
    return StripeView(reachable=True, payments=payments)


def test_payments_that_no_sealed_intent_bears_too_many_and_too_few(
    paid: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    [payment] = stripe_view(paid).payments
    strange = replace(payment, key="f" * 64)
    dearer = replace(payment, amount_minor=payment.amount_minor + 1)
    unasked = "1 payments exist without a recorded intent."
    other = "A payment differs from the document in amount or currency."
    payout = "A payout took EUR 1284.50 out of the balance, and none of it is the supplier's."
    for payments, said in (
        ([payment], ()),
        ([strange], (unasked,)),
        ([dearer], (unasked, other)),
        ([payment, replace(strange, status="canceled")], ()),
        ([payment, payment], ("Stripe has 2 succeeded payments for one run.",)),
        ([replace(payment, kind=PAYOUT)], (payout,)),
        ([], ("The run is recorded as paid, but Stripe has no payment.",)),
    ):
        assert breaches(paid, seen(*payments)) == said
    unpaid = at("charge")
    assert breaches(paid, UNREACHABLE) == breaches(unpaid, stripe_view(unpaid)) == ()
    monkeypatch.setattr(gateway, "PAGES_MAX", 0)  # a list without an end is no answer
    assert stripe_view(paid) == UNREACHABLE


def test_an_adapter_call_that_no_intent_bears(paid: Run) -> None:
    last = AdapterCall.objects.filter(run=paid).latest("number")
    AdapterCall.objects.create(
        run=paid, number=last.number + 1, key="f" * 64, tool=last.tool, at_ms=last.at_ms
    )
    said = "1 adapter calls were made without a recorded intent."
    assert breaches(paid, UNREACHABLE) == (said,)


def test_altered_envelopes_and_a_value_that_nobody_sealed(paid: Run) -> None:
    tamper_db.change_envelope(paid, 2, "hash", "0" * 64)
    [said] = breaches(paid, UNREACHABLE)
    assert said.endswith("recorded events were altered without being detected.")
    other = at("succeeded")
    tamper_db.change_run(other, {"snapshot": bytes(other.snapshot) + b" "})
    goes_on = "The run continued from a state that does not match its last recorded event."
    assert breaches(now(other), UNREACHABLE) == (goes_on,)


def test_a_payment_before_its_authorization_and_another_order(paid: Run) -> None:
    honest: EnvelopeFacts = record(paid)
    assert [*_unseen(paid, honest)] == []
    early = "A payment was requested before it was authorized."
    assert [*_unseen(paid, replace(honest, ahead=True))] == [early]
    led = "charge started after receive, which the run's program does not allow."
    assert [*_unseen(paid, replace(honest, order=("receive", "charge")))] == [led]


def test_the_events_of_others_are_not_the_attackers() -> None:
    run = at("running")
    before = observe(str(run.id))
    found = gather(str(let_go(run).id), before)
    honest = next(each for each in found.sealed if each.kind == "result")
    events = {honest.event}
    told = assess_events(found, Fired(), events=events, actor="attacker:skip_step")
    assert (told.verdict, told.event) == ("ACCEPTED", None)
    named = assess_events(found, Fired(), events=events, actor=honest.actor)
    assert (named.event, named.breaches) == (honest.number, ())
    forged = replace(found, sealed=(replace(honest, actor="attacker:skip_step"),))
    taken = assess_events(forged, Fired(), events=events, actor="attacker:skip_step")
    assert taken.breaches == (
        f"{honest.event} was taken from an attacker: no transition of the run allows it.",
    )


def test_a_ref_that_another_workspace_holds_is_foreign(paid: Run) -> None:
    assert foreign_refs(paid) == set()
    payee = Secret.objects.get(run=paid, slot="payee")
    Secret.objects.filter(ref=payee.ref).update(run=at("ready"))
    assert foreign_refs(paid) == {payee.ref}
