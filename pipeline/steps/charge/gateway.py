"""The Stripe client: one payment under one key, in test mode or at the local counterpart."""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import stripe
from django.conf import settings
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from engine.errors import (
    EffectError,
    FailedForNowError,
    NotSentError,
    OutcomeUnknownError,
    PermanentError,
    TransientError,
)
from engine.store import tail
from nanovm_core.core.messages import Scalar
from pipeline.steps.charge.bounded import MeasuredClient
from reader.currencies import DECIMALS, STRIPE_UNITS

LOOK_BACK_S = 300  # the two clocks may differ by this much
KEY_LIFE_MS = tail.KEY_LIFE_MS  # Stripe forgets an idempotency key after this
TIMEOUT_S = 20
PAGES_MAX, LIST_S_MAX = 200, 60  # of one list: 20,000 objects
API_VERSION = "2026-08-26.dahlia"  # the version whose shapes the counterpart answers with
NOT_PAID = ("requires_payment_method", "canceled")  # if nothing was received
UNDER_WAY = ("requires_action", "processing")  # a bank, or the card's owner, has to act first
UNAUTHENTICATED = "payment_intent_authentication_failure"
# The issuer could not be asked (Stripe's documentation, "Decline codes"): another try may succeed.
FOR_NOW = ("processing_error", "issuer_not_available", "reenter_transaction", "try_again_later")
ALIASES = ("pm_card_", "pm_usBankAccount_")  # of test methods
METHOD_ID = re.compile(r"pm_[A-Za-z0-9]+")
CANNOT_TELL = "Stripe did not say whether the payment happened; look at its dashboard, then decide."


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One authorized payment. Nothing of it is personal but ``reference``, the supplier's own.

    ``created_ms``: when the run was created. No envelope seals it, so it can only have more of
    Stripe's list read, never less. ``destination``: the payee's account; without one it is a plain
    charge, and Stripe does not know the payee.
    """

    key: str
    run: str
    code: str
    amount_minor: int
    currency: str
    payment_method: str
    intent_ms: int
    attempt: int = 1
    created_ms: int = 0
    destination: str = ""
    reference: str = field(default="", repr=False)


class UnderWayError(EffectError):
    """The payment is neither made nor failed yet. ``status`` is Stripe's; ``page`` completes it."""

    def __init__(self, status: str, page: str) -> None:
        super().__init__("STR-010", "The payment is under way at Stripe.")
        self.status, self.page = status, page


Intent = dict[str, Any]  # a PaymentIntent as Stripe answered it; no field is certain


@lru_cache(maxsize=4)
def client(key: str, api_base: str | None, timeout_s: float) -> stripe.StripeClient:
    """A client for this key: of Stripe's test mode, or of the counterpart at ``api_base``."""
    http = MeasuredClient(timeout=timeout_s)
    elsewhere: dict[str, Any] = {"base_addresses": {"api": api_base}} if api_base else {}
    return stripe.StripeClient(
        key, http_client=http, max_network_retries=0, stripe_version=API_VERSION, **elsewhere
    )


def configured() -> stripe.StripeClient:
    return client(settings.STRIPE["key"], settings.STRIPE["api_base"], TIMEOUT_S)


def stripe_amount(amount_minor: int, currency: str) -> int:
    """The amount as Stripe counts it, exactly; STR-003 where it has no unit that small."""
    amount = amount_minor * STRIPE_UNITS.get(currency, Fraction(1))
    rounded = 10 if DECIMALS.get(currency) == 3 else 1  # as Stripe takes three decimals
    if amount % rounded:
        text = f"Stripe cannot take this amount of {currency} exactly; nothing was paid."
        raise PermanentError("STR-003", text)
    return int(amount)


