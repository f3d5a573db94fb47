"""What this product relies on at Stripe, as checks: of test mode, or of the local counterpart.

One list for both: `manage.py stripe_check` runs it, and so do the counterpart's tests. Each check
makes the objects that it looks at, and leaves them there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
class Finding:
    """What came of one check; ``text`` says what differs, or why it was not possible."""

    name: str
    verdict: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Far:
    """The far side of one check: a client, and a mark of its own for what it makes."""

    client: stripe.StripeClient
    mark: str

    def pay(self, *, key: str = "", **changes: Any) -> Body:
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
        return self.client.v1.payment_intents.create(params, options).to_dict()

    def read(self, intent: Body, **params: Any) -> Body:
        """Stripe's record of a payment now."""
        given: Any = params
        return self.client.v1.payment_intents.retrieve(intent["id"], given).to_dict()

    def listed(self) -> list[Body]:
        """This check's payments in the newest page of the list."""
        page = self.client.v1.payment_intents.list({"limit": 100}).data
        return [
            each.to_dict() for each in page if each.to_dict()["metadata"].get("key") == self.mark
        ]


def checked(client: stripe.StripeClient) -> Iterator[Finding]:
    """Run every check, one after the other."""
    for name in CHECKS:
        yield run(name, client)


def run(name: str, client: stripe.StripeClient) -> Finding:
    """Run one check of the list."""
    said = name.replace("_", " ")
    try:
        CHECKS[name](Far(client, f"check-{uuid4()}"))
    except AssertionError as error:
        return Finding(name=said, verdict=DIFFERS, text=str(error))
    except NotPossibleError as error:
        return Finding(name=said, verdict=NOT_POSSIBLE, text=str(error))
    except stripe.StripeError as error:
        text = f"{type(error).__name__} {error.http_status or ''} {error.code or ''}"
        return Finding(name=said, verdict=DIFFERS, text=" ".join(text.split()))
    return Finding(name=said, verdict=SAME)


def expect(what: str, found: object, wanted: object) -> None:
    """Return if both are equal.

    Raises:
        AssertionError: naming what differs, and both values.
    """
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, found {found!r}")


def parts(body: Mapping[str, Any], *names: str) -> Body:
    """Some fields of an object."""
    return {name: body.get(name) for name in names}


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


# --- the list ------------------------------------------------------------------------------------


def a_good_card_pays_at_once(far: Far) -> None:
    intent = far.pay()
    wanted = {"object": "payment_intent", "status": "succeeded", "amount": AMOUNT}
    wanted |= {"amount_received": AMOUNT, "currency": "usd", "livemode": False}
    expect("the payment", parts(intent, *wanted), wanted)
    expect("its metadata", intent["metadata"], {"run": far.mark, "key": far.mark})
    expect("its payment method's prefix", str(intent["payment_method"])[:3], "pm_")


def the_record_is_the_answer(far: Far) -> None:
    intent = far.pay()
    names = ("id", "status", "amount", "amount_received", "currency", "metadata", "livemode")
    expect("the record", parts(far.read(intent), *names), parts(intent, *names))


def a_new_payment_is_in_the_list_at_once(far: Far) -> None:
    intent = far.pay()
    expect("the listed ids", [each["id"] for each in far.listed()], [intent["id"]])


def a_key_pays_once(far: Far) -> None:
    first, again = far.pay(key=far.mark), far.pay(key=far.mark)
    expect("the second answer's id", again["id"], first["id"])
    expect("the payments", len(far.listed()), 1)


def a_key_for_another_request_is_refused(far: Far) -> None:
    far.pay(key=far.mark)
    error = _refused(stripe.IdempotencyError, lambda: far.pay(key=far.mark, amount=AMOUNT + 1))
    expect("the status", error.http_status, 400)
    expect("the payments", len(far.listed()), 1)


def a_declined_card_is_a_card_error(far: Far) -> None:
    error = _refused(stripe.CardError, lambda: far.pay(payment_method=DECLINED))
    expect("status and code", (error.http_status, error.code), (402, "card_declined"))
    (intent,) = far.listed()
    wanted = {"status": "requires_payment_method", "amount_received": 0, "payment_method": None}
    expect("the payment", parts(intent, *wanted), wanted)


def a_decline_is_replayed_under_its_key(far: Far) -> None:
    for _ in range(2):
        _refused(stripe.CardError, lambda: far.pay(key=far.mark, payment_method=DECLINED))
    expect("the payments", len(far.listed()), 1)


def an_amount_that_is_too_small_is_refused(far: Far) -> None:
    error = _refused(stripe.InvalidRequestError, lambda: far.pay(amount=1))
    expect("status and code", (error.http_status, error.code), (400, "amount_too_small"))


