"""``wire_transfer``: money out of the balance to the bank, as a Stripe payout, once under its key.

The shipped program grants it to nobody.
"""

from typing import Any

import stripe

from engine.clock import now_ms
from engine.errors import NotSentError, OutcomeUnknownError, PermanentError, TransientError
from engine.work import Answer, Work, done
from pipeline.steps.charge import gateway
from reader.currencies import DECIMALS

GONE = ("failed", "canceled")


def wire_transfer(work: Work) -> Answer:
    """Pay out what the warrant says, or find the payout that an earlier try made.

    Whom the call names is not sent: Stripe pays out to the bank of the account alone.

    Raises:
        PermanentError: STR-001 the payout failed, STR-003 Stripe refused it; nothing left.
        TransientError: STR-004 or STR-007, the same key, later.
        OutcomeUnknownError: STR-004, STR-005; a person decides.
    """
    effect = work.effect
    currency = str(effect.args["currency"])
    minor = int(str(effect.args["amount"])) * 10 ** DECIMALS.get(currency, 2)
    params: dict[str, Any] = {
        "amount": gateway.stripe_amount(minor, currency),
        "currency": currency.lower(),
        "metadata": {"run": str(work.run.id), "code": work.run.code, "key": effect.key},
    }
    is_forgotten = now_ms() - effect.at_ms >= gateway.KEY_LIFE_MS
    is_again = work.begun_before or effect.attempt > 1 or is_forgotten
    found = _find(effect.key, effect.at_ms) if is_again else None
    if found is None and is_forgotten:
        raise OutcomeUnknownError("STR-004", gateway.CANNOT_TELL)
    payout = found or _post(params, effect.key)
    _check(payout, params)
    sealed = work.sealed({"payment": str(payout["id"]).encode()})
    return done(work, {"payment_status": str(payout["status"]), "payee_confirmed": False}, sealed)


def _post(params: dict[str, Any], key: str) -> dict[str, Any]:
    options: Any = {"idempotency_key": key}
    try:
        with gateway.refusals("payout", "nothing left"):
            return gateway.configured().v1.payouts.create(params, options).to_dict()  # type: ignore[arg-type]
    except stripe.StripeError as error:
        text = "Stripe had an internal error; checking its list, then trying again."
        raise TransientError("STR-004", text) from error


def _find(key: str, intent_ms: int) -> dict[str, Any] | None:
    try:
        since_ms = intent_ms - gateway.KEY_LIFE_MS
        return gateway.by_key("payouts", key, since_ms)
    except stripe.StripeError as error:
        raise NotSentError("STR-007", "Stripe's list could not be read; trying again.") from error


def _check(payout: dict[str, Any], params: dict[str, Any]) -> None:
    """Return if Stripe's record is the payout that was authorized, and it did not fail."""
    got = {name: payout.get(name) for name in params}
    if got != params or payout.get("livemode") is not False:
        text = "Stripe's answer is not the payout that was authorized; compare both, then decide."
        raise OutcomeUnknownError("STR-005", text)
    if payout.get("status") in GONE:
        raise PermanentError("STR-001", f"The payout ended as {payout['status']}; nothing left.")
