"""What reached the outside: the payment, and the adapters' own records of their calls."""

from dataclasses import dataclass
from typing import Any

from nanovm_core.vault import TOMBSTONE
from pipeline.models import AdapterCall, Envelope
from pipeline.queries.personal import opened
from pipeline.queries.runs import RunHead, body_of, slots_of

CHARGE = "stripe.create_payment_intent"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentView:
    """The run's payment as far as it came. ``object_id`` is read from the vault."""

    status: str
    amount_minor: int | None
    currency: str
    object_ref: str
    object_id: str
    erased: bool
    key: str
    warrant: str
    calls: int
    intent: int | None  # the numbers of the envelopes that hold intent and result
    result: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One line of the adapters' own book, written before the call was made."""

    number: int
    tool: str
    key: str
    at_ms: int
    outcome: str


def payment_of(run: RunHead) -> PaymentView:
    slots = slots_of(run.id)
    bodies = _charge_bodies(run)
    intent, result = _last(bodies, "intent"), _last(bodies, "result")
    ref = str(slots.get("payment", ""))
    value = opened(ref) if ref else ""
    amount = slots.get("amount_minor")
    return PaymentView(
        status=str(slots.get("payment_status", "")),
        amount_minor=amount if isinstance(amount, int) else None,
        currency=str(slots.get("currency", "")),
        object_ref=ref,
        object_id=value,
        erased=value == TOMBSTONE,
        key=str(intent.get("idempotency_key", "")),
        warrant=str((intent.get("warrant") or {}).get("id", "")),
        calls=AdapterCall.objects.filter(run_id=run.id, tool=CHARGE).count(),
        intent=intent["n"] + 1 if intent else None,
        result=result["n"] + 1 if result else None,
    )


def calls_of(run: RunHead) -> tuple[CallView, ...]:
    rows = AdapterCall.objects.filter(run_id=run.id).order_by("id")
    return tuple(
        CallView(number=i, tool=r.tool, key=r.key, at_ms=r.at_ms, outcome=r.outcome)
        for i, r in enumerate(rows, 1)
    )


def _charge_bodies(run: RunHead) -> list[dict[str, Any]]:
    rows = Envelope.objects.filter(
        workspace_id=run.workspace, run=run.id, kind__in=("intent", "result")
    )
    bodies = [body_of(data) for data in rows.order_by("n").values_list("bytes", flat=True)]
    return [body for body in bodies if body.get("step") == "charge"]


def _last(bodies: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next((body for body in reversed(bodies) if body.get("kind") == kind), {})
