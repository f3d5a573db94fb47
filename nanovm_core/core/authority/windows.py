"""Windows of time and rates: what they count, and by how much a call changes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nanovm_core.core.messages import NOTHING, Counts

CALLS, FAILURES, REFUSALS, IN_A_ROW = "calls", "failures", "refusals", "failures_in_a_row"
SPENT = "spent"
COUNTS = (CALLS, FAILURES, REFUSALS, IN_A_ROW, SPENT)
WORKSPACE, AGENT = "workspace", "agent"
WINDOW_SCOPES = (WORKSPACE, AGENT)
# Of a call: the kinds of the envelopes that say what became of it.
CALLED, DONE, FAILED, REFUSED = "intent", "result", "failed", "refused"
_ADDS: Mapping[str, Mapping[str, int | None]] = MappingProxyType(
    {
        CALLED: {CALLS: 1},
        DONE: {IN_A_ROW: None},
        FAILED: {FAILURES: 1, IN_A_ROW: 1},
        REFUSED: {REFUSALS: 1},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What rules read as ``$history.<name>``: a count over the calls of granted tools.

    ``spent`` counts the minor units of ``currency`` that were paid, not what is under way. Without
    a ``tool`` it counts those of all.
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


def changes(kind: str, spent: Counts = NOTHING) -> Mapping[str, int | None]:
    """What an envelope of this kind adds to what is counted; None: that begins again at 0.

    Nothing of a kind that is not about a call. ``spent``: minor units by currency.
    """
    paid = {f"{SPENT}/{name}": amount for name, amount in spent.items()}
    return {**_ADDS.get(kind, NOTHING), **(paid if kind == DONE else NOTHING)}


def with_result(
    windows: Iterable[Window],
    counts: Counts,
    tool: str,
    agent: str,
    kind: str,
    spent: Counts = NOTHING,
) -> Counts:
    """The counts of a context, by name, with one more result of a granted tool.

    ``agent``: who used it. ``kind``: DONE or FAILED. ``spent``: minor units by currency.
    """
    changed, after = changes(kind, spent), {**counts}
    for each in windows:
        if each.what in changed and each.tool in ("", tool):
            name, more = each.named(agent), changed[each.what]
            after[name] = 0 if more is None else counts.get(name, 0) + more
    return MappingProxyType(after)
