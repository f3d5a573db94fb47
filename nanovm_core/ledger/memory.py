"""A ledger in memory: shared accounts, recorded calls and revocations, for one thread."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from nanovm_core.core.authority.policy import RECORDS_MAX
from nanovm_core.core.messages import Decision, Recorded, Reservation
from nanovm_core.core.program import Program
from nanovm_core.ledger import accounts, call_of, owner_of


class InMemoryLedger:
    """Shared accounts, recorded calls and revocations of one workspace, for one thread.

    Ledgers made ``beside`` another share its global accounts. A ledger holds what was used; each
    question takes the limits from the program and its policy.
    """

    def __init__(self, workspace: str = "", beside: "InMemoryLedger | None" = None) -> None:
        self._workspace = workspace
        self._used: dict[tuple[str, str], int] = beside._used if beside else {}
        self._calls: deque[Recorded] = deque(maxlen=RECORDS_MAX)
        self._revoked: set[str] = set()

    def left(self, program: Program, agent: str, values: Iterable[object]) -> Mapping[str, int]:
        """The amount left in each account of a run; ``values`` may name its currencies."""
        found = accounts(program, self._workspace, agent, values)
        return MappingProxyType(
            {
                name: account.left(account.limit, self._used.get((account.owner, name), 0))
                for name, account in found.items()
            }
        )

    def settle(self, agent: str, changes: Iterable[Reservation]) -> None:
        """Book the reservations and payments of a decision (``Decision.budgets``)."""
        for name, reserved, spent in changes:
            key = owner_of(name, self._workspace, agent), name
            self._used[key] = self._used.get(key, 0) + reserved + spent

    def record(self, calls: Iterable[Recorded]) -> None:
        """Record calls for windows of time; only the newest RECORDS_MAX are kept."""
        self._calls.extend(calls)

    def revoke(self, grant: str) -> None:
        """Revoke a grant for every run, by its id (``capabilities.grant_id``)."""
        self._revoked.add(grant)

    @property
    def history(self) -> tuple[Recorded, ...]:
        """The newest calls, oldest first."""
        return tuple(self._calls)

    @property
    def revoked(self) -> frozenset[str]:
        """The ids of the revoked grants."""
        return frozenset(self._revoked)


def calls_of(program: Program, agent: str, decision: Decision) -> Iterator[Recorded]:
    """What windows count of a decision."""
    found = (call_of(program, agent, d.kind, d.at_ms, d.body) for d in decision.drafts)
    return (call for call in found if call is not None)
