"""Leases: one worker drives a run at a time; whoever lost the lease cannot write any more.

A holder's name is drawn anew each time, so that it is the fencing token too: ``submit`` takes
the result of an effect from the present holder alone.
"""

from uuid import UUID

from pipeline.clock import now_ms
from pipeline.entropy import uuid4
from pipeline.store import sql

TTL_MS = 15_000  # a dead worker's run waits this long; an effect that takes longer is kept by
BEAT_MS = TTL_MS // 3  # … beats, each of which holds the lease for another TTL_MS

_GIVE = (
    "INSERT INTO pipeline_lease (run_id, holder, until_ms, absorbed) VALUES (%s, %s, %s, 0)"
    " ON CONFLICT (run_id) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms"
)
_ABSORB = (
    "INSERT INTO pipeline_lease (run_id, holder, until_ms, absorbed) VALUES (%s, '', 0, 1)"
    " ON CONFLICT (run_id) DO UPDATE SET absorbed = pipeline_lease.absorbed + 1"
)
_RENEW = "UPDATE pipeline_lease SET until_ms = %s WHERE run_id = %s AND holder = %s"
_RELEASE = (
    "UPDATE pipeline_lease SET holder = '', until_ms = 0, absorbed = absorbed + %s"
    " WHERE run_id = %s AND holder = %s"
)


def is_held(holder: str, until_ms: int) -> bool:
    """Whether a lease is somebody's now; whoever finds it so is counted in ``absorbed``."""
    return holder != "" and until_ms >= now_ms()


def is_holder(holder: str, named: str) -> bool:
    """Whether the lease is still this one's: nobody else took it since."""
    return named != "" and holder == named


def give(run: UUID) -> str:
    """The lease of a run whose lock the caller holds, whoever had it: its new holder's name."""
    holder = str(uuid4())
    sql.change(_GIVE, (sql.key(run), holder, now_ms() + TTL_MS))
    return holder


def absorb(run_id: str) -> None:
    """Count a delivery that found nothing to do."""
    sql.change(_ABSORB, (sql.key_of(run_id),))


def renew(run_id: str, holder: str) -> bool:
    """Hold the lease for another while; False where it was lost to somebody else."""
    return bool(sql.change(_RENEW, (now_ms() + TTL_MS, sql.key_of(run_id), holder)))


def release(run_id: str, holder: str, *, idle: bool = False) -> None:
    """Give the lease back, if it is still held; whoever did nothing under it was absorbed."""
    sql.change(_RELEASE, (int(idle), sql.key_of(run_id), holder))