def an_unknown_parameter_is_refused(far: Far) -> None:
    error = _refused(stripe.InvalidRequestError, lambda: far.pay(colour="red"))
    expect("status and code", (error.http_status, error.code), (400, "parameter_unknown"))


def an_owner_is_asked_to_authenticate(far: Far) -> None:
    intent = far.pay(payment_method=OWNER)
    wanted = {"status": "requires_action", "amount_received": 0}
    expect("the payment", parts(intent, *wanted), wanted)
    expect("whether there is a next action", bool(intent.get("next_action")), True)


def a_payment_under_way_is_canceled(far: Far) -> None:
    intent = far.pay(payment_method=OWNER)
    gone = far.client.v1.payment_intents.cancel(intent["id"]).to_dict()
    wanted = {"status": "canceled", "amount_received": 0}
    expect("the payment", parts(gone, *wanted), wanted)
    error = _refused(
        stripe.InvalidRequestError, lambda: far.client.v1.payment_intents.cancel(intent["id"])
    )
    expect("the second time", error.code, "payment_intent_unexpected_state")


def a_bank_debit_is_processing(far: Far) -> None:
    try:
        intent = far.pay(payment_method=DEBIT)
    except stripe.InvalidRequestError as error:
        if error.code == "payment_intent_mandate_invalid" or "mandate" in str(error.user_message):
            raise NotPossibleError("this account asks for a mandate") from error
        raise NotPossibleError("this account takes no US bank debits") from error
    wanted = {"status": "processing", "amount_received": 0}
    expect("the payment", parts(intent, *wanted), wanted)


def a_refund_is_on_the_charge(far: Far) -> None:
    intent = far.pay()
    far.client.v1.refunds.create({"payment_intent": intent["id"], "amount": 500})
    charge = far.read(intent, expand=["latest_charge"])["latest_charge"]
    expect(
        "the charge",
        parts(charge, "amount_refunded", "refunded"),
        {"amount_refunded": 500, "refunded": False},
    )
    expect("the charge's metadata", charge["metadata"].get("run"), far.mark)


def a_dispute_is_found_by_its_payment(far: Far) -> None:
    intent = far.pay(payment_method=DISPUTED)
    disputes = far.client.v1.disputes
    found = _awaited(lambda: disputes.list({"payment_intent": intent["id"]}).data)
    expect("the status of each", [each.status for each in found], ["needs_response"])


def an_event_names_the_run(far: Far) -> None:
    intent = far.pay()
    kind, events = "payment_intent.succeeded", far.client.v1.events

    def named() -> list[object]:
        page = events.list({"limit": 100, "type": kind}).data
        objects = [each.to_dict()["data"]["object"] for each in page]
        return [each["metadata"].get("run") for each in objects if each["id"] == intent["id"]]

    expect("the runs that its events name", _awaited(named), [far.mark])


def a_destination_is_paid(far: Far) -> None:
    capabilities: Any = {name: {"requested": True} for name in ("card_payments", "transfers")}
    try:
        account = far.client.v1.accounts.create(
            {"type": "custom", "country": "US", "capabilities": capabilities}
        )
    except (stripe.InvalidRequestError, stripe.PermissionError) as error:
        raise NotPossibleError("this account has no Connect") from error
    if getattr(account.capabilities, "transfers", "") != "active":
        raise NotPossibleError("a connected account here needs onboarding first")
    intent = far.pay(transfer_data={"destination": account.id})
    expect("the destination", intent["transfer_data"]["destination"], account.id)


def another_key_is_refused(far: Far) -> None:
    options: stripe.RequestOptions = {"api_key": "sk_test_of_nobody_at_all"}
    intents = far.client.v1.payment_intents
    error = _refused(stripe.AuthenticationError, lambda: intents.list(options=options))
    expect("the status", error.http_status, 401)


CHECKS: Mapping[str, Callable[[Far], None]] = {
    check.__name__: check
    for check in (
        a_good_card_pays_at_once,
        the_record_is_the_answer,
        a_new_payment_is_in_the_list_at_once,
        a_key_pays_once,
        a_key_for_another_request_is_refused,
        a_declined_card_is_a_card_error,
        a_decline_is_replayed_under_its_key,
        an_amount_that_is_too_small_is_refused,
        an_unknown_parameter_is_refused,
        an_owner_is_asked_to_authenticate,
        a_payment_under_way_is_canceled,
        a_bank_debit_is_processing,
        a_refund_is_on_the_charge,
        a_dispute_is_found_by_its_payment,
        an_event_names_the_run,
        a_destination_is_paid,
        another_key_is_refused,
    )
}
