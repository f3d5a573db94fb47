"""Step 6 at a far side that answers as Stripe does, and otherwise where a test says so."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import stripe

from nanovm_core.core import lifecycle as life
from pipeline.errors import OutcomeUnknownError, PermanentError
from pipeline.steps.charge import gateway
from pipeline.steps.charge.gateway import (
    KEY_LIFE_MS,
    LOOK_BACK_S,
    Charge,
    Payment,
    UnderWayError,
    pay,
)
from tests.pipeline.house import House, accounts, reason

INTENT_MS = 1_790_000_000_000
CHARGE = Charge(
    key="k" * 64,
    run="a run",
    code="ABCD-12",
    amount_minor=12_000,
    currency="EUR",
    payment_method="pm_card_visa",
    intent_ms=INTENT_MS,
    destination="acct_payee",
)
METADATA = {"run": CHARGE.run, "code": CHARGE.code, "key": CHARGE.key}


class FakeStripe:
    """Answers each POST with a payment that succeeded, but for what ``lies`` says of it."""

    def __init__(self) -> None:
        self.lies: dict[str, Any] = {}
        self.payments: list[dict[str, Any]] = []
        self.posts = 0
        self.v1 = SimpleNamespace(payment_intents=self)

    def create(self, params: dict[str, Any], _: object) -> stripe.PaymentIntent:
        self.posts += 1
        given = (params[name] for name in ("amount", "currency", "metadata"))
        return made(payment(*given, transfer_data=params.get("transfer_data")) | self.lies)

    def list(self, query: dict[str, Any]) -> SimpleNamespace:
        since = query["created"]["gte"]
        data = [made(each) for each in self.payments if each["created"] >= since]
        return SimpleNamespace(data=data, has_more=False)


def made(body: dict[str, Any]) -> stripe.PaymentIntent:
    """What the SDK makes of an answer's body."""
    return stripe.PaymentIntent.construct_from(body, "sk_test_fake")


def payment(
    amount: int = 12_000, currency: str = "eur", metadata: object = METADATA, **changed: object
) -> dict[str, Any]:
    """A PaymentIntent that succeeded, in test mode."""
    return {
        "id": "pi_3fake",
        "object": "payment_intent",
        "amount": amount,
        "amount_received": amount,
        "currency": currency,
        "livemode": False,
        "metadata": metadata,
        "payment_method": "pm_1fake",
        "status": "succeeded",
        "transfer_data": {"destination": CHARGE.destination},
        "created": INTENT_MS // 1000,
        **changed,
    }


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FakeStripe:
    """The far side, at which the gateway pays."""
    fake = FakeStripe()
    monkeypatch.setattr(gateway, "configured", lambda: fake)
    return fake


LIES: dict[str, dict[str, Any]] = {
    "another amount": {"amount": 12_001},
    "another currency": {"currency": "usd"},
    "another run": {"metadata": METADATA | {"run": "another"}},
    "another key": {"metadata": METADATA | {"key": "j" * 64}},
    "no metadata": {"metadata": {}},
    "live mode": {"livemode": True},
    "nothing received": {"amount_received": 0},
    "less received": {"amount_received": 11_999},
    "another test card": {"payment_method": "pm_card_mastercard"},
    "no payment method": {"payment_method": None},
    "another object": {"object": "charge"},
    "no id": {"id": ""},
    "another payee": {"transfer_data": {"destination": "acct_other"}},
    "no payee": {"transfer_data": None},
    "a share for the payee": {"transfer_data": {"destination": "acct_payee", "amount": 1}},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_answer_that_differs_from_the_authorized_payment_is_an_unknown_outcome(
    far: FakeStripe, lie: dict[str, Any]
) -> None:
    far.lies = lie
    with pytest.raises(OutcomeUnknownError) as caught:
        pay(CHARGE, begun_before=False, at_ms=INTENT_MS)
    assert caught.value.code == "STR-005"


def test_payment_method_with_an_id_comes_back_as_it_was_sent(far: FakeStripe) -> None:
    own = replace(CHARGE, payment_method="pm_1own")
    far.lies = {"payment_method": "pm_1own"}
    paid = Payment(id="pi_3fake", status="succeeded")
    assert pay(own, begun_before=False, at_ms=INTENT_MS) == paid
    far.lies = {"payment_method": "pm_1other"}
    with pytest.raises(OutcomeUnknownError, match="STR-005"):
        pay(own, begun_before=False, at_ms=INTENT_MS)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ("processing", UnderWayError, "STR-010"),
        ("requires_action", UnderWayError, "STR-010"),
        ("requires_payment_method", PermanentError, "STR-001"),
        ("canceled", PermanentError, "STR-001"),
    ],
)
def test_payment_that_did_not_succeed_is_none(
    far: FakeStripe, status: str, kind: type[Exception], code: str
) -> None:
    """Found in the list as well: an attempt that failed names no method and received nothing."""
    failed: dict[str, Any] = {"status": status, "amount_received": 0, "payment_method": None}
    far.lies, far.payments = failed, [payment(**failed)]
    for begun_before in (False, True):
        with pytest.raises(kind, match=code):
            pay(CHARGE, begun_before=begun_before, at_ms=INTENT_MS)
    assert far.posts == 1


