"""The gate: the authorization decision, compiled once for a program under a policy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nanovm_core.core.authority.advice import NOTHING_ADVISED, Advice, advised_rules, unadvised
from nanovm_core.core.authority.budget import Accounts, Budget, Limits
from nanovm_core.core.authority.capabilities import Grant, Tool, ungranted
from nanovm_core.core.authority.policy import (
    ADMISSION,
    ANOMALY,
    AUTHORIZE,
    OWN_HOLDS,
    Fact,
    Named,
    Outcome,
    Policy,
    PolicyRule,
    Window,
    in_force,
    read_by,
    suspending,
    unallowed,
    verdict,
)
from nanovm_core.core.authority.windows import DONE, FAILED, with_result
from nanovm_core.core.gate.decider import Decider, ask
from nanovm_core.core.gate.schema import Allowed as Allowed
from nanovm_core.core.gate.schema import Case, Schema, schema_of, unread
from nanovm_core.core.gate.schema import Facts as Facts
from nanovm_core.core.gate.tool_guard import ToolGuard, context_of, require, tool_guard
from nanovm_core.core.gate.why import Finding as Finding
from nanovm_core.core.gate.why import explained, failed, outcome
from nanovm_core.core.messages import Args, Counts, Reservations, Slots
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.core.proposals import Call
from nanovm_core.errors import ProgramError, RefusedError

Accepts = tuple[str, ...] | None  # tools; None: any granted one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Gate:
    """What a program under its policy lets an agent do; made by ``compile_gate``.

    It has no state: each answer follows from its arguments.
    """

    _guards: Mapping[str, ToolGuard]
    _schemas: Mapping[str, Schema]
    _accounts: Accounts
    _admits: tuple[PolicyRule, ...]
    _named: Named
    _asked_first: tuple[Fact, ...]  # what rules at admission read
    _decider: Decider | None
    _advised: frozenset[str]  # the variables that rest on advice
    advised: frozenset[str]  # the ids of the rules that read one
    judges_end: frozenset[str]  # tools with rules at outcome

    def dry_run(self, call: Call, facts: Facts, accepts: Accepts = None) -> Allowed:
        """Judge a call, budgets included, and consume nothing.

        ``accepts``: the tools that may be called here; None is any granted one. A hold or a
        suspension is in the answer, and only where everything else holds; the rules that suspend
        beside a refusal are in the error.

        Raises:
            RefusedError: the first of CAP-001 not granted, CAP-007 expired, CAP-008 revoked,
                CAP-041 rate, CAP-003 … CAP-006 arguments, POL-001 … POL-003 rules,
                POL-010 provenance, CAP-009 origins, BUD-… budgets, CAP-002 not here.
        """
        return self.permit(call, facts, accepts, budgets=True)

    def permit(
        self, call: Call, facts: Facts, accepts: Accepts = None, *, budgets: bool = False
    ) -> Allowed:
        """``dry_run`` without the budgets, which ``reserve`` checks when the call is made."""
        guard, case = self._guard(call.tool), Case(call.args, facts, call.raw)
        try:
            require(self._checks(guard, case, accepts, budgets=budgets))
        except RefusedError as error:
            error.fired = case.fired
            raise
        if case.allowed is None:
            raise unallowed()
        return case.allowed

    def permit_own(self, call: Call, facts: Facts, *, again: bool = False) -> Args:
        """Hold the program's own call of a granted tool to grant, schema, provenance, origins.

        ``again``: it was made already, so the grant's rate counts it, and does not hold it.
        """
        case = Case(call.args, facts)
        require(self._guard(call.tool).checks(case, own=True, again=again))
        return MappingProxyType(case.args)

    def origins(self, tool: str, facts: Facts) -> Slots | None:
        """The origin of each argument of a granted tool that has to meet one; None without any."""
        found = self._guard(tool).origins(facts.origins)
        return MappingProxyType(found) if found else None

    def require_schema(self, call: Call, facts: Facts) -> Args:
        """The program's own call held to its tool's schema (CAP-001, CAP-003 … CAP-006)."""
        if call.tool not in self._schemas:
            raise ungranted()
        case = Case(call.args, facts)
        require(self._schemas[call.tool].checks(case))
        return MappingProxyType(case.args)

    def require_form(self, call: Call) -> None:
        """Hold a proposal to its tool's schema, comparing no slot (CAP-001, CAP-003 … CAP-006)."""
        schema = self._guard(call.tool).schema
        require(schema.checks(Case(call.args, Facts(), call.raw), unread))

    def explain(self, call: Call, facts: Facts, accepts: Accepts = None) -> tuple[Finding, ...]:
        """Every check of ``dry_run`` with its answer, of accepted calls too.

        ``dry_run`` refuses exactly where a finding has a ``code``, under the first. A finding has
        no other values than conditions read and balances.
        """
        return tuple(self._explained(Case(call.args, facts, call.raw), call.tool, accepts))

    def _explained(self, case: Case, tool: str, accepts: Accepts) -> Iterator[Finding]:
        guard = self._guards.get(tool)
        if guard is None:
            yield failed("tool", "", ungranted())
            return
        yield Finding("tool", tool, True, "It is granted.")
        for each in self._checks(guard, case, accepts, budgets=True):
            yield each
            if each.check == "policy" and case.whole:
                context = guard.reads(case.facts, case.args)
                for rule in (*guard.rules, *self._known(case.facts.slots)):
                    yield explained(rule, context, case.facts.approved)

    def _known(self, slots: Slots) -> Iterator[PolicyRule]:
        """The rules on anomalies at admission whose slots are known: they judged the run."""
        names = {f"slots.{name}" for name in slots}
        yield from (
            rule
            for rule in self._admits
            if rule.check == ANOMALY and names >= {*rule.when.variables}
        )

    def _checks(
        self, guard: ToolGuard, case: Case, accepts: Accepts, *, budgets: bool
    ) -> Iterator[Finding]:
        """The checks of a granted tool's call, in the order of the decision."""
        yield from guard.checks(case)
        if self._decider is not None and case.allowed is not None:
            yield self._asked(self._decider, guard, case, case.allowed)
        if budgets:
            yield from guard.budgets(self._accounts, case)
        tool = guard.tool.name
        if accepts is not None and tool not in accepts:
            error = RefusedError("CAP-002", f"Only the program itself calls {tool}.")
            yield failed("step", tool, error, "It cannot be proposed at this step.")
        elif accepts is not None:
            yield Finding("step", tool, True, "It may be called here.")

    def _asked(self, decider: Decider, guard: ToolGuard, case: Case, allowed: Allowed) -> Finding:
        context = unadvised(guard.reads(case.facts, allowed.args), self._advised)
        try:
            found = ask(decider, AUTHORIZE, context, case.facts.approved)
        except RefusedError as error:
            return failed("decider", "", error)
        rules, hold = (*allowed.rules, *found.rules), allowed.hold or found.hold
        case.allowed = allowed._replace(rules=rules, hold=hold)
        return outcome("decider", found.rules, found.hold)

    def _guard(self, tool: str) -> ToolGuard:
        guard = self._guards.get(tool)
        if guard is None:
            raise ungranted()
        return guard

    def admit(self, facts: Facts) -> Outcome:
        """Judge whether the model may be asked (POL-001 … POL-003)."""
        context = context_of(facts, self._named._replace(facts=self._asked_first))
        outcome = verdict(self._admits, context, facts.approved, self.advised, ADMISSION)
        if self._decider is None:
            return outcome
        try:
            seen = unadvised(context, self._advised)
            found = ask(self._decider, ADMISSION, seen, facts.approved)
        except RefusedError as error:
            error.fired = outcome.fired
            raise
        return Outcome((*outcome.rules, *found.rules), outcome.hold or found.hold, outcome.fired)

    def ended(
        self, call: Call, facts: Facts, agent: str, code: str | None
    ) -> tuple[PolicyRule, ...]:
        """The rules at outcome that fire once a call has ended; none of an ungranted tool.

        They count this end too. ``agent``: who called; ``code``: of its failure, or None.
        """
        if call.tool not in self.judges_end:
            return ()
        guard = self._guards[call.tool]
        args: Args = call.args  # type: ignore[assignment]  # it was made, so it is typed
        spent = dict([guard.cost(args)]) if code is None and guard.cost else {}
        became = DONE if code is None else FAILED
        windows = self._named.windows
        counts = with_result(windows, facts.counts, call.tool, agent, became, spent)
        context = guard.reads_after(facts._replace(counts=counts), args)
        context["result"] = {"failed": code is not None, "code": code or ""}
        return suspending(guard.after, context)

    def context(self, facts: Facts, agent: str = "") -> Mapping[str, object]:
        """What guards of steps may read, and rules at admission; ``agent`` as in ``context_of``."""
        return context_of(facts, self._named, agent)

    def need(self, tool: str, args: Args) -> Counts:
        """One call's use, by unit; money by its currency."""
        return MappingProxyType(dict(self._guard(tool).need(args)))

    def begin_step(self, begun: int, facts: Facts) -> Reservations:
        """Count one step, spent for good (BUD-003, BUD-005)."""
        return self._accounts.begin_step(begun, facts.ledger, facts.started_ms, facts.at_ms)

    def reserve(self, need: Counts, facts: Facts) -> Reservations:
        """What to freeze for a need, in the run's accounts and the shared ones: all or nothing.

        Raises:
            RefusedError: BUD-001 … BUD-004 by unit, BUD-005 out of time, BUD-006 no account.
        """
        self._accounts.require_time(facts.started_ms, facts.at_ms)
        return self._accounts.reserve(need, facts.ledger, facts.used)


