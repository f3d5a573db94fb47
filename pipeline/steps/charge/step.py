"""Step 6's adapter: one payment under the warrant."""

from pipeline.clock import now_ms
from pipeline.steps.charge import gateway
from pipeline.steps.work import Answer, Work, done


def charge(work: Work) -> Answer:
    """Pay, once, what the warrant says."""
    args = work.effect.args
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
        ),
        begun_before=work.begun_before,
        at_ms=now_ms(),
    )
    sealed = work.sealed({"payment": payment.id.encode()})
    return done(work, {"payment_status": payment.status}, sealed)
