"""What the calls in a log add to its totals, and what its windows count of them.

A total only grows, but for failures in a row, so a window is the total now without the total
before its start. Names: ``calls``, ``calls@payer``, ``spent/EUR/stripe.create_payment_intent``.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from nanovm_core.core.authority.budget import is_currency
from nanovm_core.core.authority.windows import (
    AGENT,
    CALLS,
    IN_A_ROW,
    REFUSED,
    Rate,
    Window,
    changes,
    rate_of,
)
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.messages import NOTHING, Counts
from nanovm_core.core.program import Program

Before = Callable[[str, int], int]  # a total's value before a time, by the total's name


class Counted(NamedTuple):
    """A count of a context: its name there, the total it is made of, and its window's length."""

    name: str
    total: str
    within_ms: int  # 0: the total itself


def counted(program: Program, agent: str) -> tuple[Counted, ...]:
    """What a run of this agent reads of its log's totals: windows, and the rates of its grants."""
    windows, grants = program.windows + program.policy.windows, program.grants
    if not (windows or grants):
        return ()
    rates = tuple([(name, each.rate) for name, each in grants.items() if each.rate])
    agents = dict.fromkeys((agent, *(program.acting(name, agent) for name in program.grants)))
    return _counted(windows, rates, tuple(agents))


@lru_cache(maxsize=256)
def _counted(
    windows: tuple[Window, ...], rates: tuple[tuple[str, Rate], ...], agents: tuple[str, ...]
) -> tuple[Counted, ...]:
    found = [
        Counted(each.named(agent), total_of(each.what, each.tool, agent), each.within_ms)
        for each in windows
        for agent in (agents if each.scope == AGENT else ("",))
    ]
    found += [Counted(rate_of(tool), total_of(CALLS, tool), rate.within_ms) for tool, rate in rates]
    return tuple(found)


def total_of(what: str, tool: str = "", agent: str = "") -> str:
    """The name of a total: of the calls of a tool alone, of an agent alone, or of all."""
    return what + (f"/{tool}" if tool else "") + (f"@{agent}" if agent else "")


def has_rows(total: str) -> bool:
    """Whether windows read what a total was: of a row of failures only what it is."""
    return not total.startswith(IN_A_ROW)


def counts(program: Program, agent: str, at_ms: int, totals: Counts, before: Before) -> Counts:
    """The counts of a context at ``at_ms``, from a log's totals now and ``before`` a time.

    A window begins ``within_ms`` before ``at_ms``, and counts what was sealed at its start.
    """
    found = {}
    for name, total, within_ms in counted(program, agent):
        now = totals.get(total, 0)
        found[name] = now - before(total, at_ms - within_ms) if within_ms and now else now
    return MappingProxyType(found)


def totals_after(
    program: Program, agent: str, kind: str, body: Mapping[str, object], totals: Counts
) -> Counts:
    """The totals that an envelope of a run of ``agent`` changes, as they are after it.

    Counted is what the run's own windows read, and what the log counts already for others.
    """
    read = counted(program, agent)
    if not (read or totals):
        return {}
    names = {each.total for each in read} | totals.keys()
    found = _changed(program, agent, kind, body, totals)
    return {name: now for name, now in found if name in names and now != totals.get(name, 0)}


def _changed(
    program: Program, agent: str, kind: str, body: Mapping[str, object], totals: Counts
) -> Iterator[tuple[str, int]]:
    changed, tool = changes(kind, _spent(body)), str(body.get("tool", ""))
    if not changed or body.get("outcome") == "waiting":  # it is counted once it has ended
        return
    if kind == REFUSED:  # what was proposed may be nonsense, so it counts for no tool
        state: Any = body.get("state", NOTHING)
        if state.get("event") != ProposalReceived.__name__:
            return
        tool = ""
    elif tool not in program.granted:
        return
    user = program.acting(tool, agent)
    for what, change in changed.items():
        for name in {total_of(what, of, by) for of in ("", tool) for by in ("", user)}:
            yield name, 0 if change is None else totals.get(name, 0) + change


def _spent(body: Mapping[str, object]) -> Counts:
    """The money that a result paid, by currency: each of the accounts that paid it says so."""
    budget: Any = body.get("budget", NOTHING)
    units = {
        name.partition("@")[0].partition("/")[2]: int(amount)
        for name, amount in budget.get("spent", NOTHING).items()
    }
    return {unit: amount for unit, amount in units.items() if is_currency(unit)}
