"""Workspaces that nobody uses any more: announced on their pages, then erased as on demand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from nanovm_core.errors import VerificationError
from pipeline.clock import now_ms
from pipeline.errors import ErasureRefusedError
from pipeline.models import Envelope, Run, Supplier, Workspace
from pipeline.privacy import erasure, supplier_erasure
from pipeline.register import versions
from pipeline.store import records

ACTOR = "expiry"
UPGRADED = "upgraded"  # the kind of the note of a later release's first start
REASON = "art17-1-a"  # no longer needed for its purpose
DAY_MS = 24 * 3_600_000
ANNOUNCED_MS = 7 * DAY_MS
ERASED_MAX = 50  # runs and suppliers at once: some seconds of a worker; the next follow in an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """When a workspace is erased if nothing in it changes before."""

    at_ms: int
    days: int

    @property
    def on(self) -> str:
        """The day, UTC."""
        return f"{datetime.fromtimestamp(self.at_ms / 1000, UTC):%Y-%m-%d}"

    @property
    def is_near(self) -> bool:
        """Whether it is announced as a warning: for a week, or half of a shorter time."""
        return self.at_ms - now_ms() <= min(ANNOUNCED_MS, self.days * DAY_MS // 2)


def of(workspace: UUID | None) -> Expiry | None:
    """When a workspace expires; None where none does, or nothing of it is sealed."""
    days = settings.NANOVM_EXPIRE_DAYS
    used_ms = _used_ms(workspace) if days and workspace else None
    return None if used_ms is None else Expiry(at_ms=used_ms + days * DAY_MS, days=days)


def erase_unused() -> int:
    """Erase the runs and suppliers of workspaces that have expired; how many were erased.

    It is the erasure that a visitor asks for, and sealed like it. What that refuses (a run under
    way, one whose payment is open, a document that a law keeps) stays, and is tried again.
    """
    erased = 0
    for workspace in _with_something() if settings.NANOVM_EXPIRE_DAYS else ():
        for subject in _subjects(workspace):
            if erased >= ERASED_MAX or not _is_over(workspace):
                break
            erased += _is_erased(subject)
    return erased


def _is_erased(subject: Run | Supplier) -> bool:
    try:
        if isinstance(subject, Run):
            return erasure.erase_run(str(subject.id), REASON, ACTOR).state == "done"
        return supplier_erasure.erase_supplier(subject, REASON, ACTOR).state == "done"
    except (ErasureRefusedError, VerificationError):
        return False


def _with_something() -> Iterator[UUID]:
    """Old workspaces that hold something still; a log that a restore closed is left alone."""
    before_ms = now_ms() - settings.NANOVM_EXPIRE_DAYS * DAY_MS
    old = Workspace.objects.filter(created_ms__lte=before_ms, successor=None)
    held = Exists(_runs(OuterRef("pk"))) | Exists(_suppliers(OuterRef("pk")))
    return old.filter(held).values_list("id", flat=True).iterator()


def _subjects(workspace: UUID) -> Iterator[Run | Supplier]:
    yield from _runs(workspace).order_by("created_ms")
    yield from _suppliers(workspace)


def _runs(workspace: UUID | OuterRef) -> QuerySet[Run]:
    return Run.objects.filter(workspace=workspace, erased_ms=None)


def _suppliers(workspace: UUID | OuterRef) -> QuerySet[Supplier]:
    """Those that a visitor registered: the samples' suppliers are nobody's data."""
    found = Supplier.objects.filter(workspace=workspace, is_sample=False)
    return found.exclude(state=versions.ERASED)


def _is_over(workspace: UUID) -> bool:
    """Whether it has expired, asked anew before each erasure: its visitor may be back."""
    found = of(workspace)
    return found is not None and found.at_ms <= now_ms()


def _used_ms(workspace: UUID) -> int | None:
    """When something was last sealed in a log, erasures of its expiry and upgrades apart."""
    for each in Envelope.objects.filter(workspace=workspace).order_by("-seq").iterator():
        body = records.body_of(each.bytes)
        at_ms = body.get("at_ms")
        if body.get("actor") == ACTOR or body.get("kind") == UPGRADED:
            continue
        if isinstance(at_ms, int):
            return at_ms
    return None
