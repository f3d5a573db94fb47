"""Turns: which run a free thread drives next, so that no workspace waits behind another's runs.

A process takes turns of its agent's tools alone; leases, slots and when a workspace was last served
are counted for each agent.
All of it is read from the database, so any number of worker processes share it. The statement asks
what is due and who is at work, or was (``run_open``, ``run_deadline``): what has ended costs
nothing.
"""

from collections.abc import Collection
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.db.models import Min
from django.db.models.functions import Greatest

from engine.application import installed
from engine.clock import now_ms
from engine.models import Run
from engine.store import actors, sql
from nanovm_core.core.lifecycle import ACTIVE, WAITING

EFFECTS_MAX = 4  # of one turn, where another workspace waits
NOBODY = UUID(int=0)

# {own}: the tools of this process; {slow}: those of few slots, as texts of SQL
_HELD = (
    " FROM pipeline_run r WHERE r.until_ms > 0 AND r.until_ms >= %s AND r.holder <> ''"
    " AND r.owed_tool {own}"
)
# A passed deadline is every process's; but what a run waits for its own agent asks for once more.
_OVER = f" (o.state <> '{WAITING}' OR o.owed_tool {{own}})"
_LOG = "+r.workspace_id" if sql.SQLITE else "r.workspace_id"  # +: not by the index on it
_DUE = (
    "SELECT o.id AS id, o.due_ms AS at_ms, o.owed_tool AS tool FROM pipeline_run o"
    " WHERE o.due_ms IS NOT NULL AND o.due_ms <= %s AND o.owed_tool {own} UNION ALL"
    " SELECT o.id, o.deadline_ms, '' FROM pipeline_run o WHERE o.deadline_ms IS NOT NULL"
    f" AND o.holder = '' AND o.deadline_ms <= %s AND{_OVER} UNION ALL"
    " SELECT o.id, o.deadline_ms, '' FROM pipeline_run o WHERE o.until_ms > 0"
    f" AND o.until_ms < %s AND o.holder <> '' AND o.deadline_ms <= %s AND{_OVER}"
)
_FINISHED = (
    "EXISTS (SELECT 1 FROM pipeline_run f WHERE f.workspace_id = w.id AND f.ended_ms IS NOT NULL)"
)
# CROSS JOIN: SQLite keeps to the order, and begins with what is due, not with all runs.
_NEXT = (
    "WITH held AS (SELECT r.workspace_id AS id, COUNT(*) AS n,"
    " SUM(CASE WHEN r.owed_tool IN ({slow}) THEN 1 ELSE 0 END) AS slow"
    f"{_HELD} GROUP BY {_LOG}),"
    " places AS (SELECT COALESCE(v.place, -1) AS place, SUM(held.slow) AS slow FROM held"
    " CROSS JOIN pipeline_workspace v WHERE v.id = held.id GROUP BY COALESCE(v.place, -1)),"
    f" due AS ({_DUE})"
    " SELECT r.id FROM due CROSS JOIN pipeline_run r CROSS JOIN pipeline_workspace w"
    " LEFT JOIN held ON held.id = w.id"
    " WHERE r.id = due.id AND w.id = r.workspace_id"
    f" AND (r.state IN ('{ACTIVE}', '{WAITING}') OR r.deadline_ms <= %s)"
    " AND w.successor_id IS NULL AND w.id <> %s AND r.until_ms < %s"
    " AND COALESCE(held.n, 0) < %s"
    " AND (due.tool NOT IN ({slow}) OR"
    f" (COALESCE(held.slow, 0) = 0 OR {_FINISHED})"
    " AND COALESCE((SELECT slow FROM places WHERE place = COALESCE(w.place, -1)), 0) < %s"
    " AND (SELECT COALESCE(SUM(slow), 0) FROM held) < %s) AND r.id NOT IN "
)
_ORDER = (
    " ORDER BY COALESCE(held.n, 0) * 1.0 / w.weight, COALESCE((SELECT s.at_ms"
    " FROM pipeline_served s WHERE s.workspace_id = w.id AND s.agent = %s), 0),"
    " CASE WHEN due.at_ms > r.created_ms THEN due.at_ms ELSE r.created_ms END, r.id"
)
_LOCK = " LIMIT 1" if sql.SQLITE else " LIMIT 1 FOR UPDATE OF w, r SKIP LOCKED"
_SLOW = (
    f"SELECT {_FINISHED}, COUNT(r.id), SUM(CASE WHEN r.workspace_id = w.id THEN 1 ELSE 0 END),"
    " SUM(CASE WHEN COALESCE(v.place, -1) = COALESCE(w.place, -1) THEN 1 ELSE 0 END)"
    " FROM pipeline_workspace w LEFT JOIN pipeline_run r ON r.until_ms > 0 AND r.until_ms >= %s"
    " AND r.holder <> '' AND r.id <> %s AND r.owed_tool IN ({slow}) AND r.owed_tool {own}"
    " LEFT JOIN pipeline_workspace v ON v.id = r.workspace_id WHERE w.id = %s GROUP BY w.id"
)
_PLACE = "UPDATE pipeline_workspace SET place = %s WHERE id = %s AND COALESCE(place, -1) <> %s"
_SERVED = (
    "INSERT INTO pipeline_served (workspace_id, agent, at_ms) VALUES (%s, %s, %s)"
    " ON CONFLICT (workspace_id, agent) DO UPDATE SET at_ms = excluded.at_ms"
)


