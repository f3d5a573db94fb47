"""Leases: one worker drives a run at a time."""

from django.db.models import F, Q

from pipeline.models import Lease
from pipeline.world import now_ms, uuid4

TTL_MS = 60_000  # longer than any one effect may take; a dead worker's run waits this long


def take(run_id: str) -> str | None:
    """Take the lease of a run and return its holder's name; None where somebody holds it.

    A delivery that finds the lease taken is counted in ``absorbed``.
    """
    Lease.objects.get_or_create(run_id=run_id)
    holder, at_ms = str(uuid4()), now_ms()
    free = Lease.objects.filter(Q(holder="") | Q(until_ms__lt=at_ms), run_id=run_id)
    if free.update(holder=holder, until_ms=at_ms + TTL_MS):
        return holder
    Lease.objects.filter(run_id=run_id).update(absorbed=F("absorbed") + 1)
    return None


def renew(run_id: str, holder: str) -> bool:
    """Hold the lease for another while; False where it was lost to somebody else."""
    mine = Lease.objects.filter(run_id=run_id, holder=holder)
    return bool(mine.update(until_ms=now_ms() + TTL_MS))


def release(run_id: str, holder: str, *, idle: bool = False) -> None:
    """Give the lease back, if it is still held; whoever did nothing under it was absorbed."""
    mine = Lease.objects.filter(run_id=run_id, holder=holder)
    mine.update(holder="", until_ms=0, absorbed=F("absorbed") + int(idle))


def holds(run_id: str, holder: str) -> bool:
    """Whether this holder has the lease: nobody else took it since."""
    return holder != "" and Lease.objects.filter(run_id=run_id, holder=holder).exists()
