"""What reached the outside: the payment, and the adapters' own records of their calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.models import AdapterCall
from engine.queries.record import CallView, RunRecord
from engine.store.records import part_of
from nanovm_core.core.vault import TOMBSTONE
from pipeline.labels import CHARGE

MADE, NOT_MADE = "EffectDone", "EffectFailed"  # what an adapter notes where it knows


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentView:
    """The run's payment as far as it came. ``object_id`` and ``account`` are read from the vault.

    ``account`` is the payee's at Stripe, as the call commits to it; ``confirmed`` says whether
    Stripe's record of the payment names it, None where there is no answer yet.
    ``status`` is empty where no payment is known; ``unknown`` says that there may be one.
    """

    status: str
    unknown: bool
    amount_minor: int | None
    currency: str
    object_id: str
    erased: bool
    account: str
    confirmed: bool | None
    key: str
    warrant: str
    calls: int
    intent: int | None  # the numbers of the envelopes that hold intent and result
    result: int | None
    answered_ms: int  # when the result was recorded; 0 before that

    @property
    def paid(self) -> bool:
        """Whether the money moved: the payment provider or the adapter's record says so."""
        return self.status in ("succeeded", "made")


def payment_of(record: RunRecord, values: Mapping[str, str]) -> PaymentView:
    """The run's payment; ``values`` are its opened secrets by slot."""
    slots = record.run.slots
    bodies = _charge_bodies(record)
    calls = [call for call in record.calls if call.tool == CHARGE]
    intent, result = _last(bodies, "intent"), _last(bodies, "result")
    value = values.get("payment", "")
    amount = slots.get("amount_minor")
    confirmed = slots.get("payee_confirmed")
    answered, unknown = _answered(bodies, calls)
    status = str(slots.get("payment_status", "")) or answered
    return PaymentView(
        status=status,
        unknown=not status and unknown,
        amount_minor=amount if isinstance(amount, int) else None,
        currency=str(slots.get("currency", "")),
        object_id=value,
        erased=value == TOMBSTONE,
        account=values.get("destination", ""),
        confirmed=confirmed if isinstance(confirmed, bool) else None,
        key=str(intent.get("idempotency_key", "")),
        warrant=str(part_of(intent, "warrant").get("id", "")),
        calls=len(calls),
        intent=intent.get("number"),
        result=result.get("number"),
        answered_ms=at_ms if isinstance(at_ms := result.get("at_ms"), int) else 0,
    )


def payments_made() -> int:
    """How many payments the adapters know to be made, in all workspaces."""
    return AdapterCall.objects.filter(tool=CHARGE, outcome=MADE).count()


def _answered(bodies: list[dict[str, Any]], calls: list[CallView]) -> tuple[str, bool]:
    """The status that an answer to the charge gave, also one that came after the run's end.

    Without one: whether a charge was sealed or begun whose answer is not known.
    """
    keys = {str(b.get("idempotency_key", "")) for b in bodies if b.get("kind") == "intent"}
    keys |= {call.key for call in calls}
    for body in reversed(bodies):
        status = part_of(body, "out").get("payment_status")
        sealed = body.get("kind") in ("result", "ignored") and body.get("whole")
        if status and sealed and body.get("idempotency_key") in keys:
            return str(status), False
    if any(call.outcome == MADE for call in calls):
        return "made", False
    whole = (body for body in bodies if body.get("kind") == "failed" and body.get("whole"))
    failed = {body.get("idempotency_key") for body in whole}
    failed |= {call.key for call in calls if call.outcome == NOT_MADE}
    return "", bool(keys - failed)


def _charge_bodies(record: RunRecord) -> list[dict[str, Any]]:
    """What the envelopes about the charge say, each with its number and whether it is whole."""
    bodies = [
        {**entry.body, "number": entry.row.number, "whole": entry.whole}
        for entry in record.entries
        if entry.kind in ("intent", "result", "failed", "ignored")
    ]
    return [b for b in bodies if b.get("step") == "charge" or b.get("kind") == "ignored"]


def _last(bodies: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next((body for body in reversed(bodies) if body.get("kind") == kind), {})
