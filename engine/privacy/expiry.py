"""Workspaces that nobody uses any more: announced on their pages, then erased as on demand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from engine.application import ErasableRows, installed
from engine.clock import now_ms
from engine.errors import ErasureRefusedError
from engine.models import Envelope, Run, Workspace
from engine.privacy import erasure
from engine.runtime import links
from engine.store import records
from nanovm_core.errors import VerificationError

ACTOR = "expiry"
UPGRADED = "upgraded"  # the kind of the note of a later release's first start
REASON = "art17-1-a"  # no longer needed for its purpose
DAY_MS = 24 * 3_600_000
ANNOUNCED_MS = 7 * DAY_MS
READ_AT_ONCE = 10  # envelopes; the newest is nearly always the one that counts
ERASED_MAX = 50  # rows at once: some seconds of a worker; the next follow in an hour


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
    """Erase the runs of workspaces that have expired, and what applications hold; how many.

    It is the erasure that a visitor asks for, and sealed like it. What that refuses (a run under
    way, one whose payment is open, a document that a law keeps) stays, and is tried again.
    The rows of links that ended long ago go with them.
    """
    links.forget_old()
    erased = 0
    for workspace in _with_something() if settings.NANOVM_EXPIRE_DAYS else ():
        for erasable in _erasable():
            for row in erasable.rows(workspace):
                if erased >= ERASED_MAX or not _is_over(workspace):
                    break
                erased += _is_erased(erasable, row)
    return erased


def _is_erased(erasable: ErasableRows, row: Any) -> bool:
    try:
        return bool(erasable.erase(row, REASON, ACTOR).state == "done")
    except (ErasureRefusedError, VerificationError):
        return False


def _erasable() -> tuple[ErasableRows, ...]:
    """Runs first, then what the applications hold beside them."""
    return (RUNS, *(held for each in installed() for held in each.erasable))


def _with_something() -> Iterator[UUID]:
    """Old workspaces that hold something still; a log that a restore closed is left alone."""
    before_ms = now_ms() - settings.NANOVM_EXPIRE_DAYS * DAY_MS
    old = Workspace.objects.filter(created_ms__lte=before_ms, successor=None)
    held = [Q(Exists(each.rows(OuterRef("pk")))) for each in _erasable()]
    return old.filter(reduce(or_, held)).values_list("id", flat=True).iterator()


def _runs(workspace: UUID | OuterRef) -> QuerySet[Run]:
    return Run.objects.filter(workspace=workspace, erased_ms=None).order_by("created_ms")


RUNS = ErasableRows(_runs, lambda run, *why: erasure.erase_run(str(run.id), *why))


def _is_over(workspace: UUID) -> bool:
    """Whether it has expired, asked anew before each erasure: its visitor may be back."""
    found = of(workspace)
    return found is not None and found.at_ms <= now_ms()


def _used_ms(workspace: UUID) -> int | None:
    """When something was last sealed in a log, erasures of its expiry and upgrades apart."""
    newest = Envelope.objects.filter(workspace=workspace).order_by("-seq")
    for data in newest.values_list("bytes", flat=True).iterator(READ_AT_ONCE):
        body = records.body_of(data)
        at_ms = body.get("at_ms")
        if body.get("actor") == ACTOR or body.get("kind") == UPGRADED:
            continue
        if isinstance(at_ms, int):
            return at_ms
    return None
