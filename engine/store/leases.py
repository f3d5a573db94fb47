"""Leases: one worker drives a run at a time, and a worker that lost its lease writes no result.

The holder's name is drawn anew for each lease, so it serves as the fencing token: ``submit``
takes the result of an effect from the present holder alone. A lease is three columns of the run's
row: what a commit changes of a run that it holds is stored with it; ``renew``, ``release``,
``set_aside``, ``absorb`` and ``absorb_now`` change the row at once.
"""

from django.conf import settings

from engine.clock import now_ms
from engine.entropy import uuid4
from engine.models import Run
from engine.store import sql

TTL_MS = 15_000  # the run of a dead worker waits this long
RENEW_EVERY_MS = TTL_MS // 3  # while an effect takes longer, its lease is renewed this often

_ABSORB = "UPDATE pipeline_run SET deliveries = deliveries + 1 WHERE id = %s"
_SKIP = "" if sql.SQLITE else " FOR UPDATE SKIP LOCKED"
_UNLOCKED = f"(SELECT id FROM pipeline_run WHERE id = %s{_SKIP})"
_ABSORB_NOW = f"UPDATE pipeline_run SET deliveries = deliveries + 1 WHERE id IN {_UNLOCKED}"
_ASIDE = "UPDATE pipeline_run SET until_ms = %s WHERE id = %s AND holder = ''"
_RENEW = "UPDATE pipeline_run SET until_ms = %s WHERE id = %s AND holder = %s"
_RELEASE = "UPDATE pipeline_run SET holder = '', until_ms = 0 WHERE id = %s AND holder = %s"


def is_held(holder: str, until_ms: int) -> bool:
    """Whether a worker holds the lease now; a delivery that finds it held is absorbed."""
    return holder != "" and until_ms >= now_ms()


def is_holder(holder: str, named: str) -> bool:
    """Whether the named worker still holds the lease."""
    return named != "" and holder == named


def give(run: Run) -> None:
    """Give the lease of a run that a commit holds to a new holder, named by this process's tag."""
    drawn, tag = str(uuid4()), settings.NANOVM_PROCESS
    run.holder, run.until_ms = f"{tag}{drawn[len(tag) :]}", now_ms() + TTL_MS


def extend(run: Run) -> None:
    """Extend the lease of a run that a commit holds."""
    run.until_ms = now_ms() + TTL_MS


def free(run: Run) -> None:
    """Free a run that a commit holds."""
    run.holder, run.until_ms = "", 0


def free_of(tag: str) -> list[str]:
    """Free what a process of this tag (NANOVM_PROCESS) held, which has ended; the runs' ids."""
    held = Run.objects.filter(until_ms__gt=0, holder__startswith=f"{tag}-")
    found = [str(run_id) for run_id in held.values_list("id", flat=True)]
    held.update(holder="", until_ms=0)
    return found


def absorb(run_id: str) -> None:
    """Count a delivery that found nothing to do."""
    sql.change(_ABSORB, (sql.key_of(run_id),))


def absorb_now(run_id: str) -> bool:
    """Count it, unless another commit holds the run: it may wait for one that this commit holds."""
    return bool(sql.change(_ABSORB_NOW, (sql.key_of(run_id),)))


def set_aside(run: str) -> None:
    """Skip this run until a lease time-out has passed."""
    sql.change(_ASIDE, (now_ms() + TTL_MS, sql.key_of(run)))


def renew(run_id: str, holder: str) -> bool:
    """Renew the lease for TTL_MS; False where another worker holds it by now."""
    return bool(sql.change(_RENEW, (now_ms() + TTL_MS, sql.key_of(run_id), holder)))


def release(run_id: str, holder: str) -> None:
    """Release the lease, if it is still held."""
    sql.change(_RELEASE, (sql.key_of(run_id), holder))
