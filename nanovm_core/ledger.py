"""Books in memory: what runs share, for a runtime without a database and for dry verdicts."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from nanovm_core.core.budget import account_limits, is_currency
from nanovm_core.core.capabilities import Constraint, Source, Tool
from nanovm_core.core.events import Event, ProposalReceived
from nanovm_core.core.messages import Decision, Recorded, Reservation, Snapshot
from nanovm_core.core.policy import RECORDS_MAX
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import read_proposal
from nanovm_core.errors import RefusedError

AGENT, GLOBAL = "agent/", "global/"

# What the envelopes about a granted tool are to the windows that count calls.
_OUTCOMES: Mapping[str, str] = MappingProxyType(
    {"intent": "called", "result": "done", "failed": "failed"}
)


class Books:
    """Shared accounts, recorded calls and revocations of one workspace, for one thread.

    Books made ``beside`` others keep the global accounts together with them. They hold what
    was used; how much there may be, program and policy say anew at each question.
    """

    def __init__(self, beside: "Books | None" = None) -> None:
        self._used: dict[tuple[str, str], int] = {}
        self._everybody: dict[tuple[str, str], int] = beside._everybody if beside else {}
        self._calls: deque[Recorded] = deque(maxlen=RECORDS_MAX)
        self._revoked: set[str] = set()

    def ledger(self, program: Program, agent: str, values: Iterable[object]) -> Mapping[str, int]:
        """What each account that bears on a run has left; ``values`` may name its currencies."""
        budgets = (*program.budgets, *program.policy.budgets)
        limits = account_limits(budgets, currencies(program, values))
        return MappingProxyType(
            {name: top - self._of(name).get(_row(name, agent), 0) for name, top in limits.items()}
        )

    def settle(self, agent: str, changes: Iterable[Reservation]) -> None:
        """Book what a decision changed: what is frozen or spent is not left."""
        for change in changes:
            used, row = self._of(change.account), _row(change.account, agent)
            used[row] = used.get(row, 0) + change.reserved + change.spent

    def record(self, calls: Iterable[Recorded]) -> None:
        """Remember calls, for windows of time; the newest RECORDS_MAX are kept."""
        self._calls.extend(calls)

    def revoke(self, grant: str) -> None:
        """Take a grant back, by its id (``grant_id``), from every run."""
        self._revoked.add(grant)

    @property
    def history(self) -> tuple[Recorded, ...]:
        """The newest calls, oldest first."""
        return tuple(self._calls)

    @property
    def revoked(self) -> frozenset[str]:
        """The ids of the grants that were taken back."""
        return frozenset(self._revoked)

    def _of(self, account: str) -> dict[tuple[str, str], int]:
        return self._everybody if account.startswith(GLOBAL) else self._used


def calls_of(
    program: Program, agent: str, event: Event, at_ms: int, decision: Decision
) -> Iterator[Recorded]:
    """What windows count of a decision: calls of granted tools, and refused proposals."""
    if isinstance(event, ProposalReceived) and decision.refusal is not None:
        yield Recorded(at_ms, "", "refused", agent)
    for draft in decision.drafts:
        tool, outcome = draft.body.get("tool"), _OUTCOMES.get(draft.kind)
        under_way = draft.body.get("outcome") == "waiting"
        if outcome is not None and tool in program.granted and not under_way:
            yield Recorded(draft.at_ms, str(tool), outcome, agent)


def currencies(program: Program, values: Iterable[object]) -> tuple[str, ...]:
    """The currencies a run may be about: those the program lays down, and those among values."""
    fixed = (each for tool in program.tools.values() for each in _laid_down(program, tool))
    found = {each for each in (*fixed, *values) if isinstance(each, str) and is_currency(each)}
    return tuple(sorted(found))


def values_of(now: Snapshot, event: Event) -> Iterator[object]:
    """What may name a currency: the run's slots, its judged call, and the call of a proposal."""
    yield from now.slots.values()
    yield from now.call[1].values() if now.call else ()
    if isinstance(event, ProposalReceived):
        try:
            yield from read_proposal(event.raw).args.values()
        except RefusedError:
            return  # it is no call, so it is about no money: the transition says so


def _laid_down(program: Program, tool: Tool) -> Iterator[object]:
    """The currencies that a tool, its schema or its grant fixes."""
    if tool.money is None:
        return
    name, grant = tool.money.currency, program.grants.get(tool.name)
    yield tool.money.currency_is
    yield tool.critical.get(name, Source()).constant
    yield from (tool.args[name].one_of or ()) if name else ()
    yield from (grant.where.get(name, Constraint()).one_of or ()) if grant else ()


def _row(account: str, agent: str) -> tuple[str, str]:
    """An agent's account is its own; the others are everybody's here."""
    return (agent if account.startswith(AGENT) else "", account)