def compile_gate(
    *,
    tools: Mapping[str, Tool],
    grants: Mapping[str, Grant],
    limits: Limits,
    slots: Mapping[str, str],
    rules: tuple[PolicyRule, ...],
    windows: tuple[Window, ...],
    budgets: tuple[Budget, ...],
    policy: Policy,
    facts: tuple[Fact, ...] = (),
    decider: Decider | None = None,
    advice: Advice = NOTHING_ADVISED,
) -> Gate:
    """Compile the gate of a program under a policy.

    ``slots``: how the model sees each slot. The policy ``lifts`` soft rules, never hard ones.

    Raises:
        ProgramError: PRG-002 a grant of an unknown tool or argument, PRG-005 one name twice.
    """
    judged = in_force(rules, policy)
    named = Named((*windows, *policy.windows), (*facts, *policy.facts))
    _require_names((*rules, *policy.rules), named)
    admits = tuple(rule for rule in judged if rule.at == ADMISSION)
    advised = advised_rules(judged, paths := advice.paths(named.facts))
    common = judged, named, DeterministicSanitizer(modes=MappingProxyType(dict(slots))), advised
    guards = {grant.tool: tool_guard(tool, grant, *common) for tool, grant in _pairs(tools, grants)}
    return Gate(
        _guards=MappingProxyType(guards),
        _schemas=MappingProxyType({name: schema_of(tool) for name, tool in tools.items()}),
        _accounts=Accounts(limits, (*budgets, *policy.budgets)),
        _admits=admits,
        _named=named,
        _asked_first=read_by(admits, named)[1].facts,
        _decider=decider,
        _advised=paths,
        advised=advised,
        judges_end=frozenset([name for name, guard in guards.items() if guard.after]),
    )


def _pairs(tools: Mapping[str, Tool], grants: Mapping[str, Grant]) -> Iterator[tuple[Tool, Grant]]:
    for name, grant in grants.items():
        if name not in tools or grant.tool != name:
            raise ProgramError("PRG-002", f"a grant names the unknown tool {grant.tool!r}")
        yield tools[name], grant


def _require_names(rules: tuple[PolicyRule, ...], named: Named) -> None:
    """Refuse a duplicate name: an approval, or a condition, would mean both."""
    ids = [rule.id for rule in rules]
    for names in (ids, *([each.name for each in part] for part in named)):
        if len(set(names)) < len(names):
            raise ProgramError("PRG-005", "two rules, windows or facts have the same name")
    for name in {*ids}.intersection(OWN_HOLDS):
        raise ProgramError("PRG-005", f"the id {name!r} is reserved for the runtime")
