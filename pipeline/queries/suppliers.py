"""The register as the pages show it: suppliers, opened or named as damaged."""

from dataclasses import dataclass
from uuid import UUID

from engine.models import Workspace
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier
from pipeline.register import index, suppliers, versions
from pipeline.register.details import Details, compact, plain_name

PAGE = 50


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
    theirs = Supplier.objects.filter(workspace=workspace).exclude(state=suppliers.OWN)
    rows = theirs.select_related("workspace").order_by("-created_ms", "-id")
    total, end = rows.count(), number * PAGE
    lines = tuple(map(line_of, rows[end - PAGE : end]))
    return SupplierPage(lines=lines, total=total, older=number + 1 if end < total else 0)


def found(workspace: Workspace | None, text: str) -> tuple[SupplierLine, ...]:
    """The suppliers with this whole name, IBAN, tax id or code; VerificationError as elsewhere."""
    theirs = Supplier.objects.filter(workspace=workspace).exclude(state=suppliers.OWN)
    ids = {*theirs.filter(code=text.upper()).values_list("id", flat=True)}
    if workspace is not None and theirs.exclude(state=versions.ERASED).exists():
        key, number = index.key_of(workspace), compact(text)
        for kind, each in (("name", plain_name(text)), ("iban", number), ("tax_id", number)):
            ids |= {row.id for row in suppliers.indexed(workspace, key, kind, each)}
    rows = theirs.filter(id__in=ids).select_related("workspace")
    return tuple(map(line_of, rows.order_by("-created_ms", "-id")))


def line(workspace: Workspace | None, supplier_id: UUID) -> SupplierLine | None:
    """A supplier of a workspace, or its own company; None where it has none of that id."""
    return next(map(line_of, Supplier.objects.filter(workspace=workspace, id=supplier_id)), None)


def company(workspace: Workspace | None) -> SupplierLine | None:
    """The workspace's own company; None where nobody said which."""
    own = Supplier.objects.filter(workspace=workspace, state=suppliers.OWN)
    return next(map(line_of, own), None)


def line_of(row: Supplier) -> SupplierLine:
    """A row with its details, where it opens as the log says."""
    try:
        (entry,) = versions.open_entries(row.workspace, [row])
    except VerificationError:
        return SupplierLine(row=row, details=None)
    return SupplierLine(row=row, details=None if row.state == versions.ERASED else entry.details)
