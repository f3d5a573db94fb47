"""Leases: one worker drives a run at a time, and a worker that lost its lease writes no result.

The holder's name is drawn anew for each lease, so it serves as the fencing token: ``submit``
takes the result of an effect from the present holder alone.
"""

from uuid import UUID

from pipeline.clock import now_ms
from pipeline.entropy import uuid4
from pipeline.store import sql

TTL_MS = 15_000  # the run of a dead worker waits this long
RENEW_EVERY_MS = TTL_MS // 3  # while an effect takes longer, its lease is renewed this often

_GIVE = (
    "INSERT INTO pipeline_lease (run_id, holder, until_ms, absorbed) VALUES (%s, %s, %s, 0)"
    " ON CONFLICT (run_id) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms"
)
_ABSORB = (
    "INSERT INTO pipeline_lease (run_id, holder, until_ms, absorbed) VALUES (%s, '', 0, 1)"
    " ON CONFLICT (run_id) DO UPDATE SET absorbed = pipeline_lease.absorbed + 1"
)
_ASIDE = (
    "INSERT INTO pipeline_lease (run_id, holder, until_ms, absorbed) VALUES (%s, '', %s, 0)"
    " ON CONFLICT (run_id) DO UPDATE SET until_ms = excluded.until_ms"
    " WHERE pipeline_lease.holder = ''"
)
_RENEW = "UPDATE pipeline_lease SET until_ms = %s WHERE run_id = %s AND holder = %s"
_RELEASE = (
    "UPDATE pipeline_lease SET holder = '', until_ms = 0, absorbed = absorbed + %s"
    " WHERE run_id = %s AND holder = %s"
)


def is_held(holder: str, until_ms: int) -> bool:
    """Whether a worker holds the lease now; a delivery that finds it held is absorbed."""
    return holder != "" and until_ms >= now_ms()


def is_holder(holder: str, named: str) -> bool:
    """Whether the named worker still holds the lease."""
    return named != "" and holder == named


def give(run: UUID) -> str:
    """Give the lease of a run that the caller has locked to a new holder; returns its name."""
    holder = str(uuid4())
    sql.change(_GIVE, (sql.key(run), holder, now_ms() + TTL_MS))
    return holder


def absorb(run_id: str) -> None:
    """Count a delivery that found nothing to do."""
    sql.change(_ABSORB, (sql.key_of(run_id),))


def set_aside(run: UUID) -> None:
    """Take a run that could not be claimed out of the turns, as if a dead worker had it."""
    sql.change(_ASIDE, (sql.key(run), now_ms() + TTL_MS))


def renew(run_id: str, holder: str) -> bool:
    """Renew the lease for TTL_MS; False where another worker holds it by now."""
    return bool(sql.change(_RENEW, (now_ms() + TTL_MS, sql.key_of(run_id), holder)))


def release(run_id: str, holder: str, *, idle: bool = False) -> None:
    """Release the lease, if it is still held; ``idle``: nothing was done under it, count that."""
    sql.change(_RELEASE, (int(idle), sql.key_of(run_id), holder))
