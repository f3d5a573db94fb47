"""What the far side says of a run's payment: the page that completes it."""

from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.lifecycle import WAITING
from pipeline.errors import EffectError
from pipeline.models import Run
from pipeline.queries.runs import RunHead
from pipeline.steps.charge import gateway
from pipeline.steps.charge.step import charge_of


def bank_page(run: RunHead) -> str:
    """Where the card's owner authenticates a waiting payment, as Stripe says now; else empty.

    It is asked for each time and kept nowhere: the address names Stripe's objects.
    """
    row = Run.objects.get(id=run.id)
    owed = decode_snapshot(bytes(row.snapshot)).owed
    if row.state != WAITING or owed is None or owed.tool != "stripe.create_payment_intent":
        return ""
    try:
        gateway.look(charge_of(row, owed))
    except gateway.UnderWayError as error:
        return error.page
    except EffectError:
        return ""
    return ""
