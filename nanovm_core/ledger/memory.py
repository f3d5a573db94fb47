"""A ledger in memory: accounts, totals of calls, suspensions and revocations, for one thread."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nanovm_core.core.authority.budget import AGENT_TOKENS, CLOCK, account_limits
from nanovm_core.core.lifecycle import EXHAUSTED
from nanovm_core.core.messages import Counts, Reservation
from nanovm_core.core.program import Program
from nanovm_core.ledger import accounts, owner_of, windows


class InMemoryLedger:
    """Shared accounts, totals of calls and revocations of one workspace, for one thread.

    Ledgers made ``beside`` another share its global accounts. A ledger holds what was used; each
    question takes the limits from the program and its policy.
    """

    def __init__(self, workspace: str = "", beside: "InMemoryLedger | None" = None) -> None:
        self._workspace = workspace
        self._used: dict[tuple[str, str], int] = beside._used if beside else {}
        self._frozen: dict[str, int] = {}  # tokens, by agent
        self._began: dict[str, int] = {}  # when each agent did, or was resumed
        self._totals: dict[str, int] = {}
        self._rows: dict[str, list[tuple[int, int]]] = {}  # of each total: time, and it since then
        self._revoked: set[str] = set()
        self.at_ms = 0  # of the newest call: a log's time never goes back
        self.halted = dict[str, str]()  # agents that begin nothing, each with its state

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
            if name == AGENT_TOKENS:
                self._frozen[agent] = self.frozen(agent) + reserved

    def frozen(self, agent: str) -> int:
        """The tokens that the runs of an agent have reserved."""
        return self._frozen.get(agent, 0)

    def halted_at(self, program: Program, agent: str, at_ms: int) -> Mapping[str, str]:
        """``halted``, with the agents of a run whose wall clock is over by then.

        An agent that is taken out of ``halted`` goes on, and its time begins anew.
        """
        budgets = (*program.budgets, *program.policy.budgets)
        most_ms = account_limits(budgets, ()).get(CLOCK)
        for name in program.actors(agent):
            ran_ms = at_ms - self._began.setdefault(name, at_ms)
            if most_ms is not None and ran_ms >= most_ms:
                self.halted.setdefault(name, EXHAUSTED)
            if name in self.halted:
                del self._began[name]
        return dict(self.halted)

    def record(
        self, program: Program, agent: str, kind: str, at_ms: int, body: Mapping[str, object]
    ) -> None:
        """Count an envelope of a run of ``agent``, by its kind, its time and its own fields."""
        found = windows.totals_after(program, agent, kind, body, self._totals)
        self._totals.update(found)
        self.at_ms = max(self.at_ms, at_ms) if found else self.at_ms
        for name, total in found.items():
            self._rows.setdefault(name, []).append((self.at_ms, total))

    def counts(self, program: Program, agent: str, at_ms: int) -> Counts:
        """What windows and rates of a run count at a time, which is at least ``at_ms`` here."""
        at_ms = max(at_ms, self.at_ms)
        return windows.counts(program, agent, at_ms, self._totals, self._before)

    def _before(self, name: str, at_ms: int) -> int:
        rows = self._rows.get(name, [])
        place = bisect_left(rows, (at_ms, 0))
        return rows[place - 1][1] if place else 0

    def revoke(self, grant: str) -> None:
        """Revoke a grant for every run, by its id (``capabilities.grant_id``)."""
        self._revoked.add(grant)

    @property
    def revoked(self) -> frozenset[str]:
        """The ids of the revoked grants."""
        return frozenset(self._revoked)
