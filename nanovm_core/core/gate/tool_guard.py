"""Tool guards: the checks for the calls of a granted tool."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from nanovm_core.core.authority.arguments import (
    DECIMAL,
    PLACEHOLDER,
    Holds,
    holds_to,
    same,
)
from nanovm_core.core.authority.budget import CALLS, COUNTED, WORKSPACE, Accounts, is_currency
from nanovm_core.core.authority.capabilities import (
    Grant,
    Money,
    Tool,
    demands_of,
    grant_id,
    origin_of,
)
from nanovm_core.core.authority.origin import DOCUMENT, Origins, meets
from nanovm_core.core.authority.policy import (
    AUTHORIZE,
    OUTCOME,
    Named,
    PolicyRule,
    answers,
    read_by,
    verdict,
)
from nanovm_core.core.authority.windows import rate_of
from nanovm_core.core.gate.schema import LEFT_OUT, Allowed, Case, Facts, Schema, schema_of
from nanovm_core.core.gate.why import Finding, failed, outcome
from nanovm_core.core.messages import Args, Slots
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.errors import ProgramError, RefusedError

_LIES = {True: "Within the grant.", False: "Outside the grant.", None: "No value to check."}

Cost = Callable[[Args], tuple[str, int]]
Reads = Callable[[Facts, Args], dict[str, object]]


class ToolGuard(NamedTuple):
    """The checks of one granted tool; ``ids``: its grant's, and those it was narrowed from."""

    tool: Tool
    grant: Grant
    ids: frozenset[str]
    sanitizer: DeterministicSanitizer
    schema: Schema
    bounds: tuple[tuple[str, Holds], ...]
    rules: tuple[PolicyRule, ...]
    demands: Mapping[str, tuple[str, ...]]  # argument → the origins that it must meet
    cost: Cost | None  # a call's currency and amount
    reads: Reads  # the context of its rules
    after: tuple[PolicyRule, ...]  # those at outcome
    reads_after: Reads
    advised: frozenset[str]  # ids of rules that read advice

    def checks(self, case: Case, *, own: bool = False, again: bool = False) -> Iterator[Finding]:
        """Every check but decider, budgets and step, in the order of the decision.

        ``own``: the program's own call is held to no rules and has no placeholders. ``again``: it
        was made already, so the rate counts it. Refusals: CAP-007, CAP-008, CAP-041, CAP-003 …
        CAP-006, POL-001 … POL-003, POL-010, CAP-009.
        """
        yield self._grant(case.facts)
        if not again:
            yield from self._rate(case.facts)
        found = self.schema.checks(case, None if own else self._filled)
        yield from found
        case.whole = not any(each.code for each in found)
        yield from self._bounds(case)
        if not own:
            yield self._policy(case)
        yield from self._provenance(case)
        yield from self._origins(case.facts)

    def origins(self, origins: Origins) -> dict[str, str]:
        """The origin of each argument that has to meet one."""
        return {name: origin_of(name, self.tool, self.grant, origins) for name in self.demands}

    def need(self, args: Args) -> tuple[tuple[str, int], ...]:
        """One call, and its money: a change that moves none draws on no account of it."""
        unit, amount = ("", 0) if self.cost is None else self.cost(args)
        return ((CALLS, 1), (unit, amount)) if amount else ((CALLS, 1),)

    def budgets(self, accounts: Accounts, case: Case) -> Iterator[Finding]:
        """Each account that the call draws on (BUD-001 … BUD-004, BUD-006), then the clock."""
        facts = case.facts
        for unit, amount in self.need(case.args) if case.whole else ((CALLS, 1),):
            try:
                for account, left, no in accounts.checks(unit, amount, facts.ledger, facts.used):
                    text = "No such budget." if left is None else f"{left} left, {amount} needed."
                    ok = Finding("budget", account, True, text)
                    yield failed("budget", account, no, text) if no is not None else ok
            except RefusedError as error:
                yield failed("budget", unit, error)
        try:
            accounts.require_time(facts.started_ms, facts.at_ms)
        except RefusedError as error:
            yield failed("budget", "run/time", error)
        else:
            yield Finding("budget", "run/time", True, "The run has time left.")

    def _grant(self, facts: Facts) -> Finding:
        name = self.tool.name
        if self.grant.expires_ms and facts.at_ms >= self.grant.expires_ms:
            text = f"The grant for {name} has expired."
            return failed("grant", name, RefusedError("CAP-007", text))
        if not self.ids.isdisjoint(facts.revoked):
            text = f"The grant for {name} was revoked."
            return failed("grant", name, RefusedError("CAP-008", text))
        return Finding("grant", name, True, "The grant is in force.")

    def _rate(self, facts: Facts) -> Iterator[Finding]:
        """Refuse a call where the log has as many as the grant's rate allows, or nobody counted."""
        name, rate = self.tool.name, self.grant.rate
        if rate is None:
            return
        found = facts.counts.get(rate_of(name), rate.calls)
        text = f"{name} was called {found} times of {rate.calls} within {rate.within_ms} ms."
        if found < rate.calls:
            yield Finding("rate", name, True, text)
        else:
            yield failed("rate", name, RefusedError("CAP-041", text))

    def _filled(self, name: str, value: object, slots: Slots) -> object:
        """A placeholder's slot value; any other value as it is.

        CAP-005 where the model was not shown such a slot: a later reader could resolve the text.
        """
        if not isinstance(value, str) or not value.startswith("{{"):
            return value
        found = self.sanitizer.filled(value, slots)
        if isinstance(found, str) and PLACEHOLDER.fullmatch(found):
            raise RefusedError("CAP-005", f"The argument {name!r} may not use this slot.")
        return found

    def _bounds(self, case: Case) -> Iterator[Finding]:
        for name, holds in self.bounds:
            known = name in case.args
            lies = holds(case.args[name], case.facts.slots) if known else None
            if case.whole and not known:
                yield Finding("constraint", name, True, LEFT_OUT)
            elif lies is False:
                text = f"The grant does not allow this value of {name!r}."
                yield failed("constraint", name, RefusedError("CAP-006", text), _LIES[lies])
            else:
                yield Finding("constraint", name, lies, _LIES[lies])

    def _policy(self, case: Case) -> Finding:
        """All rules together (POL-001 … POL-003)."""
        if not case.whole:
            text = "The rules are not evaluated for an incomplete call."
            return Finding("policy", "", None, text)
        try:
            context = self.reads(case.facts, case.args)
            found = verdict(self.rules, context, case.facts.approved, self.advised)
        except RefusedError as error:
            case.fired = error.fired
            return failed("policy", "", error)
        case.fired = found.fired
        case.allowed = Allowed(MappingProxyType(case.args), *found)
        return outcome("policy", found.rules, found.hold)

    def _provenance(self, case: Case) -> Iterator[Finding]:
        """Demand that each critical argument equals its slot or constant (POL-010)."""
        slots = case.facts.slots
        for name, source in self.tool.critical.items():
            known = slots.get(source.slot) if source.slot else source.constant
            origin = f"the slot {source.slot!r}" if source.slot else "the program's own constant"
            if name not in case.args:
                yield Finding("provenance", name, None, f"It must equal {origin}.")
            elif same(known, case.args[name]):
                yield Finding("provenance", name, True, f"It equals {origin}.")
            else:
                text = f"The argument {name!r} differs from {origin}."
                error = RefusedError("POL-010", text)
                yield failed("provenance", name, error, f"It differs from {origin}.")

    def _origins(self, facts: Facts) -> Iterator[Finding]:
        """Demand that each argument comes from where tool and grant say (CAP-009)."""
        for name, found in self.origins(facts.origins).items() if self.demands else ():
            for demanded in self.demands[name]:
                if meets(found, demanded):
                    yield Finding("origin", name, True, f"Its origin is {found}.")
                else:
                    text = f"The argument {name!r} has the origin {found}, not {demanded}."
                    yield failed("origin", name, RefusedError("CAP-009", text))


