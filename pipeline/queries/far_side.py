"""What the far side says of a run's payment: the page that completes it, and what came after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.errors import EffectError
from engine.models import Envelope, Run
from engine.queries.log import EventRow, row_of
from engine.queries.runs import RunHead
from engine.store import sql
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.lifecycle import WAITING
from pipeline.labels import CHARGE
from pipeline.models import FarSide
from pipeline.steps.charge import gateway
from pipeline.steps.charge.afterwards import CHECKED, OF_NO_RESULT
from pipeline.steps.charge.step import charge_of
from reader.currencies import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """What was recorded of a payment after it was made, in words, and the event that says so."""

    says: str
    row: EventRow


def later(run: RunHead) -> tuple[Later, ...]:
    """The refunds and disputes of a run's payment, the oldest first."""
    kept = sql.rows(FarSide, "WHERE run_id = %s ORDER BY id", (sql.key_of(run.id),))
    if not kept:
        return ()
    found = Envelope.objects.filter(run="log", kind="alert", n__in=[row.sealed_n for row in kept])
    logs = Run.objects.filter(id=run.id).values_list("workspace_id", "workspace__successor_id")
    rows = {row.n: row_of(row) for row in found.filter(workspace_id__in=[*filter(None, logs[0])])}
    return tuple(_later(run, each, rows) for each in kept if each.sealed_n in rows)


def _later(run: RunHead, kept: FarSide, rows: Mapping[int, EventRow]) -> Later:
    parts: Sequence[str] = [f"dispute: {kept.dispute.replace('_', ' ')}"] if kept.dispute else []
    if kept.dispute in OF_NO_RESULT:
        parts = [f"{kept.dispute}: a person has to compare the run with Stripe's dashboard"]
    if kept.dispute == CHECKED:
        parts = [f"{rows[kept.sealed_n].actor} compared the run with Stripe's dashboard"]
    if kept.refunded_minor:
        sum_ = shown(kept.refunded_minor, str(run.slots.get("currency", "")))
        parts = [f"{sum_} refunded", *parts]
    return Later(says=", ".join(parts) or "no refund and no dispute", row=rows[kept.sealed_n])


def bank_page(run: RunHead) -> str:
    """Where the card's owner authenticates a waiting payment, as Stripe says now; else empty.

    It is asked for each time and kept nowhere: the address names Stripe's objects.
    """
    row = Run.objects.get(id=run.id)
    owed = decode_snapshot(bytes(row.snapshot)).owed
    if row.state != WAITING or owed is None or owed.tool != CHARGE:
        return ""
    try:
        gateway.find_outcome(charge_of(row, owed))
    except EffectError as error:
        return error.page if isinstance(error, gateway.UnderWayError) else ""
    return ""