def leases_max() -> int:
    """How many leases of an agent a workspace may hold: a thread is left for the others."""
    return max(1, int(settings.NANOVM_WORKER_THREADS) - 1)


def slow_max() -> tuple[int, int]:
    """How many effects of an agent's slow tools are under way: of one address, and of all."""
    return max(1, int(settings.NANOVM_WORKER_THREADS) - 2), leases_max()


def next_run(besides: Collection[str] = ()) -> str | None:
    """The run whose turn it is, locked in the present transaction; None where none can be taken.

    ``besides``: the runs that this commit is about already; what moved of them is stored. What
    another transaction has locked on PostgreSQL is passed over.
    """
    return _first(NOBODY, besides, _ORDER + _LOCK, settings.NANOVM_AGENT)


def others_wait(workspace: UUID, besides: Collection[str]) -> bool:
    """Whether a run of another workspace could be taken now, by this process's agent."""
    return _first(workspace, besides, " LIMIT 1") is not None


def has_slot(run: UUID, workspace: UUID, tool: str) -> bool:
    """Whether a run may begin an effect of this tool here, beside those that are under way."""
    if not actors.is_own(tool):
        return False
    if tool not in _slow_tools():
        return True
    params = (now_ms(), sql.key(run), sql.key(workspace))
    [(finished, everyones, own, of_place)] = sql.execute(_with_tools(_SLOW), params)
    place_max, all_max = slow_max()
    return (finished or not own) and int(of_place or 0) < place_max and int(everyones) < all_max


def comes_from(workspace: UUID, place: int) -> None:
    """Store where a workspace's last form came from: one place shares one visitor's slots."""
    sql.change(_PLACE, (place, sql.key(workspace), place))


def serve(workspace: UUID) -> None:
    """Record that this agent takes a run of a workspace now; the caller holds the log's lock."""
    sql.change(_SERVED, (sql.key(workspace), settings.NANOVM_AGENT, now_ms()))


def _first(not_of: UUID, besides: Collection[str], ending: str, *ends: str) -> str | None:
    at_ms, (own_max, all_max) = now_ms(), slow_max()
    keys = [sql.key_of(each) for each in besides] or [sql.key(NOBODY)]
    caps = (leases_max(), own_max, all_max)
    params = (*[at_ms] * 6, sql.key(not_of), at_ms, *caps, *keys, *ends)
    statement = f"{_with_tools(_NEXT)}{sql.marks(keys)}{ending}"
    for (run,) in sql.execute(statement, params):
        return sql.name(run)
    return None


def _slow_tools() -> frozenset[str]:
    return frozenset[str]().union(*(each.slow_tools for each in installed()))


def _with_tools(statement: str) -> str:
    """The statement with the tools' names; a program's tool has no quote in its name."""
    return _filled(statement, _slow_tools(), actors.own_in_sql())


@lru_cache(maxsize=16)
def _filled(statement: str, slow: frozenset[str], own: str) -> str:
    listed = ", ".join(f"'{each}'" for each in sorted(slow)) or "''"
    return statement.replace("{slow}", listed).replace("{own}", own)


def waiting_ms() -> int:
    """How long the run that waits longest for a worker has waited; 0 where none does."""
    at_ms = now_ms()
    owing = Run.objects.filter(due_ms__lte=at_ms, ended_ms=None, workspace__successor=None)
    free = owing.filter(state__in=(ACTIVE, WAITING)).exclude(until_ms__gt=at_ms)
    since_ms = free.aggregate(since=Min(Greatest("owed_ms", "due_ms")))["since"]
    return max(0, at_ms - since_ms) if since_ms is not None else 0
