"""What pages and doors show of the gate: its programs, its agents, and their calls."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, F, QuerySet
from django.db.models.expressions import RawSQL

from engine.application import installed
from engine.models import Envelope
from engine.queries.runs import logs_of
from engine.store import records
from engine.store.programs import current
from engine.store.run_rows import IS_FOR_AGENT as SAYS  # whether a run's value has such bytes
from gate.answers import GAVE_UP
from gate.application import GateProgram, granted
from gate.models import Call
from nanovm_core.agents import CHAIN
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import Tool
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME

HOUR_MS = 3_600_000
# ``answers.verdict_of`` as the database reads it, of columns that are compared with the log; the
# encoder of a run's value leaves out what is empty.
_PARTS = (
    *(b'"begun":', b'"begun":1,', b'"reason":["%b",' % GAVE_UP.encode(), b'"awaits":'),
    b'"held_by":"%b"' % UNKNOWN_OUTCOME.encode(),
)
_VERDICT = (
    f"CASE WHEN state = '{life.COMPLETED}' THEN 'done' WHEN state IN {(*sorted(life.TERMINAL),)}"
    f" THEN CASE WHEN NOT ({SAYS}) OR {SAYS} THEN 'refused' WHEN quarantined OR {SAYS}"
    f" THEN 'unknown' ELSE 'failed' END WHEN state = '{life.PAUSED}' AND (begun_ms IS NOT NULL"
    f" OR {SAYS}) THEN 'running' WHEN {SAYS} THEN 'unknown' WHEN state IN"
    f" {(*sorted(life.SUSPENDED),)} THEN 'held' WHEN (state = '{life.WAITING}' OR"
    f" state = '{life.ACTIVE}' AND owed_tool = tool) AND program || ' ' || tool IN ({{}})"
    " THEN 'allowed' ELSE 'running' END"
)


class Folded(NamedTuple):
    """The calls of an agent in an hour that began at ``hour_ms``, counted by verdict."""

    agent: str
    hour_ms: int
    counts: Mapping[str, int]


def programs() -> dict[str, list[Tool]]:
    """The programs that can be used, each with the tools that it grants, by name."""
    return {it.name: granted(current(it)) for it in installed() if isinstance(it, GateProgram)}


def of_agent(log: UUID, name: str) -> str:
    """The program under which an agent was last declared to call; empty for one of ours."""
    chain = Envelope.objects.filter(workspace=log, run=f"{CHAIN}{name}").order_by("-n")
    found = (records.part_of(records.body_of(each.bytes), "in") for each in chain)
    return next((str(each["program"]) for each in found if "program" in each), "")


def calls(log: UUID, agent: str, from_ms: int, to_ms: int) -> "QuerySet[Call]":
    """An agent's calls from a time on and before another, the newest first, each with its run."""
    found = Call.objects.filter(workspace_id__in=logs_of(log), agent=agent)
    found = found.filter(created_ms__gte=from_ms, created_ms__lt=to_ms)
    return found.select_related("run").order_by("-created_ms", "run_id")


def hours(log: UUID) -> "QuerySet[Any, tuple[str, int]]":
    """Agent and beginning of each hour in which one called, the newest first."""
    rows = _by_hour(log).values_list("agent", "hour_ms").distinct()
    return rows.order_by("-hour_ms", "agent")


def folded(log: UUID, which: Sequence[tuple[str, int]]) -> Sequence[Folded]:
    """The calls of these of ``hours``, in their order, counted by verdict."""
    found = {each: Counter[str]() for each in which}
    times = [hour_ms for _, hour_ms in which] or [0]
    rows = _by_hour(log).filter(created_ms__gte=min(times), created_ms__lt=max(times) + HOUR_MS)
    outside = [
        f"{p} {tool.name}" for p, tools in programs().items() for tool in tools if not tool.at
    ]
    verdict = _VERDICT.format(", ".join(["%s"] * len(outside)) or "''")
    rows = rows.filter(run__state__gt="").annotate(says=RawSQL(verdict, (*_PARTS, *outside)))  # noqa: S611
    counted = rows.values_list("agent", "hour_ms", "says").annotate(n=Count("run"))
    for agent, hour_ms, says, count in counted:
        if (agent, hour_ms) in found:
            found[agent, hour_ms][says] += count
    return [Folded(*each, counts) for each, counts in found.items()]


def _by_hour(log: UUID) -> "QuerySet[Any, Any]":
    rows = Call.objects.filter(workspace_id__in=logs_of(log))
    return rows.annotate(hour_ms=F("created_ms") / HOUR_MS * HOUR_MS)
