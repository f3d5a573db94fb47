"""The register as the pages show it: suppliers, opened or named as damaged, and what they got."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median_low
from uuid import UUID

from engine.models import Workspace
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import VerificationError
from pipeline.models import Bill, Supplier
from pipeline.register import suppliers, versions
from pipeline.register.details import Details

PAGE = 50
PAYMENTS_MAX = 50  # the newest ones alone


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplierLine:
    """A supplier. Without details it was erased, or its row is not what the log says."""

    row: Supplier
    details: Details | None

    @property
    def is_erased(self) -> bool:
        return self.row.state == versions.ERASED

    @property
    def is_company(self) -> bool:
        return self.row.state == suppliers.OWN

    @property
    def is_damaged(self) -> bool:
        return self.details is None and not self.is_erased


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplierPage:
    """Suppliers, the newest first; ``older`` is the number of the next page, 0 at the end."""

    lines: tuple[SupplierLine, ...]
    total: int
    older: int


def page(workspace: Workspace | None, number: int = 1) -> SupplierPage:
    if workspace is None:
        return SupplierPage(lines=(), total=0, older=0)
    theirs = Supplier.objects.filter(workspace=workspace).exclude(state=suppliers.OWN)
    rows = theirs.order_by("-created_ms", "-id")
    total, end = rows.count(), number * PAGE
    lines = tuple(line_of(workspace, row) for row in rows[end - PAGE : end])
    return SupplierPage(lines=lines, total=total, older=number + 1 if end < total else 0)


def line(workspace: Workspace | None, supplier_id: UUID) -> SupplierLine | None:
    """A supplier of a workspace, or its own company; None where it has none of that id."""
    found = Supplier.objects.filter(workspace=workspace, id=supplier_id).first()
    return line_of(workspace, found) if workspace is not None and found is not None else None


def company(workspace: Workspace | None) -> SupplierLine | None:
    """The workspace's own company; None where nobody said which."""
    found = Supplier.objects.filter(workspace=workspace, state=suppliers.OWN).first()
    return line_of(workspace, found) if workspace is not None and found is not None else None


def line_of(workspace: Workspace, row: Supplier) -> SupplierLine:
    """A row with its details, where it opens as the log says."""
    try:
        entry = suppliers.by_id(workspace, str(row.id))
    except VerificationError:
        return SupplierLine(row=row, details=None)
    is_erased = entry.row.state == versions.ERASED
    return SupplierLine(row=row, details=None if is_erased else entry.details)


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
    bills = Bill.objects.filter(supplier=UUID(supplier)).exclude(run=UUID(run_id))
    for bill in bills.select_related("run").order_by("-id")[:PAYMENTS_MAX]:
        try:
            slots = decode_snapshot(bytes(bill.run.snapshot)).slots
        except VerificationError:
            continue  # a damaged run says nothing; fsck names it
        amount = slots.get("amount_minor")
        paid = slots.get("payment_status") == "succeeded" and slots.get("currency") == currency
        if paid and type(amount) is int:
            yield amount
