"""The ledgers of one commit: checked once, changed by what it seals, and stored with it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from engine.clock import now_ms
from engine.entropy import uuid7
from engine.models import Workspace
from engine.store import ledgers, logs, tallies
from engine.store.tallies import Tally
from nanovm_core.core.authority.budget import ANY, CLOCK, account_limits, is_currency, name_of
from nanovm_core.core.envelope import LOG_RUN, ZERO
from nanovm_core.core.events import Event
from nanovm_core.core.messages import Counts, Draft, Reservation, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.ledger import GLOBAL, accounts, owner_of, values_of, windows
from nanovm_core.ledger.fold import SETTLEMENT, after
from nanovm_core.ledger.value import NOT_SEALED, Alert, Ledger, Used, encode_ledger, ledger_hash

ALERT = "alert"
NOT_THE_SEALED = "The stored ledger was not the one that the log seals: it was made again."
Seal = Callable[..., object]  # ``Commit.seal``, in the name of the runtime


class Ledgers:
    """What accounts have left and windows count, while a commit changes it; logs are locked.

    ``logs``: those that the commit has, by name; ``seal`` seals an envelope on a log's own chain.
    """

    def __init__(self, logs: Mapping[str, Workspace], seal: Seal) -> None:
        self._logs, self.seal = logs, seal
        self.now: dict[str, Ledger] = {}  # by log; as the commit before left it, or as ``of`` found
        self._hashed: dict[str, tuple[Ledger, str]] = {}
        self.read: set[ledgers.Newest] = set()  # the last envelopes of runs, as their locks showed
        self._rows: dict[tuple[str, str], list[Tally]] = {}  # by log and total, to be stored
        self.doubted: set[str] = set()  # hashes of last envelopes that a run's row does not name
        self._house: Workspace | None = None
        self._shared: dict[str, Used] = {}  # to be settled in the house log with this commit

    def of(self, log: Workspace) -> Ledger:
        """A log's ledger as of now. One that was not sealed is put right, and that is sealed."""
        if log.name not in self.now:
            found = ledgers.checked(log, self.read, self.doubted)
            self.now[log.name] = found.ledger
            if found.alert is not None:
                alert = Alert(NOT_SEALED, NOT_THE_SEALED, "", now_ms())
                opened = {"ledger": dict(alert._asdict())}
                self.seal(log, ALERT, {**found.alert, "alerts": opened})
        return self.now[log.name]

    def take(self, log: Workspace, said: Mapping[str, object]) -> None:
        """Take in what an envelope of a log says that is about to be sealed."""
        whole = said["run"] == LOG_RUN and "ledger" in said
        now = Ledger() if whole else self.of(log)
        self.now[log.name] = after(now, said)

    def sealed(self, log: Workspace) -> str:
        """The hash of a log's ledger, for an envelope; the log's row has the same from now on."""
        ledger = self.now[log.name]
        known = self._hashed.get(log.name)
        if known is None or known[0] is not ledger:
            log.ledger = encode_ledger(ledger)
            self._hashed[log.name] = known = ledger, ledger_hash(log.ledger)
        return known[1]

    def are_counted(self, log: Workspace, program: Program | None, agent: str) -> bool:
        """Whether a total of the log may change by what a run of this agent does."""
        totals = self.of(log).totals
        return program is not None and bool(totals or windows.counted(program, agent))

    def count(self, log: Workspace, program: Program, draft: Draft) -> Counts:
        """The totals that a draft changes, as they are after it, which its envelope has to say."""
        ledger, agent = self.now[log.name], draft.after.agent
        found = windows.totals_after(program, agent, draft.kind, draft.body, ledger.totals)
        for name, total in found.items():
            if windows.has_rows(name):
                rows = self._rows.setdefault((log.name, name), [])
                rows.append(Tally(draft.at_ms, log.size, total))
        return found

    def counts(self, log: Workspace, program: Program, agent: str, at_ms: int) -> Counts:
        """What windows and rates of a run count at a time, with what this commit has counted."""
        totals = self.of(log).totals
        return windows.counts(program, agent, at_ms, totals, partial(self._before, log))

    def _before(self, log: Workspace, name: str, at_ms: int) -> int:
        for row in reversed(self._rows.get((log.name, name), [])):
            if row.at_ms < at_ms:
                return row.total
        return tallies.before(log, name, at_ms)

    def left(
        self, log: Workspace, program: Program, snapshot: Snapshot, event: Event
    ) -> Mapping[str, int]:
        """What each account that bears on a run has left."""
        found = accounts(program, log.name, snapshot.agent, values_of(snapshot, event))
        left = {}
        for name, account in found.items():
            if account.owner == GLOBAL:
                pending = sum(self._shared.get(name, Used()))
                left[name] = ledgers.left_of(self.of(self.house()), account, name) - pending
            else:
                left[name] = ledgers.left_of(self.of(log), account, name_of(name, snapshot.agent))
        return left

    def put_in_force(self, log: Workspace, agent: str, program: Program) -> None:
        """Set the limits of a new run's program and policy, for the runs under way too.

        Accounts that no budget names keep their limits.
        """
        now, policy = self.of(log), program.policy.hash
        limits = limits_set(program, agent, now)
        if limits or policy != now.policy:
            self.seal(log, "policy", {"policy": policy, **({"limits": limits} if limits else {})})
        if any(each.scope == GLOBAL for each in (*program.budgets, *program.policy.budgets)):
            limits = limits_set(program, agent, self.of(self.house()), shared=True)
            if limits:
                self.seal(self.house(), "policy", {"policy": policy, "limits": limits})

    def settle(self, log: Workspace, agent: str, changes: Sequence[Reservation]) -> None:
        """Take in what a decision does to accounts that all workspaces share."""
        for name, reserved, spent in changes:
            if owner_of(name, log.name, agent) == GLOBAL:
                self.of(self.house())  # locked, before anything is written
                before = self._shared.get(name, Used())
                self._shared[name] = Used(before.reserved + reserved, before.spent + spent)

    def house(self) -> Workspace:
        """The house log, locked after all others, and made where it is not there yet."""
        if self._house is None:
            found = _locked_house()
            self._house = self._logs.get(found.name, found)
            if self._house.size == 0:
                self.seal(self._house, "genesis", {})
        return self._house

    def close(self) -> None:
        """Seal one settlement of all that this commit does to shared accounts; store its counts."""
        budget: dict[str, dict[str, int]] = {}
        for name, each in self._shared.items():
            taken = sum(each)
            if taken:
                budget.setdefault("reserved" if taken > 0 else "released", {})[name] = abs(taken)
            if each.spent:
                budget.setdefault("spent", {})[name] = each.spent
        if budget:
            self.seal(self.house(), SETTLEMENT, {"budget": budget})
        for (log, name), rows in self._rows.items():
            tallies.append(self._logs[log], name, rows)


