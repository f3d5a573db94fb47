"""What a supplier was paid before: the amounts that tell whether another one is usual."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median_low
from uuid import UUID

from engine.models import Run
from engine.store import sql
from nanovm_core.core.messages import Scalar
from pipeline.register import found

PAYMENTS_MAX = 50  # the newest ones alone
_BILLED = (
    "SELECT run.snapshot FROM pipeline_bill bill JOIN pipeline_run run ON run.id = bill.run_id"
    " WHERE bill.supplier_id = %s AND bill.run_id <> %s ORDER BY bill.id DESC LIMIT %s"
)
NO_PAYMENTS = {"payments_before": 0, "times_usual": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """Earlier payments to a supplier in one currency; amounts in minor units, with its code."""

    count: int
    amount_minor: int = 0  # of the payment that somebody decides about
    median_minor: int = 0
    least_minor: int = 0
    most_minor: int = 0
    currency: str = ""

    @property
    def times(self) -> str:
        """How many medians the amount is, where that is two or more; else empty."""
        unusual = self.count and self.amount_minor >= 2 * self.median_minor
        return f"{self.amount_minor / self.median_minor:,.1f}" if unusual else ""

    def facts(self) -> dict[str, Scalar]:
        """What a policy reads: how many payments, and how many medians, rounded up, this one is."""
        times = -(-self.amount_minor // self.median_minor) if self.median_minor else 0
        return {"payments_before": self.count, "times_usual": times}


def usual_of(run_id: str, slots: Mapping[str, Scalar]) -> Usual | None:
    """The earlier payments to a run's supplier in its currency; None where it has no supplier."""
    supplier, currency = slots.get("supplier"), slots.get("currency")
    if not supplier or not currency:
        return None
    paid = sorted(_paid(str(supplier), run_id, currency))
    if not paid:
        return Usual(count=0)
    amount = slots.get("amount_minor")
    return Usual(
        count=len(paid),
        amount_minor=amount if type(amount) is int else 0,
        median_minor=median_low(paid),
        least_minor=paid[0],
        most_minor=paid[-1],
        currency=str(currency),
    )


def _paid(supplier: str, run_id: str, currency: Scalar) -> Iterator[int]:
    ids = (sql.key_of(str(UUID(each))) for each in (supplier, run_id))
    for (data,) in sql.execute(_BILLED, (*ids, PAYMENTS_MAX)):  # of a damaged run: fsck names it
        now = found.value_of(sql.row_of(Run, {"snapshot": sql.blob(data)}))
        said = found.listing_of(now) if now else None
        if said and said.paid and said.amount_minor is not None and said.currency == currency:
            yield said.amount_minor