def pay(
    charge: Charge, *, begun_before: bool, at_ms: int, refused: PermanentError | None = None
) -> str:
    """Make the payment, or find it where an earlier try made it; Stripe's id of it.

    One POST with ``confirm=true`` under the derived key. After a try of unknown outcome, Stripe's
    own list is read first; only the identical request is ever sent again. Another attempt, under
    another key, reads the list too, whatever our records say of the earlier ones.

    Stripe may have forgotten a key that is older than KEY_LIFE_MS, so nothing is sent under it.
    Its age is counted from the sealed intent: our record of what was begun may be lost or deleted.

    ``refused``: why nothing may be sent any more. It is raised where no earlier try can have paid.

    Raises:
        PermanentError: STR-001 to STR-003, nothing was paid.
        FailedForNowError: STR-001, nothing was paid, and the next attempt may succeed.
        NotSentError: STR-007, Stripe could not be reached or is too busy; this try did nothing.
        TransientError: STR-004, the outcome is unknown or under way; same key, later.
        OutcomeUnknownError: STR-004 to STR-006; a person decides.
        UnderWayError: it waits for the card's owner or a bank; see ``find_outcome``.
    """
    is_forgotten = at_ms - charge.intent_ms >= KEY_LIFE_MS
    if begun_before or charge.attempt > 1 or is_forgotten or refused:
        found = _find(charge)
        if found is not None:
            return _checked(charge, found)
    if is_forgotten:
        raise OutcomeUnknownError("STR-004", CANNOT_TELL)
    if refused:
        if begun_before:
            text = f"{refused.text} An earlier try may have paid: check Stripe, then decide."
            raise OutcomeUnknownError(refused.code, text) from refused
        raise refused
    return _checked(charge, _post(charge))


def find_outcome(charge: Charge) -> str:
    """The id of a payment that was under way and is made; STR-004 where Stripe has none."""
    return _checked(charge, _recorded(charge))


def give_up(charge: Charge) -> str:
    """Cancel a payment that is still under way, unless it was made meanwhile: then its id.

    Raises:
        As ``find_outcome``; PermanentError (STR-010): it is canceled now, and nothing was paid.
        UnderWayError: Stripe did not cancel it, so it may still be paid.
    """
    try:
        return find_outcome(charge)
    except UnderWayError:
        _cancel(charge)
    found = _recorded(charge)
    _require_same(charge, found)
    if found.get("status") == "canceled" and is_unpaid(found):
        text = "The payment was not completed in time and was canceled; nothing was paid."
        raise PermanentError("STR-010", text)
    return _checked(charge, found)


def _recorded(charge: Charge) -> Intent:
    found = _find(charge)
    if found is None:
        raise OutcomeUnknownError("STR-004", CANNOT_TELL)
    return found


def _cancel(charge: Charge) -> None:
    """Ask Stripe to cancel; one that it does not cancel is seen in its record afterwards."""
    key = f"{charge.key}-cancel"
    try:
        intent = _recorded(charge)
        configured().v1.payment_intents.cancel(intent["id"], {}, {"idempotency_key": key})
    except stripe.InvalidRequestError:
        return
    except stripe.StripeError as error:
        raise TransientError("STR-004", "Stripe did not answer; asking again.") from error


def _post(charge: Charge) -> Intent:
    params: dict[str, Any] = {
        "amount": stripe_amount(charge.amount_minor, charge.currency),
        "currency": charge.currency.lower(),
        "confirm": True,
        "payment_method": charge.payment_method,
        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        "metadata": {"run": charge.run, "code": charge.code, "key": charge.key},
    }
    if charge.reference:
        params["description"] = charge.reference
    if charge.destination:
        params["transfer_data"] = {"destination": charge.destination}
    try:
        with refusals("request", "nothing was paid"):
            answer = configured().v1.payment_intents.create(
                params,  # type: ignore[arg-type]
                {"idempotency_key": charge.key},
            )
            return answer.to_dict()
    except stripe.CardError as error:
        raise _declined(error) from error
    except stripe.StripeError as error:
        if error.http_status == 409:
            text = "Another request with this key is in progress."
            raise TransientError("STR-004", text) from error
        return _after_error(charge, error)