def limits_set(program: Program, agent: str, now: Ledger, *, shared: bool = False) -> Counts:
    """The limits that program and policy of a run set otherwise than a ledger has them.

    ``shared``: those of the accounts that all workspaces share, in the house log; else its own.
    """
    budgets = (*program.budgets, *program.policy.budgets)
    units = {name.partition("@")[0].partition("/")[2] for name in now.limits}
    limits = account_limits(
        [each for each in budgets if (each.scope == GLOBAL) == shared],
        {ANY, *filter(is_currency, units)},
    )
    named = {
        name_of(name, each): limit
        for name, limit in limits.items()
        for each in (program.actors(agent) if name == CLOCK else (agent,))
    }
    return {name: limit for name, limit in named.items() if now.limits.get(name) != limit}


def _locked_house() -> Workspace:
    found = logs.lock([ledgers.HOUSE]).get(ledgers.HOUSE)
    if found is None:
        name = f"{logs.ORIGIN_HOST}/house-{uuid7().hex[-12:]}"
        row = Workspace(id=ledgers.HOUSE, origin=name, log_head=ZERO, created_ms=now_ms())
        Workspace.objects.bulk_create([row], ignore_conflicts=True)
        found = logs.lock([ledgers.HOUSE])[ledgers.HOUSE]
    if found.successor_id is not None:
        return logs.lock([found.successor_id])[found.successor_id]
    return found
