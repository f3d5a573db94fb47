"""What pages and doors show of the gate: its programs, its agents, and their calls."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, QuerySet

from engine.application import installed
from engine.models import AdapterCall, Envelope
from engine.queries.runs import logs_of
from engine.store import records
from engine.store.programs import current
from gate import replies
from gate.application import ASK, granted
from gate.models import Call
from nanovm_core.agents import CHAIN
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import Tool

HOUR_MS = 3_600_000


class Folded(NamedTuple):
    """The calls of an agent in an hour that began at ``hour_ms``, counted by verdict."""

    agent: str
    hour_ms: int
    counts: Mapping[str, int]


def programs() -> dict[str, list[Tool]]:
    """The programs that can be used, each with the tools that it grants, by name."""
    return {each.name: granted(current(each)) for each in installed() if each.is_gate}


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
    rows = rows.annotate(
        made=Exists(AdapterCall.objects.filter(run=OuterRef("run")).exclude(tool=ASK))
    )
    states = rows.values_list("agent", "hour_ms", "run__state", "made")
    for agent, hour_ms, state, made, count in states.annotate(n=Count("run")):
        if (agent, hour_ms) in found:
            found[agent, hour_ms][_verdict(state, is_made=bool(made))] += count
    return [Folded(*each, counts) for each, counts in found.items()]


def _by_hour(log: UUID) -> "QuerySet[Any, Any]":
    rows = Call.objects.filter(workspace_id__in=logs_of(log))
    return rows.annotate(hour_ms=F("created_ms") / HOUR_MS * HOUR_MS)


def _verdict(state: str, *, is_made: bool) -> str:
    """What became of a call, by its run's row alone; ``answers`` reads what is sealed."""
    if state == life.COMPLETED:
        return replies.DONE
    if state in life.TERMINAL:
        return replies.FAILED if is_made else replies.REFUSED
    if state in life.SUSPENDED:
        return replies.UNKNOWN if is_made and state == life.APPROVAL else replies.HELD
    return replies.ALLOWED if state == life.WAITING else replies.RUNNING
