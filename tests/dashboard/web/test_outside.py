"""What the page says of the outside: the payment as far as it is known, and the integrity."""

import re
import uuid
from functools import partial

import pytest

from engine.models import AdapterCall, Run
from engine.queries.record import record_of
from engine.queries.runs import RunHead
from engine.runtime import api
from pipeline.labels import CHARGE
from pipeline.queries import money
from sabotage.models import Attack
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

UNKNOWN = "pending, or not confirmed yet"
LOOK = "unknown: check Stripe"


@pytest.fixture
def charging(owner: Visitor) -> RunHead:
    """A run whose charge is sealed and owed."""
    run = owner.paused("charge")
    api.step(run.id, "visitor")
    assert money.payment_of(record_of(by_code(run.code)), {}).intent
    return by_code(run.code)


def chip(pattern: str, visitor: Visitor, run: RunHead) -> str:
    found = re.search(pattern, visitor.read(f"/runs/{run.code}/"), re.S)
    assert found
    return found[1]


PAYMENT = r'<h2 id="payment-title">Payment</h2>\s*<span[^>]*>([^<]*)</span>'
payment_chip = partial(chip, PAYMENT)
integrity_chip = partial(chip, r'<span id="integrity".*?</svg>\s*([^<]*)</span>')


def test_a_payment_that_no_one_ordered_is_not_made(
    owner: Visitor, ready: RunHead, held: RunHead
) -> None:
    assert {payment_chip(owner, run) for run in (ready, held)} == {"not made"}


def test_a_declined_card_is_a_payment_not_made(owner: Visitor) -> None:
    run = owner.make(payment_method="pm_card_chargeDeclined")
    assert run.label == "FAILED"
    assert money.payment_of(record_of(run), {}).calls == 1
    assert payment_chip(owner, run) == "not made"


def test_a_sealed_charge_without_an_answer_is_unknown(owner: Visitor, charging: RunHead) -> None:
    assert payment_chip(owner, charging) == UNKNOWN
    api.begin_effect(charging.id)
    assert payment_chip(owner, charging) == UNKNOWN
    Run.objects.filter(code=charging.code).update(state="terminated.killed")
    assert payment_chip(owner, charging) == LOOK


def test_a_call_that_nothing_sealed_is_unknown_too(owner: Visitor, ready: RunHead) -> None:
    call(ready, CHARGE)
    assert payment_chip(owner, ready) == UNKNOWN


def test_a_payment_of_a_run_that_did_not_succeed_is_shown(owner: Visitor, paid: RunHead) -> None:
    for state in ("terminated.killed", "terminated.failed"):
        Run.objects.filter(code=paid.code).update(state=state)
        page = words(owner.read(f"/runs/{paid.code}/"))
        assert payment_chip(owner, paid) == "succeeded"
        assert ("FAILED" in page, "Stripe object pi_" in page) == (True, True)


def test_an_answer_after_the_end_is_a_payment_made(owner: Visitor, charging: RunHead) -> None:
    begun = api.begin_effect(charging.id)
    assert begun is not None
    Run.objects.filter(code=charging.code).update(state="terminated.killed")
    AdapterCall.objects.filter(key=begun.effect.key).update(outcome="EffectFailed")
    assert payment_chip(owner, charging) == "not made"
    AdapterCall.objects.filter(key=begun.effect.key).update(outcome="EffectDone")
    assert payment_chip(owner, charging) == "made"


@pytest.mark.parametrize("tool", [CHARGE, "wire_transfer"])
def test_a_call_under_a_key_nobody_sealed_is_a_breach(
    owner: Visitor, ready: RunHead, paid: RunHead, tool: str
) -> None:
    assert integrity_chip(owner, ready) == "No call yet"
    assert integrity_chip(owner, paid) == "No unauthorized call"
    call(paid, tool)
    page = owner.read(f"/runs/{paid.code}/")
    assert integrity_chip(owner, paid) == "Integrity BREACHED: 1 call without a recorded intent"
    assert "banner-breach" in page
    assert not Attack.objects.exists()


def test_an_attack_that_got_through_long_ago_is_a_breach(owner: Visitor, ready: RunHead) -> None:
    owner.fire(ready, "tool_injection", proposal=TRANSFER)
    first = Attack.objects.get()
    Attack.objects.update(integrity="BREACHED", injector="skip_step", created_ms=1)
    first.integrity = "HELD"
    for _ in range(60):
        first.pk = uuid.uuid4()
        first.idempotency_key = str(first.pk)
        first.save(force_insert=True)
    page = owner.read(f"/runs/{ready.code}/")
    assert integrity_chip(owner, ready) == "Integrity BREACHED: 1 attack got through"
    assert "61 fired · 1 got through" in page
    assert "BLOCKED · fired 60×" in words(page)
    assert re.search(r'id="shot-skip_step"[^>]*><div', page)
    assert re.search(r'class="banner-breach">.*?/attacks/', page, re.S)


def call(run: RunHead, tool: str) -> None:
    """A line in the adapters' book that no sealed intent stands behind."""
    AdapterCall.objects.create(run_id=run.id, number=99, key="f" * 64, tool=tool, at_ms=1)