@contextmanager
def refusals(what: str, nothing: str) -> Iterator[None]:
    """Raise as the failure of an effect that Stripe refused it or was not reached."""
    try:
        yield
    except stripe.RateLimitError as error:
        raise NotSentError("STR-007", "Stripe is too busy; trying again.") from error
    except stripe.APIConnectionError as error:
        raise _unreached(error) from error
    except stripe.InvalidRequestError as error:
        text = f"Stripe refused the {what} ({error.code or error.http_status}); {nothing}."
        raise PermanentError("STR-003", text) from error
    except (stripe.AuthenticationError, stripe.PermissionError) as error:
        raise PermanentError("STR-003", f"Stripe refused the key; {nothing}.") from error


def _unreached(error: stripe.APIConnectionError) -> TransientError:
    """What to raise where no answer came: NotSentError where nothing can have been sent."""
    cause = error.__cause__
    reason = getattr(cause.args[0], "reason", None) if cause and cause.args else None
    if isinstance(reason, NewConnectionError | ConnectTimeoutError):
        return NotSentError("STR-007", "Stripe could not be reached; trying again.")
    return TransientError("STR-004", "Stripe did not answer; checking its list, then trying again.")


def _after_error(charge: Charge, error: stripe.StripeError) -> Intent:
    """After a 500, look into the list. A replayed 500 will not change, so a person decides."""
    text = "Stripe had an internal error; checking its list, then trying again."
    again = TransientError("STR-004", text)
    try:
        found = _find(charge)
    except NotSentError:
        raise again from error  # the list was not read, but the payment was asked for
    if found is not None:
        return found
    replayed = (error.headers or {}).get("Idempotent-Replayed") == "true"
    if replayed or (error.http_status or 500) < 500:
        raise OutcomeUnknownError("STR-004", CANNOT_TELL) from error
    raise again from error


def _find(charge: Charge) -> Intent | None:
    """The payment under this key in Stripe's own list; STR-006 for one of an earlier attempt."""
    earliest_ms = charge.intent_ms
    if charge.attempt > 1:
        earliest_ms = min(charge.created_ms, charge.intent_ms - KEY_LIFE_MS)
    other = False
    try:
        for intent in listed("payment_intents", earliest_ms):
            named = metadata(intent)
            if named.get("key") == charge.key:
                return intent
            other |= named.get("run") == charge.run and not is_unpaid(intent)
    except stripe.StripeError as error:
        raise NotSentError("STR-007", "Stripe's list could not be read; trying again.") from error
    if other:
        text = "Stripe has a payment from an earlier attempt of this run; compare, then decide."
        raise OutcomeUnknownError("STR-006", text)
    return None


