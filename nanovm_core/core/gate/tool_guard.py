"""Passages: what one granted tool is held to, compiled into a closure that judges its calls."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nanovm_core.core.arguments import PLACEHOLDER, Holds, Reader
from nanovm_core.core.budget import CALLS, COUNTED, WORKSPACE, is_currency
from nanovm_core.core.canonical import Json
from nanovm_core.core.capabilities import (
    Grant,
    Money,
    Tool,
    check_names,
    check_provenance,
    constraints,
    grant_id,
    outside,
    readers,
)
from nanovm_core.core.messages import NOTHING, Args, Recorded, Scalar
from nanovm_core.core.policy import PolicyRule, Verdict, Window, counted, verdict
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.errors import ProgramError, RefusedError

_NONE: Mapping[str, int] = MappingProxyType({})


class Facts(NamedTuple):
    """What a decision may know: the run's value, and what came in on the event.

    ``ledger``: what each shared account has left. ``used``: what the run itself has used, by
    unit. ``started_ms``: since when the run's clock runs; 0 while it does not.
    """

    slots: Args = NOTHING
    ledger: Mapping[str, int] = _NONE
    used: Mapping[str, int] = _NONE
    history: tuple[Recorded, ...] = ()
    agent: str = ""
    at_ms: int = 0
    approved: tuple[str, ...] = ()
    revoked: frozenset[str] = frozenset()
    refused: int = 0
    started_ms: int = 0


class Allowed(NamedTuple):
    """A call that may be made, with its arguments as they are to be made.

    ``hold``: the rule that a person must lift first; ``rules`` are those that decided.
    """

    args: Args
    rules: tuple[str, ...]
    hold: PolicyRule | None = None


Judge = Callable[[Mapping[str, Json], Facts], Allowed]
Cost = Callable[[Args], tuple[str, int]]
Reads = Callable[[Facts, Args], dict[str, object]]


class Passage(NamedTuple):
    """What one granted tool is held to. ``ids``: its grant's, and those it was narrowed from."""

    tool: Tool
    grant: Grant
    ids: frozenset[str]
    sanitizer: DeterministicSanitizer
    schema: tuple[tuple[str, Reader], ...]
    bounds: tuple[tuple[str, Holds], ...]
    rules: tuple[PolicyRule, ...]
    windows: tuple[Window, ...]  # those that the rules speak of
    verdict: Verdict
    cost: Cost | None  # how much money a call moves, and of which currency
    reads: Reads  # what the rules may speak of

    def judge(self, given: Mapping[str, Json], facts: Facts) -> Allowed:
        """Judge a call's arguments by all but the budgets, in the order of the codes.

        A new check stands in three places: here, in ``shortcut._plan``, which lets the usual good
        call past this function, and in ``why.findings``, which explains. Tests hold the three
        together, over worlds that have to be able to trip the new check.

        Raises:
            RefusedError: CAP-007, CAP-008, CAP-003 … CAP-006, POL-001 … POL-003, POL-010.
        """
        self.require_live(facts)
        args = self.typed(given, facts.slots)
        self.require_bounds(args, facts.slots)
        rules, hold = self.verdict(self.reads(facts, args), facts.approved)
        check_provenance(self.tool, args, facts.slots)
        return Allowed(MappingProxyType(args), rules, hold)

    def need(self, args: Args) -> tuple[tuple[str, int], ...]:
        """What one call uses, by unit; money by its currency."""
        return ((CALLS, 1),) if self.cost is None else ((CALLS, 1), self.cost(args))

    def require_live(self, facts: Facts) -> None:
        """Return if the grant is in force: not run out, nor revoked, nor its origin.

        Raises:
            RefusedError: CAP-007 expired, CAP-008 revoked.
        """
        if self.grant.expires_ms and facts.at_ms >= self.grant.expires_ms:
            raise RefusedError("CAP-007", f"The grant of {self.tool.name} has run out.")
        if not self.ids.isdisjoint(facts.revoked):
            raise RefusedError("CAP-008", f"The grant of {self.tool.name} was taken back.")

    def typed(self, given: Mapping[str, Json], slots: Args) -> dict[str, Scalar]:
        """The arguments with their placeholders filled, held to the schema."""
        check_names(self.tool, given)
        found = {name: self.filled(name, given[name], slots) for name, _ in self.schema}
        return {name: read(found[name], slots) for name, read in self.schema}

    def filled(self, name: str, value: Json, slots: Args) -> Json:
        """What a placeholder stands for; any other value as it is.

        Raises:
            RefusedError: CAP-005 where the model was not shown such a slot: what means nothing
                here could mean something to whoever reads the argument next.
        """
        if not isinstance(value, str) or not value.startswith("{{"):
            return value
        found = self.sanitizer.filled(value, slots)
        if isinstance(found, str) and PLACEHOLDER.fullmatch(found):
            raise RefusedError("CAP-005", f"The argument {name!r} names no slot that it may name.")
        return found

    def require_bounds(self, args: Args, slots: Args) -> None:
        """Hold typed arguments to the grant (CAP-006)."""
        for name, holds in self.bounds:
            if not holds(args[name], slots):
                raise outside(name)


