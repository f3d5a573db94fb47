"""The limits of a log: its accounts, each with the event that put it in force; its windows."""

from typing import NamedTuple
from uuid import UUID

from engine.clock import now_ms
from engine.models import Envelope, Workspace
from engine.queries.runs import time_of
from engine.store import records, tallies
from nanovm_core.core.authority.budget import MONEY, UNITS, Budget
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.core.messages import Counts
from nanovm_core.core.program import Program

SHOWN_MAX = 20  # the newest of them


class SealedLimit(NamedTuple):
    """A limit as an event of a log's own chain put it in force; ``seq``: its place in the log."""

    seq: int
    at_ms: int
    budget: Budget
    agent: str


def sealed(workspace: UUID) -> tuple[SealedLimit, ...]:
    """The newest limits that were put in force in a log, newest first."""
    rows = Envelope.objects.filter(workspace=workspace, run=LOG_RUN)
    rows = rows.filter(kind__in=("genesis", "policy")).order_by("-n")  # as its own index has them
    found = []
    for seq, data in rows.values_list("seq", "bytes")[:SHOWN_MAX]:
        body = records.body_of(bytes(data))
        for name, limit in records.part_of(body, "limits").items():
            scope, _, rest = name.partition("/")
            unit, _, agent = rest.partition("@")
            kind, currency = (unit, "") if unit in UNITS else (MONEY, unit.replace("*", ""))
            budget = Budget(scope=scope, unit=kind, max=limit, currency=currency)
            found.append(SealedLimit(seq, time_of(body) or 0, budget, agent))
    return tuple(found[:SHOWN_MAX])


def windows(log: Workspace, program: Program, agent: str) -> Counts:
    """What each window of a program and its policy counts now for an agent, by its name."""
    counts = tallies.counts_of(log, program, agent, now_ms())
    found = (*program.windows, *program.policy.windows)
    return {each.name: counts.get(each.named(agent), 0) for each in found}
