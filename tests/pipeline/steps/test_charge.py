"""Step 6 at a local server that answers as Stripe does, and otherwise where a test says so."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.conf import settings

from nanovm_core.core import lifecycle as life
from pipeline.errors import OutcomeUnknownError, PermanentError, TransientError
from pipeline.steps.charge.gateway import KEY_LIFE_MS, LOOK_BACK_S, Charge, Payment, pay
from tests.pipeline.house import House, reason

INTENT_MS = 1_790_000_000_000
CHARGE = Charge(
    key="k" * 64,
    run="a run",
    code="ABCD-12",
    amount_minor=12_000,
    currency="EUR",
    payment_method="pm_card_visa",
    intent_ms=INTENT_MS,
)
METADATA = {"run": CHARGE.run, "code": CHARGE.code, "key": CHARGE.key}


@dataclass(slots=True)
class FakeStripe:
    """Answers each POST with a payment that succeeded, but for what ``lies`` says of it."""

    lies: dict[str, Any] = field(default_factory=dict)
    payments: list[dict[str, Any]] = field(default_factory=list)
    posts: int = 0

    def post(self, form: dict[str, str]) -> dict[str, Any]:
        self.posts += 1
        metadata = {key[9:-1]: text for key, text in form.items() if key.startswith("metadata[")}
        return payment(int(form["amount"]), form["currency"], metadata) | self.lies

    def list(self, query: dict[str, str]) -> dict[str, Any]:
        since = int(query["created[gte]"])
        data = [each for each in self.payments if each["created"] >= since]
        return {"object": "list", "data": data, "has_more": False, "url": "/v1/payment_intents"}


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
        "created": INTENT_MS // 1000,
        **changed,
    }


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStripe]:
    """The server, at which the gateway pays."""
    fake = FakeStripe()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer(fake.post(dict(parse_qsl(body))))

        def do_GET(self) -> None:
            self.answer(fake.list(dict(parse_qsl(urlsplit(self.path).query))))

        def answer(self, body: dict[str, Any]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setitem(settings.STRIPE, "api_base", f"http://127.0.0.1:{server.server_port}")
        yield fake
        server.shutdown()
        thread.join()


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
        ("processing", TransientError, "STR-004"),
        ("requires_action", PermanentError, "STR-002"),
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
    house: House, far: FakeStripe
) -> None:
    far.lies = {"livemode": True}
    run = house.run()
    assert (run.state, reason(run)) == (life.APPROVAL, "STR-005")
    assert run.workspace.budgets.get(account="workspace/EUR").reserved == 12_000


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