@pytest.mark.parametrize(
    ("status", "received"),
    [
        ("requires_capture", 0),
        ("requires_confirmation", 0),
        ("unheard_of", 0),
        (None, 0),
        ("requires_action", 1),
        ("processing", 1),
        ("requires_payment_method", 1),
        ("canceled", 12_000),
        ("canceled", None),
    ],
)
def test_answer_that_may_be_a_payment_is_an_unknown_outcome(
    far: FakeStripe, status: str | None, received: int | None
) -> None:
    """Also before another attempt: what may be a payment is not paid again."""
    far.lies = {"status": status, "amount_received": received}
    with pytest.raises(OutcomeUnknownError, match="STR-004"):
        pay(CHARGE, begun_before=False, at_ms=INTENT_MS)
    far.payments = [payment(**far.lies)]
    second = replace(CHARGE, key="j" * 64, attempt=2)
    with pytest.raises(OutcomeUnknownError, match="STR-006"):
        pay(second, begun_before=False, at_ms=INTENT_MS)
    assert far.posts == 1


def test_run_whose_payment_came_back_otherwise_waits_for_a_person(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, far = house.owing(), FakeStripe()
    monkeypatch.setattr(gateway, "configured", lambda: far)
    far.lies = {"livemode": True}
    house.drive(run)
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-005")
    assert accounts(run)["workspace/EUR"].reserved == 12_000


# --- looking before paying again -----------------------------------------------------------------


@pytest.mark.parametrize(("earlier_s", "posts"), [(LOOK_BACK_S, 0), (LOOK_BACK_S + 1, 1)])
def test_look_up_allows_for_clocks_that_differ(far: FakeStripe, earlier_s: int, posts: int) -> None:
    far.payments = [payment(created=INTENT_MS // 1000 - earlier_s)]
    pay(CHARGE, begun_before=True, at_ms=INTENT_MS + 1)
    assert far.posts == posts


@pytest.mark.parametrize("created_ms", [0, INTENT_MS - 1, INTENT_MS + KEY_LIFE_MS])
def test_creation_time_of_a_run_never_hides_an_earlier_attempt(
    far: FakeStripe, created_ms: int
) -> None:
    """A database writer can change it: no envelope seals it."""
    far.payments = [payment(created=(INTENT_MS - KEY_LIFE_MS) // 1000)]
    second = replace(CHARGE, key="j" * 64, attempt=2, created_ms=created_ms)
    with pytest.raises(OutcomeUnknownError, match="STR-006"):
        pay(second, begun_before=False, at_ms=INTENT_MS)
    assert far.posts == 0


@pytest.mark.parametrize("begun_before", [False, True])
def test_key_that_stripe_may_have_forgotten_is_never_sent(
    far: FakeStripe, begun_before: bool
) -> None:
    """Its age follows from the sealed intent alone: the mark of a begun try may be deleted."""
    pay(CHARGE, begun_before=begun_before, at_ms=INTENT_MS + KEY_LIFE_MS - 1)
    with pytest.raises(OutcomeUnknownError, match="STR-004"):
        pay(CHARGE, begun_before=begun_before, at_ms=INTENT_MS + KEY_LIFE_MS)
    assert far.posts == 1
    far.payments = [payment()]
    found = pay(CHARGE, begun_before=begun_before, at_ms=INTENT_MS + KEY_LIFE_MS)
    assert (found.id, far.posts) == ("pi_3fake", 1)


@pytest.mark.parametrize("status", ["requires_action", "processing"])
def test_earlier_attempt_that_can_still_be_completed_is_not_paid_again(
    far: FakeStripe, status: str
) -> None:
    far.payments = [payment(status=status, amount_received=0)]
    with pytest.raises(OutcomeUnknownError, match="STR-006"):
        pay(replace(CHARGE, key="j" * 64, attempt=2), begun_before=False, at_ms=INTENT_MS)
    assert far.posts == 0


def test_page_is_led_to_only_at_stripe_or_at_the_counterpart() -> None:
    def page(url: str, kind: str = "redirect_to_url") -> str:
        name = "url" if kind == "redirect_to_url" else "stripe_js"
        return gateway.page_of({"next_action": {"type": kind, kind: {name: url}}})

    good = "https://hooks.stripe.com/redirect/authenticate/src_1"
    assert (page(good), page(good, "use_stripe_sdk")) == (good, good)
    for bad in (
        "https://evil.example/",
        "http://hooks.stripe.com/",
        "https://stripe.com.evil.example",
    ):
        assert page(bad) == page("javascript:alert(1)//hooks.stripe.com") == ""
    assert gateway.page_of({"next_action": None}) == ""
