"""The page of a run whose payment waits, or was refunded: words, links, and asking at once."""

import pytest

from engine.models import Run
from nanovm_core.core import lifecycle as life
from pipeline import tasks
from tests.dashboard.visitor import Visitor, by_code, words
from tests.pipeline.after_payment.events import delivered, happened, listening
from tests.pipeline.after_payment.pages import far, press, sdk

OWNER_ASKED = "pm_card_authenticationRequired"


@pytest.mark.parametrize(("outcome", "label"), [("complete", "SUCCESS"), ("fail", "FAILED")])
def test_a_payment_that_waits_says_so_and_leads_to_the_banks_page(
    owner: Visitor, outcome: str, label: str
) -> None:
    run = owner.make(payment_method=OWNER_ASKED)
    here = f"/runs/{run.code}/"
    assert run.label == "WAITING"
    page = owner.read(here)
    assert "asks the card's owner to authenticate the payment" in words(page)
    assert f'href="{here}authenticate/"' in page
    assert "Ask Stripe now" in words(page)
    there = owner.get(f"{here}authenticate/")["Location"]
    assert "/counterpart/authentications/" in there
    assert there.rpartition("/")[2] not in page  # it is kept nowhere
    press(Run.objects.get(id=run.id), outcome)
    with owner.pressed(f"{here}wake/"):
        assert by_code(run.code).label == label
    assert owner.get(f"{here}authenticate/")["Location"] == here


def test_a_refund_is_shown_beside_the_payment_and_in_the_audit_lists(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening(monkeypatch)
    run = owner.make()
    row = Run.objects.get(id=run.id)
    sdk().v1.refunds.create({"payment_intent": far(row).id, "amount": 5_000})
    (event,) = happened(row, "charge.refunded")
    assert delivered(event) == 200
    tasks.look(run.id)
    page = words(owner.read(f"/runs/{run.code}/"))
    assert "EUR 50.00 refunded" in page
    assert owner.driven(run.code).label == "SUCCESS"
    assert "EUR 50.00 refunded" in words(owner.read(f"/runs/{run.code}/audit/"))
    assert "payment refunded" in words(owner.read("/audit/?kind=alert"))


def test_a_payment_that_the_run_did_not_record_is_shown_and_asks_a_person(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening(monkeypatch)
    run = owner.make(payment_method=OWNER_ASKED)
    row = Run.objects.get(id=run.id)
    Run.objects.filter(id=run.id).update(state=life.FAILED, due_ms=None, deadline_ms=None)
    press(row, "complete")
    assert delivered(happened(row, "payment_intent.succeeded")[0]) == 200
    tasks.look(run.id)
    page = words(owner.read(f"/runs/{run.code}/"))
    assert "Compare the run with Stripe's dashboard" in page
    assert "Unexpected payment: a person has to compare" in page
    assert "Compare the run with Stripe's dashboard" in words(owner.read("/inbox/"))
    assert "payment unexpected" in words(owner.read("/audit/?kind=alert"))
    assert "Mark as checked" in page
    for _ in range(2):
        owner.post(f"/runs/{run.code}/checked/")
    assert "Compare the run with Stripe's dashboard" not in words(owner.read("/inbox/"))
    page = words(owner.read(f"/runs/{run.code}/"))
    assert "Visitor compared the run with Stripe's dashboard" in page
    assert "Mark as checked" not in page
    assert words(owner.read("/audit/?kind=alert")).count("payment checked") == 1
