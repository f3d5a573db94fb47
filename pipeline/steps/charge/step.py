"""Step 6's adapter: one payment under the warrant."""

from nanovm_core.core.messages import Scalar
from pipeline.clock import now_ms
from pipeline.errors import PermanentError
from pipeline.steps.charge import destination, gateway
from pipeline.steps.work import Answer, Work, done


def charge(work: Work) -> Answer:
    """Pay, once, what the warrant says, to the account that it names and the register has."""
    args, account = work.effect.args, destination.of(work)
    payment = gateway.pay(
        gateway.Charge(
            key=work.effect.key,
            run=str(work.run.id),
            code=work.run.code,
            amount_minor=int(args["amount_minor"]),
            currency=str(args["currency"]),
            payment_method=str(args["payment_method"]),
            intent_ms=work.effect.at_ms,
            attempt=work.effect.attempt,
            created_ms=work.run.created_ms,
            destination=account,
        ),
        refused=_refusal(work, account),
        begun_before=work.begun_before,
        at_ms=now_ms(),
    )
    sealed = work.sealed({"payment": payment.id.encode()})
    known: dict[str, Scalar] = {"payment_status": payment.status, "payee_confirmed": bool(account)}
    return done(work, known, sealed)


def _refusal(work: Work, account: str) -> PermanentError | None:
    """Why nothing may be sent any more; an earlier try may have paid all the same."""
    try:
        destination.require_registered(work, account)
    except PermanentError as error:
        return error
    return None
