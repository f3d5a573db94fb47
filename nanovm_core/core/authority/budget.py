"""Budgets: integers, reserved before an effect, settled after it, given back when it failed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from nanovm_core.core.messages import NOTHING, Counts, Reservation, Reservations
from nanovm_core.errors import RefusedError

MONEY, CALLS, STEPS, TOKENS, WALL = "money", "calls", "steps", "tokens", "wall_ms"
UNITS = (MONEY, CALLS, STEPS, TOKENS, WALL)
COUNTED = frozenset({CALLS, STEPS, TOKENS})
AGENT, WORKSPACE, GLOBAL = "agent", "workspace", "global"
SCOPES = (AGENT, WORKSPACE, GLOBAL)  # of shared accounts
CODES: Mapping[str, str] = MappingProxyType(
    {MONEY: "BUD-001", CALLS: "BUD-002", STEPS: "BUD-003", TOKENS: "BUD-004"}
)

TOKENS_USED_MAX = 1_000_000_000  # of one answer: every sum of them stays a number that is sealed
AGENT_TOKENS = f"{AGENT}/{TOKENS}"
CLOCK = f"{AGENT}/{WALL}"  # used up by time alone: a limit, and nothing is reserved or spent
OWN = "run/"  # accounts in ``Snapshot.used``
ANY = "*"  # in place of a currency: every one without a limit of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A shared account: ``max`` of a unit; money in minor units, each currency apart."""

    scope: str
    unit: str
    max: int
    currency: str = ""  # money only; empty is every currency


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """One run's limits; money is per currency, and 0 by default."""

    proposals_max: int = 0
    warrant_ttl_ms: int = 900_000
    approval_ttl_ms: int = 604_800_000  # from hold to approval, and from approval to call
    calls_max: int = 16
    steps_max: int = 1_000
    tokens_max: int = 100_000
    wall_ms_max: int = 86_400_000
    money_minor_max: int = 0


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts that pay a run's calls: its own limits and the shared budgets."""

    limits: Limits
    budgets: tuple[Budget, ...]
    step: Reservations = field(init=False)  # of one step

    def __post_init__(self) -> None:
        step = tuple(Reservation(name, 0, 1) for name in self.of(STEPS)[1])
        object.__setattr__(self, "step", step)

    def of(self, unit: str) -> tuple[int, tuple[str, ...]]:
        """A unit's limit in the run, its shared accounts, narrowest first (BUD-006: none)."""
        most = self.limits
        own = {CALLS: most.calls_max, STEPS: most.steps_max, TOKENS: most.tokens_max}
        kind = unit if unit in own else MONEY
        if kind == MONEY and not (is_currency(unit) and self.covers(unit)):
            raise RefusedError("BUD-006", "There is no budget for this currency.")
        found = {each.scope for each in self.budgets if each.unit == kind}
        names = tuple(f"{scope}/{unit}" for scope in SCOPES if scope in found)
        return own.get(unit, most.money_minor_max), names

    def checks(
        self, unit: str, amount: int, ledger: Counts, used: Counts
    ) -> Iterator[tuple[str, int | None, RefusedError | None]]:
        """Each paying account, what it has left (None: not open), and its refusal (BUD-006)."""
        for account, left in self.left(unit, ledger, used).items():
            covered = 0 < amount <= (left or 0)
            yield account, left, None if covered else over(unit, left, account)

    def left(self, unit: str, ledger: Counts, used: Counts) -> Mapping[str, int | None]:
        """What each account that pays a unit has left, the run's own first; None: not open."""
        limit, names = self.of(unit)
        own = {OWN + unit: limit - used.get(unit, 0)}
        return MappingProxyType(own | {name: ledger.get(name) for name in names})

    def require_time(self, started_ms: int, at_ms: int) -> None:
        """Return if the run's clock has not started, or has time left (BUD-005)."""
        if started_ms and at_ms - started_ms >= self.limits.wall_ms_max:
            raise RefusedError("BUD-005", f"The run's {self.limits.wall_ms_max} ms have passed.")

    def begin_step(self, begun: int, ledger: Counts, started_ms: int, at_ms: int) -> Reservations:
        """Spend one step of each account that counts steps."""
        self.require_time(started_ms, at_ms)
        left = self.limits.steps_max - begun
        if left <= 0:
            raise over(STEPS, left, OWN + STEPS)
        for name, _, _ in self.step:
            if ledger.get(name, 0) < 1:
                raise over(STEPS, ledger.get(name), name)
        return self.step

    def reserve(self, need: Counts, ledger: Counts, used: Counts) -> Reservations:
        """All reservations of a need, by unit, or a refusal (BUD-001 … BUD-004, BUD-006)."""
        taken = []
        for unit, amount in need.items():
            for account, _, refusal in self.checks(unit, amount, ledger, used):
                if refusal is not None:
                    raise refusal
                taken.append(Reservation(account, amount))
        return tuple(taken)

    def covers(self, currency: str) -> bool:
        """Whether shared money accounts exist, and every scope has one for this currency."""
        money = [each for each in self.budgets if each.unit == MONEY]
        covered = {each.scope for each in money if each.currency in ("", currency)}
        return bool(money) and covered == {each.scope for each in money}


