"""A till that several agents share: its program, and what its limits come to, worked out anew.

Nothing here asks the kernel: ``Accounts`` and ``Clock`` are the model that its answers are held to.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.messages import Reservation
from nanovm_core.loading import load_program
from tests.core.kit.builders import START_MS

GRANT_ENDS_MS = START_MS + 2_000_000
WALL_MS, TTL_MS = 600_000, 60_000
CALLS_MAX, STEPS_MAX, TOKENS_MAX, MONEY_MAX = 3, 6, 1_400, 600
ASK_TOKENS = 800
LARGE = 400
TIMEOUTS_MS = {"fetch": 10_000, "window": 20_000, "ask": 15_000, "pay": 30_000, "tell": 10_000}
PAUSE_MS = 1_000  # before the second fetch, and up to a quarter more
SHARED: Mapping[str, int] = {
    "agent/EUR": 900,
    "workspace/EUR": 1_500,
    "global/calls": 5,
    "workspace/tokens": 4_000,
    "agent/steps": 14,
}
AGENTS = ("ann", "ann", "bob")  # whose the runs are
USED: tuple[Mapping[str, int], ...] = (  # what others have spent before
    *({}, {}, {"workspace/EUR": 1_100}, {"agent/EUR": 700}, {"global/calls": 4}),
    *({"workspace/tokens": 3_000}, {"agent/steps": 11}, {"workspace/EUR": 900, "global/calls": 3}),
)
PAY = "till.pay"
TEXT = f"""
v = "nanovm-program/1"
name = "till"
first = "fetch"
grants = [{{ tool = "till.pay", expires_ms = {GRANT_ENDS_MS} }}]
windows = [
  {{ name = "failing", counts = "failures_in_a_row" }},
  {{ name = "calls", counts = "calls", within_ms = 60_000 }},
]
rules = [
  {{ id = "asked", at = "admission", outcome = "allow", when = "$slots.amount > 0", why = "Due" }},
  {{ id = "flapping", at = "authorize", outcome = "hold", approvable = true, \
when = "$history.failing >= 2 and $history.calls >= 2", why = "The last two failed." }},
  {{ id = "large", at = "authorize", outcome = "hold", approvable = true, \
when = "$proposal.amount > {LARGE}", why = "It is much." }},
  {{ id = "ok", at = "authorize", outcome = "allow", when = "$proposal.amount > 0", why = "Due" }},
]
steps = [
  {{ name = "fetch", kind = "effect", tool = "till.fetch", fills = ["amount", "payee"], \
retry = {{ attempts_max = 2, backoff_ms = 1_000 }}, timeout_ms = 10_000, on_error = "tell", \
next = [{{ when = "$slots.amount > 250", to = "window" }}, {{ to = "ask" }}] }},
  {{ name = "window", kind = "wait", fills = ["seen_by"], timeout_ms = 20_000, \
next = "ask", on_error = "failed" }},
  {{ name = "ask", kind = "model", tool = "model.ask", accepts = ["till.pay"], \
tokens_max = {ASK_TOKENS}, timeout_ms = 15_000, next = "judge", on_error = "tell" }},
  {{ name = "judge", kind = "pure", authorizes = "ask", next = "pay", on_error = "tell" }},
  {{ name = "pay", kind = "effect", call = "authorized", fills = ["receipt"], \
retry = {{ attempts_max = 2 }}, timeout_ms = 30_000, next = "tell", on_error = "tell" }},
  {{ name = "tell", kind = "effect", tool = "till.tell", timeout_ms = 10_000, \
next = "completed", on_error = "failed" }},
]
[limits]
proposals_max = 2
calls_max = {CALLS_MAX}
steps_max = {STEPS_MAX}
tokens_max = {TOKENS_MAX}
wall_ms_max = {WALL_MS}
money_minor_max = {MONEY_MAX}
warrant_ttl_ms = {TTL_MS}
[slots]
amount = {{ type = "integer", model = "clear" }}
payee = {{ type = "string", model = "clear" }}
seen_by = {{ type = "string" }}
receipt = {{ type = "ref" }}
[tools]
"till.fetch" = {{}}
"model.ask" = {{}}
"till.tell" = {{}}
[tools."till.pay"]
critical = {{ amount = "amount", payee = "payee" }}
money = {{ amount = "amount", currency_is = "EUR" }}
args = {{ amount = {{ type = "integer", min = 1 }}, payee = {{ type = "string" }} }}
"""
_UNITS = {"EUR": "money"}
for _account, _max in SHARED.items():
    _scope, _, _unit = _account.partition("/")
    _about = f'scope = "{_scope}"\nunit = "{_UNITS.get(_unit, _unit)}"\nmax = {_max}'
    TEXT += f"[[budgets]]\n{_about}\n"
PROGRAM = load_program(TEXT.encode())
GRANT = grant_id(PROGRAM.grants[PAY])


def wants(amount: object, payee: object = "acme", tool: str = PAY, **more: object) -> bytes:
    """A proposal."""
    return json.dumps({"tool": tool, "args": {"amount": amount, "payee": payee, **more}}).encode()


class Accounts:
    """The shared accounts, booked by what decisions say and held to what runs really did."""

    def __init__(self, used: Mapping[str, int]) -> None:
        """``used``: what others have spent already; of an agent's accounts, the first agent."""
        self.frozen: Counter[tuple[str, str, str]] = Counter()  # (account, agent, run)
        self.spent: Counter[tuple[str, str, str]] = Counter()
        for account, amount in used.items():
            self.spent[account, AGENTS[0], "before"] = amount

    def left(self, agent: str) -> dict[str, int]:
        """What each account has left for an agent."""
        found = dict(SHARED)
        for book in (self.frozen, self.spent):
            for (account, whose, _), amount in book.items():
                if whose == agent or not account.startswith("agent/"):
                    found[account] -= amount
        return found

    def book(self, agent: str, run: str, changes: Sequence[Reservation]) -> None:
        """Book what a decision changed."""
        for account, reserved, spent in changes:
            assert account in SHARED
            self.frozen[account, agent, run] += reserved
            self.spent[account, agent, run] += spent

    def of(self, book: Counter[tuple[str, str, str]], run: str) -> dict[str, int]:
        """What a run has in a book, by account."""
        return {key[0]: amount for key, amount in book.items() if key[2] == run and amount}


