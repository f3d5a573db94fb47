"""Windows of time and rates: what they count, and by how much a call changes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nanovm_core.core.messages import Counts

CALLS, FAILURES, REFUSALS, IN_A_ROW = "calls", "failures", "refusals", "failures_in_a_row"
SPENT = "spent"
COUNTS = (CALLS, FAILURES, REFUSALS, IN_A_ROW, SPENT)
WORKSPACE, AGENT = "workspace", "agent"
WINDOW_SCOPES = (WORKSPACE, AGENT)
CALLED, DONE, FAILED, REFUSED = "called", "done", "failed", "refused"  # what became of a call
_NOTHING: Counts = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What rules read as ``$history.<name>``: a count over the calls of granted tools.

    ``spent`` counts the minor units of ``currency`` that were paid; what is under way is in no
    window. Without a ``tool`` it counts those of all.
    """

    name: str
    counts: str
    within_ms: int = 0  # not for failures_in_a_row
    scope: str = WORKSPACE
    tool: str = ""
    currency: str = ""

    def named(self, agent: str) -> str:
        """The name of its count, as a context has it for an agent."""
        return f"{self.name}@{agent}" if self.scope == AGENT else self.name

    @property
    def what(self) -> str:
        """What it counts, as ``changes`` names it."""
        return f"{SPENT}/{self.currency}" if self.counts == SPENT else self.counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many calls of a tool a log may have within a time, by all agents together."""

    calls: int
    within_ms: int


def rate_of(tool: str) -> str:
    """The name of the count for a grant's rate; no window can have it."""
    return f"rate/{tool}"


def changes(outcome: str, spent: Counts = _NOTHING) -> Mapping[str, int | None]:
    """What a call with this outcome adds to what is counted; None: that begins again at 0.

    ``spent``: minor units by currency.
    """
    match outcome:
        case "called":
            return {CALLS: 1}
        case "refused":
            return {REFUSALS: 1}
        case "failed":
            return {FAILURES: 1, IN_A_ROW: 1}
    return {IN_A_ROW: None, **{f"{SPENT}/{name}": amount for name, amount in spent.items()}}


def grown(count: int, change: int | None) -> int:
    """A count after one of ``changes``."""
    return 0 if change is None else count + change


def with_result(
    windows: Iterable[Window],
    counts: Counts,
    tool: str,
    agent: str,
    outcome: str,
    spent: Counts = _NOTHING,
) -> Counts:
    """The counts of a context, by name, with one more result of a granted tool.

    ``agent``: who used it. ``outcome``: DONE or FAILED. ``spent``: minor units by currency.
    """
    changed, more = changes(outcome, spent), {**counts}
    for each in windows:
        if each.what in changed and each.tool in ("", tool):
            name = each.named(agent)
            more[name] = grown(counts.get(name, 0), changed[each.what])
    return MappingProxyType(more)