def passage(
    tool: Tool,
    grant: Grant,
    rules: tuple[PolicyRule, ...],
    windows: tuple[Window, ...],
    sanitizer: DeterministicSanitizer,
) -> Passage:
    """Compile what a granted tool is held to.

    Raises:
        ProgramError: PRG-002 where the grant or the tool's money names what the tool lacks.
    """
    for name in (*grant.where, *tool.critical):
        if name not in tool.args:
            raise ProgramError("PRG-002", f"{tool.name} has no argument {name!r} to hold to.")
    cost = None if tool.money is None else _cost(tool, tool.money)
    named = {path for rule in rules for path in rule.when.variables}
    spoken = tuple(window for window in windows if f"history.{window.name}" in named)
    pays = cost if "workspace.left_minor" in named else None
    return Passage(
        tool=tool,
        grant=grant,
        ids=frozenset({grant_id(grant), *grant.narrowed_from}),
        sanitizer=sanitizer,
        schema=readers(tool),
        bounds=constraints(grant),
        rules=rules,
        windows=spoken,
        verdict=verdict(rules),
        cost=cost,
        reads=_reads(tool.name, spoken, pays),
    )


# --- what rules may speak of -----------------------------------------------------------------


def surroundings(facts: Facts, windows: tuple[Window, ...]) -> dict[str, object]:
    """What every condition may speak of: slots, agent, run, and these windows over history."""
    return {
        "slots": facts.slots,
        "agent": facts.agent,
        "run": {"calls": facts.used.get(CALLS, 0), "refused": facts.refused},
        "history": counted(windows, facts.history, facts.agent, facts.at_ms) if windows else {},
    }


def _reads(tool: str, windows: tuple[Window, ...], pays: Cost | None) -> Reads:
    """The context of a tool's rules; ``pays`` where they speak of what the workspace has left."""

    def reads(facts: Facts, args: Args) -> dict[str, object]:
        context = surroundings(facts, windows)
        context["tool"], context["proposal"] = tool, args
        if pays is not None:
            left = facts.ledger.get(f"{WORKSPACE}/{pays(args)[0]}")
            context["workspace"] = {} if left is None else {"left_minor": left}
        return context

    return reads


def _cost(tool: Tool, money: Money) -> Cost:
    """How much money a call of this tool moves, and of which currency."""
    kinds = {name: spec.type for name, spec in tool.args.items()}
    amount_name, currency_name, currency_is = money.amount, money.currency, money.currency_is
    named = kinds.get(currency_name) == "string" or (not currency_name and is_currency(currency_is))
    if kinds.get(amount_name) != "integer" or not named:
        raise ProgramError("PRG-002", f"{tool.name} does not say how much money it moves.")

    def cost(args: Args) -> tuple[str, int]:
        currency = str(args[currency_name]) if currency_name else currency_is
        if currency in COUNTED:  # a currency of that name would pay with another account
            currency = ""
        return currency, args[amount_name]  # type: ignore[return-value]  # held to the schema

    return cost