def require(findings: Iterable[Finding]) -> None:
    """Return if no check refuses; the first that does is raised."""
    for each in findings:
        if each.code:
            raise RefusedError(each.code, each.refusal)


def tool_guard(
    tool: Tool,
    grant: Grant,
    rules: tuple[PolicyRule, ...],
    named: Named,
    sanitizer: DeterministicSanitizer,
    advised: frozenset[str] = frozenset(),
) -> ToolGuard:
    """Compile the checks of a granted tool (PRG-002: it lacks what grant or money name)."""
    for name in (*grant.where, *tool.critical):
        if name not in tool.args:
            raise ProgramError("PRG-002", f"{tool.name} has no argument {name!r} to hold to.")
    for name in tool.critical:
        if tool.args[name].may_lack:
            text = f"{tool.name}: {name!r} is critical, but may be left out: give it a default."
            raise ProgramError("PRG-002", text)
    cost = None if tool.money is None else _cost(tool, tool.money)
    mine = [rule for rule in rules if tool.name in (rule.tools or {tool.name})]
    before = tuple(rule for rule in mine if rule.at == AUTHORIZE)
    after = tuple(rule for rule in mine if rule.at == OUTCOME)
    return ToolGuard(
        tool=tool,
        grant=grant,
        ids=frozenset({grant_id(grant), *grant.narrowed_from}),
        sanitizer=sanitizer,
        schema=schema_of(tool),
        bounds=tuple((name, holds_to(limit)) for name, limit in grant.where.items()),
        rules=before,
        demands=demands_of(tool, grant),
        cost=cost,
        reads=_reads(tool, before, named, cost),
        after=after,
        reads_after=_reads(tool, after, named, cost),
        advised=advised,
    )