def listed(
    kind: str, since_ms: int, of: stripe.StripeClient | None = None, *, expand: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """What Stripe made since then, by its own list of this kind, of which all pages are read.

    It is given as JSON: the SDK's objects cost four times as much.

    Raises:
        OutcomeUnknownError: STR-004, the list does not end in time, or repeats itself: what it
            does not name may exist all the same.
    """
    until, seen = time.monotonic() + LIST_S_MAX, set[str]()
    since_s = max(0, since_ms // 1000 - LOOK_BACK_S)
    params: dict[str, Any] = {"created": {"gte": since_s}, "limit": 100, "expand": expand}
    for _ in range(PAGES_MAX):
        page = json.loads((of or configured()).raw_request("get", f"/v1/{kind}", **params).body)
        yield from page["data"]
        if page["has_more"] is False:
            return
        names = [each["id"] for each in page["data"]]
        if not names or seen.intersection(names) or time.monotonic() > until:
            break
        seen.update(names)
        params["starting_after"] = names[-1]
    raise OutcomeUnknownError("STR-004", CANNOT_TELL)


def by_key(kind: str, key: str, since_ms: int) -> dict[str, Any] | None:
    """The object of this key in Stripe's own list, as ``listed`` reads it; None for none."""
    found = listed(kind, since_ms)
    return next((each for each in found if metadata(each).get("key") == key), None)


def _checked(charge: Charge, intent: Intent) -> str:
    """The payment's id, if Stripe's answer is the one that was authorized and it succeeded."""
    _require_same(charge, intent)
    status = intent.get("status")
    if status == "succeeded":
        return str(intent["id"])
    if status in UNDER_WAY and intent.get("amount_received") == 0:
        raise UnderWayError(status, page_of(intent))
    if not is_unpaid(intent):
        raise OutcomeUnknownError("STR-004", CANNOT_TELL)
    if (intent.get("last_payment_error") or {}).get("code") == UNAUTHENTICATED:
        raise PermanentError("STR-002", "The card's owner did not authenticate; nothing was paid.")
    raise PermanentError("STR-001", f"The payment ended as {status}; nothing was paid.")


def page_of(intent: Intent) -> str:
    """Where the card's owner completes the payment: at Stripe or its counterpart, else empty.

    Without a return address Stripe names the page for its own script alone.
    """
    action = intent.get("next_action") or {}
    named = (action.get("redirect_to_url") or {}).get("url")
    page = str(named or (action.get("use_stripe_sdk") or {}).get("stripe_js") or "")
    parts = urlsplit(page)
    host, base = parts.hostname or "", urlsplit(settings.STRIPE["api_base"] or "")
    local = base.netloc != "" and (parts.scheme, parts.netloc) == (base.scheme, base.netloc)
    at_stripe = parts.scheme == "https" and host.endswith(".stripe.com")
    return page if (local or at_stripe) and "\\" not in page else ""  # browsers read it as "/"


def is_unpaid(intent: Intent) -> bool:
    """Whether an answer says that nothing was paid; any other answer may be a payment."""
    return intent.get("status") in NOT_PAID and intent.get("amount_received") == 0


def _require_same(charge: Charge, intent: Intent) -> None:
    """Return if an answer is about the authorized payment, in test mode, and all of it: STR-005."""
    named = metadata(intent)
    amount, currency = stripe_amount(charge.amount_minor, charge.currency), charge.currency.lower()
    sent: list[object] = ["payment_intent", True, amount, currency, charge.run, charge.key, False]
    got = [intent.get("object"), bool(intent.get("id")), intent.get("amount")]
    got += [intent.get("currency"), named.get("run"), named.get("key"), intent.get("livemode")]
    sent.append(charge.destination)
    got.append(_destination(intent))
    if intent.get("status") == "succeeded":  # a failed attempt received nothing, by no method
        sent += [amount, True]
        got += [intent.get("amount_received"), _is_method(charge, intent.get("payment_method"))]
    if sent != got:
        text = "Stripe's answer is not the payment that was authorized; compare both, then decide."
        raise OutcomeUnknownError("STR-005", text)


def _destination(intent: Intent) -> object:
    """Whom the money goes to by Stripe's record; empty for a plain charge, None where unclear."""
    data = intent.get("transfer_data")
    if data is None:
        return ""
    return data.get("destination") if isinstance(data, dict) and not data.get("amount") else None


def _is_method(charge: Charge, got: object) -> bool:
    """Whether an answer names the payment method that was sent.

    Of an alias for a test card, such as ``pm_card_visa``, Stripe makes a method with an id.
    """
    is_alias = charge.payment_method.startswith(ALIASES)
    return METHOD_ID.fullmatch(str(got)) is not None if is_alias else got == charge.payment_method


def metadata(intent: Intent) -> Mapping[str, Scalar]:
    """What the runtime said of a payment when it asked for it."""
    return intent.get("metadata") or {}


def _declined(error: stripe.CardError) -> PermanentError | FailedForNowError:
    if error.code == "authentication_required":
        return PermanentError("STR-002", "The card needs authentication; nothing was paid.")
    cause = getattr(error.error, "decline_code", None) or error.code or "declined"
    kind = FailedForNowError if cause in FOR_NOW else PermanentError
    return kind("STR-001", f"The card was declined ({cause}); nothing was paid.")
