"""What this product relies on at Stripe, as checks: of test mode, or of the local counterpart.

One list for both: `manage.py stripe_check` runs it, and so do the counterpart's tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import stripe

from engine.clock import sleep_ms
from engine.entropy import uuid4

Body = dict[str, Any]
GOOD, DECLINED, OWNER = "pm_card_visa", "pm_card_chargeDeclined", "pm_card_threeDSecure2Required"
DEBIT, DISPUTED = "pm_usBankAccount_processing", "pm_card_createDispute"
AUTOMATIC = {"enabled": True, "allow_redirects": "never"}
SAME, DIFFERS, NOT_POSSIBLE = "same", "differs", "not possible here"
AMOUNT = 1_099
LOOKS_MAX, LOOK_EVERY_MS = 20, 500
T = TypeVar("T")


class NotPossibleError(Exception):
    """This account cannot be asked that: it lacks what the check needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What came of one check; ``text`` says what differs, or why it was not possible."""

    name: str
    verdict: str
    text: str = ""


def expect(what: str, found: object, wanted: object) -> None:
    """Return if both are equal; else AssertionError names what differs, and both values."""
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, found {found!r}")


def expect_fields(what: str, body: Body, **wanted: object) -> None:
    """Return if an object has these fields; it may have others."""
    expect(what, {name: body.get(name) for name in wanted}, wanted)


def _refused(kind: type[stripe.StripeError], call: Callable[[], object]) -> stripe.StripeError:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, and the request was accepted")


def _awaited(look: Callable[[], list[T]]) -> list[T]:
    """What comes of looking until there is something: at Stripe it takes seconds."""
    for _ in range(LOOKS_MAX):
        if found := look():
            return found
        sleep_ms(LOOK_EVERY_MS)
    raise NotPossibleError("it did not come in time; try again later")


class Far:
    """The far side of one check, which marks what it makes. The checks are its public methods."""

    def __init__(self, client: stripe.StripeClient) -> None:
        self.v1, self.mark = client.v1, f"check-{uuid4()}"

    def _pay(self, *, key: str = "", **changes: Any) -> Body:
        """Create and confirm a payment as the pipeline does; what is refused raises."""
        params: Any = {
            "amount": AMOUNT,
            "currency": "usd",
            "confirm": True,
            "payment_method": GOOD,
            "automatic_payment_methods": AUTOMATIC,
            "metadata": {"run": self.mark, "key": self.mark},
            **changes,
        }
        options: stripe.RequestOptions = {"idempotency_key": key} if key else {}
        return self.v1.payment_intents.create(params, options).to_dict()

    def _read(self, intent: Body, **params: Any) -> Body:
        given: Any = params
        return self.v1.payment_intents.retrieve(intent["id"], given).to_dict()

    def _listed(self) -> list[Body]:
        """This check's payments in the newest page of the list."""
        page = [each.to_dict() for each in self.v1.payment_intents.list({"limit": 100}).data]
        return [each for each in page if each["metadata"].get("key") == self.mark]

    def a_good_card_pays_at_once(self) -> None:
        intent = self._pay()
        wanted = {"object": "payment_intent", "status": "succeeded", "amount": AMOUNT}
        wanted |= {"amount_received": AMOUNT, "currency": "usd", "livemode": False}
        expect_fields("the payment", intent, **wanted)
        expect("its metadata", intent["metadata"], {"run": self.mark, "key": self.mark})
        expect("its payment method's prefix", str(intent["payment_method"])[:3], "pm_")

    def the_record_is_the_answer(self) -> None:
        intent = self._pay()
        names = ("id", "status", "amount", "amount_received", "currency", "metadata", "livemode")
        expect_fields("the record", self._read(intent), **{name: intent[name] for name in names})

    def a_new_payment_is_in_the_list_at_once(self) -> None:
        intent = self._pay()
        expect("the listed ids", [each["id"] for each in self._listed()], [intent["id"]])

    def a_key_pays_once(self) -> None:
        first, again = self._pay(key=self.mark), self._pay(key=self.mark)
        expect("the second answer's id", again["id"], first["id"])
        expect("the payments", len(self._listed()), 1)

    def a_key_for_another_request_is_refused(self) -> None:
        self._pay(key=self.mark)
        another = partial(self._pay, key=self.mark, amount=AMOUNT + 1)
        error = _refused(stripe.IdempotencyError, another)
        expect("the status", error.http_status, 400)
        expect("the payments", len(self._listed()), 1)

    def a_declined_card_is_a_card_error(self) -> None:
        error = _refused(stripe.CardError, lambda: self._pay(payment_method=DECLINED))
        expect("status and code", (error.http_status, error.code), (402, "card_declined"))
        (intent,) = self._listed()
        wanted = {"status": "requires_payment_method", "amount_received": 0, "payment_method": None}
        expect_fields("the payment", intent, **wanted)

    def a_decline_is_replayed_under_its_key(self) -> None:
        for _ in range(2):
            _refused(stripe.CardError, lambda: self._pay(key=self.mark, payment_method=DECLINED))
        expect("the payments", len(self._listed()), 1)

    def an_amount_that_is_too_small_is_refused(self) -> None:
        error = _refused(stripe.InvalidRequestError, lambda: self._pay(amount=1))
        expect("status and code", (error.http_status, error.code), (400, "amount_too_small"))

    def an_unknown_parameter_is_refused(self) -> None:
        error = _refused(stripe.InvalidRequestError, lambda: self._pay(colour="red"))
        expect("status and code", (error.http_status, error.code), (400, "parameter_unknown"))

    def an_owner_is_asked_to_authenticate(self) -> None:
        intent = self._pay(payment_method=OWNER)
        expect_fields("the payment", intent, status="requires_action", amount_received=0)
        expect("whether there is a next action", bool(intent.get("next_action")), True)

    def a_payment_under_way_is_canceled(self) -> None:
        intent, intents = self._pay(payment_method=OWNER), self.v1.payment_intents
        gone = intents.cancel(intent["id"]).to_dict()
        expect_fields("the payment", gone, status="canceled", amount_received=0)
        error = _refused(stripe.InvalidRequestError, lambda: intents.cancel(intent["id"]))
        expect("the second time", error.code, "payment_intent_unexpected_state")

    def a_bank_debit_is_processing(self) -> None:
        try:
            intent = self._pay(payment_method=DEBIT)
        except stripe.InvalidRequestError as error:
            if "mandate" in f"{error.code} {error.user_message}":
                raise NotPossibleError("this account asks for a mandate") from error
            raise NotPossibleError("this account takes no US bank debits") from error
        expect_fields("the payment", intent, status="processing", amount_received=0)

    def a_refund_is_on_the_charge(self) -> None:
        intent = self._pay()
        self.v1.refunds.create({"payment_intent": intent["id"], "amount": 500})
        charge = self._read(intent, expand=["latest_charge"])["latest_charge"]
        expect_fields("the charge", charge, amount_refunded=500, refunded=False)
        expect("the charge's metadata", charge["metadata"].get("run"), self.mark)

    def a_dispute_is_found_by_its_payment(self) -> None:
        intent = self._pay(payment_method=DISPUTED)
        disputes = self.v1.disputes
        found = _awaited(lambda: disputes.list({"payment_intent": intent["id"]}).data)
        expect("the status of each", [each.status for each in found], ["needs_response"])

    def an_event_names_the_run(self) -> None:
        intent = self._pay()
        kind, events = "payment_intent.succeeded", self.v1.events

        def named() -> list[object]:
            page = events.list({"limit": 100, "type": kind}).data
            objects = [each.to_dict()["data"]["object"] for each in page]
            return [each["metadata"].get("run") for each in objects if each["id"] == intent["id"]]

        expect("the runs that its events name", _awaited(named), [self.mark])

    def a_destination_is_paid(self) -> None:
        capabilities: Any = {name: {"requested": True} for name in ("card_payments", "transfers")}
        try:
            account = self.v1.accounts.create(
                {"type": "custom", "country": "US", "capabilities": capabilities}
            )
        except (stripe.InvalidRequestError, stripe.PermissionError) as error:
            raise NotPossibleError("this account has no Connect") from error
        if getattr(account.capabilities, "transfers", "") != "active":
            raise NotPossibleError("a connected account here needs onboarding first")
        intent = self._pay(transfer_data={"destination": account.id})
        expect("the destination", intent["transfer_data"]["destination"], account.id)

    def another_key_is_refused(self) -> None:
        options: stripe.RequestOptions = {"api_key": "sk_test_of_nobody_at_all"}
        intents = self.v1.payment_intents
        error = _refused(stripe.AuthenticationError, lambda: intents.list(options=options))
        expect("the status", error.http_status, 401)


CHECKS = {name: check for name, check in vars(Far).items() if not name.startswith("_")}


def run(name: str, client: stripe.StripeClient) -> CheckResult:
    said = name.replace("_", " ")
    try:
        CHECKS[name](Far(client))
    except AssertionError as error:
        return CheckResult(name=said, verdict=DIFFERS, text=str(error))
    except NotPossibleError as error:
        return CheckResult(name=said, verdict=NOT_POSSIBLE, text=str(error))
    except stripe.StripeError as error:
        text = f"{type(error).__name__} {error.http_status or ''} {error.code or ''}"
        return CheckResult(name=said, verdict=DIFFERS, text=" ".join(text.split()))
    return CheckResult(name=said, verdict=SAME)