def context_of(facts: Facts, named: Named, agent: str = "") -> dict[str, object]:
    """What every condition may read: slots, origins, agent, run, and what is named.

    ``agent``: whose windows, if not the run's own; a count that nobody gave is an error.
    """
    counts, by = facts.counts, agent or facts.agent
    origins: Any = facts.origins
    context: dict[str, object] = {
        "slots": facts.slots,
        "origin": dict.fromkeys(facts.slots, DOCUMENT) | origins,
        "agent": facts.agent,
        "run": {"calls": facts.used.get(CALLS, 0), "refused": facts.refused},
        "history": {w.name: counts[name] for w in named.windows if (name := w.named(by)) in counts},
    }
    context["fact"] = answers(named.facts, context) if named.facts else {}
    return context


def _reads(tool: Tool, rules: tuple[PolicyRule, ...], named: Named, cost: Cost | None) -> Reads:
    """The context of these rules, with what they read of the named and no more."""
    paths, used = read_by(rules, named)
    pays = cost if "workspace.left_minor" in paths else None

    def reads(facts: Facts, args: Args) -> dict[str, object]:
        context = context_of(facts, used, tool.agent)
        context["tool"], context["proposal"] = tool.name, args
        if pays is not None:
            left = facts.ledger.get(f"{WORKSPACE}/{pays(args)[0]}")
            context["workspace"] = {} if left is None else {"left_minor": left}
        return context

    return reads


def _cost(tool: Tool, money: Money) -> Cost:
    kinds = {name: spec.type for name, spec in tool.args.items() if not spec.may_lack}
    amount_name, currency_name, currency_is = money.amount, money.currency, money.currency_is
    named = kinds.get(currency_name) == "string" or (not currency_name and is_currency(currency_is))
    counted = kinds.get(amount_name) == "integer" or (
        kinds.get(amount_name) == DECIMAL and tool.args[amount_name].currency == currency_is
    )
    if not (named and counted):
        raise ProgramError("PRG-002", f"{tool.name} does not say how much money it moves.")

    def cost(args: Args) -> tuple[str, int]:
        currency = str(args[currency_name]) if currency_name else currency_is
        if currency in COUNTED:  # a currency of that name would pay with another account
            currency = ""
        return currency, args[amount_name]  # type: ignore[return-value]  # held to the schema

    return cost
