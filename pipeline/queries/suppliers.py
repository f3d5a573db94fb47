"""The register as the pages show it: a page of suppliers, each opened or named as damaged."""

from dataclasses import dataclass
from uuid import UUID

from engine.models import Workspace
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier
from pipeline.register import suppliers, versions
from pipeline.register.details import Details

PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A supplier. Without details it was erased, or its row is not what the log says."""

    row: Supplier
    details: Details | None

    @property
    def is_erased(self) -> bool:
        return self.row.state == versions.ERASED

    @property
    def is_company(self) -> bool:
        """Whether it is the workspace's own company, which is no supplier."""
        return self.row.state == suppliers.OWN

    @property
    def is_damaged(self) -> bool:
        return self.details is None and not self.is_erased


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Suppliers, the newest first; ``older`` is the number of the next page, 0 at the end."""

    lines: tuple[Line, ...]
    total: int
    older: int


def page(workspace: Workspace | None, number: int = 1) -> Page:
    """A page of a workspace's suppliers, numbered from 1."""
    if workspace is None:
        return Page(lines=(), total=0, older=0)
    theirs = Supplier.objects.filter(workspace=workspace).exclude(state=suppliers.OWN)
    rows = theirs.order_by("-created_ms", "-id")
    total, end = rows.count(), number * PAGE
    lines = tuple(line_of(workspace, row) for row in rows[end - PAGE : end])
    return Page(lines=lines, total=total, older=number + 1 if end < total else 0)


def line(workspace: Workspace | None, supplier_id: UUID) -> Line | None:
    """A supplier of a workspace, or its own company; None where it has none of that id."""
    found = Supplier.objects.filter(workspace=workspace, id=supplier_id).first()
    return line_of(workspace, found) if workspace is not None and found is not None else None


def company(workspace: Workspace | None) -> Line | None:
    """The workspace's own company; None where nobody said which."""
    found = Supplier.objects.filter(workspace=workspace, state=suppliers.OWN).first()
    return line_of(workspace, found) if workspace is not None and found is not None else None


def line_of(workspace: Workspace, row: Supplier) -> Line:
    """A row with its details, where it opens as the log says."""
    try:
        return Line(row=row, details=suppliers.named(workspace, str(row.id)).details)
    except VerificationError:
        return Line(row=row, details=None)