class Clock:
    """How long a run has run: the time that it is suspended does not count."""

    def __init__(self, at_ms: int) -> None:
        self.ran_ms, self.since_ms, self.limit_ms = 0, 0, 0
        self._seen_ms, self._stands = at_ms, True

    def see(self, at_ms: int) -> None:
        """Let time pass; a clock that goes back takes running time away, also in a pause."""
        passed_ms = at_ms - self._seen_ms
        if not self._stands:
            self.ran_ms += passed_ms
            self._seen_ms = at_ms

    def turn(self, at_ms: int, *, stands: bool, begins: bool) -> None:
        """Stop or go on where the run was suspended or went on."""
        if self._stands and not stands and not begins:
            self.ran_ms += min(0, at_ms - self._seen_ms)
        if self._stands != stands:
            self._seen_ms = at_ms
        self._stands = stands

    def begin(self, limit_ms: int) -> None:
        """A time that can run out begins now."""
        self.since_ms, self.limit_ms = self.ran_ms, limit_ms

    @property
    def is_over(self) -> bool:
        """Whether that time has run out."""
        return self.ran_ms - self.since_ms >= self.limit_ms


def shared(amounts: Mapping[str, int]) -> dict[str, int]:
    """Amounts by unit, on every shared account of the unit."""
    units = {account: account.partition("/")[2] for account in SHARED}
    return {account: amounts[unit] for account, unit in units.items() if amounts.get(unit)}
