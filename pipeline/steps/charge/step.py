"""Step 6's adapter: one payment under the warrant, and what becomes of one that is under way."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.clock import now_ms
from engine.errors import FailedForNowError, PermanentError
from engine.models import Run
from engine.vault.secret_store import Sealed
from engine.work import Answer, Work, done
from nanovm_core.core.events import AnswerArrived, EffectWaiting
from nanovm_core.core.messages import Effect, Scalar
from pipeline.labels import NO_REFERENCE
from pipeline.steps.charge import accounts, gateway
from pipeline.steps.charge.gateway import Charge, UnderWayError


def charge(work: Work) -> Answer:
    """Pay, once, what the warrant says, to the account that it names and the register has.

    Where the card's owner or a bank has to act first, the run waits for them.
    """
    said = work.opened("reference").decode() if "reference" in work.effect.args else NO_REFERENCE
    reference = "" if said == NO_REFERENCE else said
    named = replace(charge_of(work.run, work.effect), reference=reference)
    try:
        payment = gateway.pay(
            named,
            refused=accounts.refusal(work, named.destination),
            begun_before=work.begun_before,
            at_ms=now_ms(),
        )
    except UnderWayError as error:
        return Answer(event=EffectWaiting(key=work.effect.key), outcome=error.status)
    clear, sealed = _outputs(work, payment, named.destination)
    return done(work, clear, sealed)


def ask(work: Work, *, is_late: bool) -> Answer:
    """What became of a payment that is under way, by Stripe's own record.

    ``is_late``: nobody waits any longer, so it is canceled where it is not paid.

    Raises:
        TransientError, OutcomeUnknownError: nothing is known now; ask again, or a person decides.
    """
    named = charge_of(work.run, work.effect)
    try:
        payment = gateway.give_up(named) if is_late else gateway.find_outcome(named)
    except UnderWayError as error:
        return Answer(event=EffectWaiting(key=work.effect.key), outcome=error.status)
    except (PermanentError, FailedForNowError) as error:
        return Answer(event=_arrived(work, code=error.code, text=error.text))
    clear, sealed = _outputs(work, payment, named.destination)
    out = {**clear, **{slot: each.ref for slot, each in sealed.items()}}
    secrets = tuple(sealed.values())
    event = _arrived(work, out=out, secrets=tuple(each.commitment for each in secrets))
    return Answer(event=event, secrets=secrets)


def charge_of(run: Run, effect: Effect) -> Charge:
    """The authorized payment of an effect, to the account that ``accounts.named_by`` reads."""
    args = effect.args
    return Charge(
        key=effect.key,
        run=str(run.id),
        code=run.code,
        amount_minor=int(str(args["amount_minor"])),
        currency=str(args["currency"]),
        payment_method=str(args["payment_method"]),
        intent_ms=effect.at_ms,
        attempt=effect.attempt,
        created_ms=run.created_ms,
        destination=accounts.named_by(effect),
    )


def _outputs(
    work: Work, payment: str, account: str
) -> tuple[dict[str, Scalar], Mapping[str, Sealed]]:
    clear: dict[str, Scalar] = {"payment_status": "succeeded", "payee_confirmed": bool(account)}
    return clear, work.sealed({"payment": payment.encode()})


def _arrived(work: Work, **said: Any) -> AnswerArrived:
    run, program = str(work.run.id), work.program.hash
    return AnswerArrived(run=run, program=program, key=work.effect.key, **said)