def is_currency(text: str) -> bool:
    """Whether a text is three capital letters, so that no currency names a unit."""
    return len(text) == 3 and text.isascii() and text.isalpha() and text.isupper()


def settle(reserved: Iterable[Reservation], actual: Counts = NOTHING) -> Reservations:
    """Turn reservations into spending: ``actual`` of a unit where that is known.

    ``actual`` is untrusted: it is kept between 0 and what was reserved. Only tokens may be more, up
    to TOKENS_USED_MAX: a model has used them already.
    """
    spent = []
    for each in reserved:
        unit, most = unit_of(each), each.reserved
        used = max(actual.get(unit, most), 0)
        used = min(used, TOKENS_USED_MAX if unit == TOKENS else most)
        spent.append(each._replace(reserved=-each.reserved, spent=used))
    return tuple(spent)


def release(reserved: Iterable[Reservation]) -> Reservations:
    """Give back reservations after a known failure; a begun step stays counted."""
    return tuple(
        each._replace(reserved=-each.reserved, spent=each.reserved if unit_of(each) == STEPS else 0)
        for each in reserved
    )


def own_use(used: Counts, changes: Iterable[Reservation]) -> Counts:
    """A run's use by unit after these changes, frozen amounts included."""
    after = dict(used)
    for each in changes:
        if each.account.startswith(OWN):
            unit = unit_of(each)
            after[unit] = after.get(unit, 0) + each.reserved + each.spent
    return MappingProxyType({unit: amount for unit, amount in after.items() if amount})


def account_limits(budgets: Iterable[Budget], currencies: Iterable[str]) -> Counts:
    """The shared accounts to open, by name ("workspace/EUR", "agent/calls"), with their limits.

    Money: for these currencies and those of the budgets. The smallest limit counts.
    """
    found = tuple(budgets)
    asked = {*currencies, *(each.currency for each in found if each.currency)}
    limits: dict[str, int] = {}
    for each in found:
        names = [each.currency] if each.currency else sorted(asked)
        for unit in names if each.unit == MONEY else [each.unit]:
            name = f"{each.scope}/{unit}"
            limits[name] = min(each.max, limits.get(name, each.max))
    return MappingProxyType(limits)


def name_of(account: str, agent: str) -> str:
    """An account's name in a ledger, which several agents share: its agent's has that behind it."""
    return f"{account}@{agent}" if account.startswith(f"{AGENT}/") else account


def any_of(name: str) -> str:
    """The name under which a ledger has the limit of every currency, for a money account's name."""
    scope, _, rest = name.partition("/")
    unit, at, agent = rest.partition("@")
    return f"{scope}/{ANY}{at}{agent}" if is_currency(unit) else name


def unit_of(change: Reservation) -> str:
    """The unit or currency in an account's name."""
    return change.account.partition("/")[2]


def over(unit: str, left: int | None, account: str) -> RefusedError:
    """The refusal of an uncovered amount (BUD-001 … BUD-004, BUD-006)."""
    if left is None and unit not in CODES:
        return RefusedError("BUD-006", f"No budget covers this payment: no account {account}.")
    text = f"The call needs more than the {left or 0} that {account} has left."
    if left is not None and left < 0:
        text = f"The account {account} has nothing left: it is overdrawn by {-left}."
    refusal = RefusedError(CODES.get(unit, CODES[MONEY]), text)
    refusal.account = account
    return refusal
