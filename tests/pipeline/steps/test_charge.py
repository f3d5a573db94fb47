"""Step 6 at a far side that answers as Stripe does, and otherwise where a test says so."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle, repeat
from types import SimpleNamespace
from typing import Any

import pytest
import stripe
from django.conf import settings

from engine.errors import EffectError, OutcomeUnknownError, PermanentError
from nanovm_core.core import lifecycle as life
from pipeline.steps.charge import gateway, payout
from pipeline.steps.charge.gateway import KEY_LIFE_MS, LOOK_BACK_S, UnderWayError, pay
from tests.kit.house import House, accounts, reason

INTENT_MS = 1_790_000_000_000
CHARGE = gateway.Charge(
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

    def raw_request(self, _: str, __: str, *, created: Any, **___: object) -> SimpleNamespace:
        return page([each for each in self.payments if each["created"] >= created["gte"]])


def page(data: list[dict[str, Any]], has_more: object = False) -> SimpleNamespace:
    """An answer with a page of a list."""
    return SimpleNamespace(body=json.dumps({"data": data, "has_more": has_more}))


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
    assert pay(own, begun_before=False, at_ms=INTENT_MS) == "pi_3fake"
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
    assert (found, far.posts) == ("pi_3fake", 1)


@pytest.mark.parametrize("status", ["requires_action", "processing"])
def test_earlier_attempt_that_can_still_be_completed_is_not_paid_again(
    far: FakeStripe, status: str
) -> None:
    far.payments = [payment(status=status, amount_received=0)]
    with pytest.raises(OutcomeUnknownError, match="STR-006"):
        pay(replace(CHARGE, key="j" * 64, attempt=2), begun_before=False, at_ms=INTENT_MS)
    assert far.posts == 0


def test_page_is_led_to_only_at_stripe_or_the_counterpart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.STRIPE, "api_base", "http://127.0.0.1:9")

    def page(url: str, kind: str = "redirect_to_url") -> str:
        name = "url" if kind == "redirect_to_url" else "stripe_js"
        return gateway.page_of({"next_action": {"type": kind, kind: {name: url}}})

    good = "https://hooks.stripe.com/redirect/authenticate/src_1"
    assert (page(good), page(good, "use_stripe_sdk")) == (good, good)
    assert page("http://127.0.0.1:9/a") == "http://127.0.0.1:9/a"
    hosts = r"evil.example/ stripe.com.evil.example evil.example\.stripe.com evilstripe.com/"
    bad = [f"https://{host}" for host in f"{hosts} evil.example\\@hooks.stripe.com/".split()]
    for each in (*bad, "http://hooks.stripe.com/", "ftp://127.0.0.1:9/"):
        assert page(each) == page("javascript:alert(1)//hooks.stripe.com") == ""
    assert gateway.page_of({"next_action": None}) == ""


def test_refused_payment_is_looked_for_though_no_try_is_on_record(far: FakeStripe) -> None:
    refused = PermanentError("STR-008", "The supplier is blocked.")
    far.payments = [payment()]
    found = pay(CHARGE, begun_before=False, at_ms=INTENT_MS, refused=refused)
    assert (found, far.posts) == ("pi_3fake", 0)


class Pages:
    """A list of Stripe's whose pages are made one by one."""

    def __init__(self, ids: Iterator[list[str]], has_more: object = True) -> None:
        self.ids, self.has_more, self.asked, self.last = ids, has_more, 0, ""

    def raw_request(self, *_: object, starting_after: str = "", **__: object) -> SimpleNamespace:
        self.asked += 1
        assert (self.asked <= gateway.PAGES_MAX, starting_after) == (True, self.last)
        ids = next(self.ids)
        self.last = ids[-1] if ids else ""
        return page([payment(id=each, metadata={}) for each in ids], self.has_more)


ODD: dict[str, tuple[Callable[[], Pages], int]] = {
    "no end": (lambda: Pages([f"pi_{n}"] for n in count()), gateway.PAGES_MAX),
    "one page again and again": (lambda: Pages(repeat(["pi_1", "pi_2"])), 2),
    "two pages in turn": (lambda: Pages(cycle([["pi_1"], ["pi_2"]])), 3),
    "an order that turns round": (lambda: Pages(iter([["pi_1", "pi_2"], ["pi_2", "pi_1"]])), 2),
    "more after nothing": (lambda: Pages(repeat([])), 1),
    "an end that is not told": (lambda: Pages(repeat([]), has_more=None), 1),
}


@pytest.mark.parametrize(("make", "asked"), ODD.values(), ids=ODD)
def test_list_that_cannot_be_read_to_its_end_is_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Pages], asked: int
) -> None:
    looks: dict[str, Callable[[], object]] = {
        "payment_intents": lambda: pay(CHARGE, begun_before=True, at_ms=INTENT_MS),
        "accounts": lambda: gateway.by_key("accounts", CHARGE.key, INTENT_MS),
        "payouts": lambda: payout._find(CHARGE.key, INTENT_MS),
    }
    for name, look in looks.items():
        pages = make()
        monkeypatch.setattr(gateway, "configured", lambda pages=pages: pages)
        with pytest.raises(OutcomeUnknownError, match="STR-004"):
            look()
        assert pages.asked <= asked, name


def test_list_that_takes_too_long_is_an_unknown_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = count(0, 3_600)
    monkeypatch.setattr(gateway, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    pages = Pages([f"pi_{n}"] for n in count())
    monkeypatch.setattr(gateway, "configured", lambda: pages)
    with pytest.raises(OutcomeUnknownError, match="STR-004"):
        [*gateway.listed("payouts", 0)]
    assert pages.asked == 1


@pytest.mark.parametrize(
    ("lies", "code"),
    [
        ({"amount": 1}, "STR-005"),
        ({"amount_received": 12_000}, "STR-004"),
        ({"status": "requires_payment_method"}, "STR-001"),
    ],
)
def test_canceled_payment_is_none_only_if_it_is_the_authorized_one_and_unpaid(
    far: FakeStripe, lies: dict[str, Any], code: str
) -> None:
    far.payments = [payment(status="requires_action", amount_received=0)]

    def cancel(*_: object) -> None:
        far.payments[0] |= {"status": "canceled"} | lies

    far.cancel = cancel  # type: ignore[attr-defined]
    with pytest.raises(EffectError, match=code):
        gateway.give_up(CHARGE)


def test_after_a_day_a_payout_is_found_or_a_person_decides(
    far: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.v1.payouts = far
    args = {"currency": "EUR", "amount": 120}
    effect = SimpleNamespace(args=args, key=CHARGE.key, at_ms=INTENT_MS, attempt=1)
    run = SimpleNamespace(id=CHARGE.run, code=CHARGE.code)
    work: Any = SimpleNamespace(effect=effect, run=run, begun_before=False)
    monkeypatch.setattr(payout, "now_ms", lambda: INTENT_MS + KEY_LIFE_MS)
    with pytest.raises(OutcomeUnknownError, match="STR-004"):
        payout.wire_transfer(work)
    far.payments = [payment(status="failed")]
    with pytest.raises(PermanentError, match="STR-001"):  # it was found
        payout.wire_transfer(work)
    assert far.posts == 0
