"""The gate: the whole authorization decision, compiled once for a program under a policy."""

from collections.abc import Mapping
from types import MappingProxyType

from nanovm_core.core.arguments import Reader
from nanovm_core.core.budget import Accounts, Budget, Limits
from nanovm_core.core.capabilities import (
    Grant,
    Tool,
    check_names,
    check_provenance,
    check_schema,
    readers,
    ungranted,
)
from nanovm_core.core.decider import Decider, ask
from nanovm_core.core.gate.shortcut import Affordable, Quick, affordable, shortcut
from nanovm_core.core.gate.tool_guard import Allowed as Allowed
from nanovm_core.core.gate.tool_guard import Facts as Facts
from nanovm_core.core.gate.tool_guard import Passage, passage, surroundings
from nanovm_core.core.gate.why import Finding as Finding
from nanovm_core.core.gate.why import findings
from nanovm_core.core.messages import Args, Reservation
from nanovm_core.core.policy import (
    ADMISSION,
    AUTHORIZE,
    HARD,
    UNKNOWN_OUTCOME,
    Outcome,
    Policy,
    PolicyRule,
    Verdict,
    Window,
    verdict,
)
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.core.proposals import Call
from nanovm_core.errors import ProgramError, RefusedError


class Gate:
    """What a program under its policy lets an agent do; made by ``compile_gate``.

    It holds nothing of a run: each answer follows from its arguments alone.
    """

    __slots__ = ("_accounts", "_admit", "_decider", "_passages", "_schemas", "_windows")
    _accounts: Accounts
    _admit: Verdict
    _decider: Decider | None
    _passages: Mapping[str, tuple[Passage, Quick, Affordable]]
    _schemas: Mapping[str, tuple[Tool, tuple[tuple[str, Reader], ...]]]
    _windows: tuple[Window, ...]

    def __init__(
        self,
        tools: Mapping[str, Tool],
        passages: Mapping[str, Passage],
        accounts: Accounts,
        admission: tuple[PolicyRule, ...],
        windows: tuple[Window, ...],
        decider: Decider | None = None,
    ) -> None:
        compiled = {
            name: (each, shortcut(each), affordable(each, accounts))
            for name, each in passages.items()
        }
        keep = object.__setattr__  # once, here
        keep(self, "_passages", MappingProxyType(compiled))
        schemas = {name: (tool, readers(tool)) for name, tool in tools.items()}
        keep(self, "_schemas", MappingProxyType(schemas))
        keep(self, "_accounts", accounts)
        keep(self, "_admit", verdict(admission))
        keep(self, "_windows", windows)
        keep(self, "_decider", decider)

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"{name} cannot be set: what was compiled stays as it is")

    def dry_run(self, call: Call, facts: Facts, accepts: tuple[str, ...] | None = None) -> Allowed:
        """Judge a call whole, budgets included, as ``judge`` does; no run goes this way.

        Nothing is consumed by asking; a run asks ``permit`` and ``reserve``.

        ``accepts``: the tools that may be called here; None is any granted one. A hold is in
        the answer, and only where everything else holds.

        Raises:
            RefusedError: CAP-001 not granted, CAP-007 expired, CAP-008 revoked, CAP-003 …
                CAP-006 arguments, POL-001 … POL-003 rules, POL-010 provenance, BUD-… budgets,
                CAP-002 not here; the first that applies, in this order.
        """
        tool, given = call
        found = self._passages.get(tool)
        if found is None:
            raise ungranted()
        passage, quick, covers = found
        allowed = quick(given, facts) or passage.judge(given, facts)
        if self._decider is not None:
            allowed = self._asked(self._decider, passage, allowed, facts)
        if not covers(allowed.args, facts.ledger, facts.used):
            for unit, amount in passage.need(allowed.args):
                self._accounts.require(unit, amount, facts.ledger, facts.used)
        if facts.started_ms:
            self._accounts.require_time(facts.started_ms, facts.at_ms)
        if accepts is not None and tool not in accepts:
            raise _elsewhere(tool)
        return allowed

    def permit(self, call: Call, facts: Facts, accepts: tuple[str, ...] | None = None) -> Allowed:
        """``dry_run`` without the budgets: ``reserve`` sees to them when the call is made."""
        tool, given = call
        found = self._passages.get(tool)
        if found is None:
            raise ungranted()
        passage, quick, _ = found
        allowed = quick(given, facts) or passage.judge(given, facts)
        if self._decider is not None:
            allowed = self._asked(self._decider, passage, allowed, facts)
        if accepts is not None and tool not in accepts:
            raise _elsewhere(tool)
        return allowed

    def permit_own(self, call: Call, facts: Facts) -> Args:
        """Hold the program's own use of a granted tool to grant, schema and provenance.

        No rule is asked, and no placeholder is filled: the arguments are the program's own.
        """
        passage = self._passage(call.tool)
        passage.require_live(facts)
        args = check_schema(passage.tool, call.args, facts.slots)
        passage.require_bounds(args, facts.slots)
        check_provenance(passage.tool, args, facts.slots)
        return MappingProxyType(args)

    def require_schema(self, call: Call, slots: Args) -> None:
        """Hold the program's own use of a tool that needs no grant to its schema.

        Raises:
            RefusedError: CAP-001 no such tool, CAP-003 … CAP-006 arguments.
        """
        found = self._schemas.get(call.tool)
        if found is None:
            raise ungranted()
        tool, schema = found
        check_names(tool, call.args)
        for name, read in schema:
            read(call.args[name], slots)

    def _asked(self, decider: Decider, passage: Passage, allowed: Allowed, facts: Facts) -> Allowed:
        """What a foreign engine leaves of an allowed call: it may deny it or hold it."""
        context = passage.reads(facts, allowed.args)
        rules, hold = ask(decider, AUTHORIZE, context, facts.approved)
        return Allowed(allowed.args, (*allowed.rules, *rules), allowed.hold or hold)

    def _passage(self, tool: str) -> Passage:
        found = self._passages.get(tool)
        if found is None:
            raise ungranted()
        return found[0]

    def admit(self, facts: Facts) -> Outcome:
        """Judge whether the model may be asked (POL-001 … POL-003)."""
        context = self.context(facts)
        outcome = self._admit(context, facts.approved)
        if self._decider is None:
            return outcome
        rules, hold = ask(self._decider, ADMISSION, context, facts.approved)
        return Outcome((*outcome.rules, *rules), outcome.hold or hold)

    def context(self, facts: Facts) -> Mapping[str, object]:
        """What guards and rules at admission speak of."""
        return surroundings(facts, self._windows)

    def need(self, tool: str, args: Args) -> Mapping[str, int]:
        """What one call uses, by unit; money by its currency."""
        return MappingProxyType(dict(self._passage(tool).need(args)))

    def begin_step(
        self, begun: int, ledger: Mapping[str, int], started_ms: int, at_ms: int
    ) -> tuple[Reservation, ...]:
        """Count one more step, spent at once: what is begun is never given back.

        Raises:
            RefusedError: BUD-003 where the run or a shared account has none left, BUD-005.
        """
        return self._accounts.begin_step(begun, ledger, started_ms, at_ms)

    def reserve(self, need: Mapping[str, int], facts: Facts) -> tuple[Reservation, ...]:
        """What to freeze for a need, in the run's own accounts and the shared ones: all or nothing.

        Raises:
            RefusedError: BUD-001 … BUD-004 by unit, BUD-005 out of time, BUD-006 no account.
        """
        self._accounts.require_time(facts.started_ms, facts.at_ms)
        return self._accounts.reserve(need, facts.ledger, facts.used)

    def explain(
        self, call: Call, facts: Facts, accepts: tuple[str, ...] | None = None
    ) -> tuple[Finding, ...]:
        """Every check of ``dry_run`` and what it came to, of accepted calls too.

        A call is accepted where no finding has failed. A finding names slots and accounts; it
        holds no value but those that its conditions read and what its accounts have left.
        """
        found = self._passages.get(call.tool)
        passage = None if found is None else found[0]
        return tuple(findings(passage, self._accounts, call, facts, accepts))


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
    decider: Decider | None = None,
) -> Gate:
    """Compile the gate of a program under a policy.

    ``slots`` maps each slot to how the model sees it. ``rules``, ``windows`` and ``budgets``
    are the program's own; the policy's are judged beside them, and its ``lifts`` take soft
    rules away, never hard ones.

    Raises:
        ProgramError: PRG-002 where a grant names what its tool lacks, PRG-005 where two rules
            or windows bear one name.
    """
    kept = [rule for rule in rules if rule.level == HARD or rule.id not in policy.lifts]
    judged, seen = (*kept, *policy.rules), (*windows, *policy.windows)
    _require_names([rule.id for rule in (*rules, *policy.rules)], [each.name for each in seen])
    sanitizer = DeterministicSanitizer(modes=MappingProxyType(dict(slots)))
    passages = {}
    for name, grant in grants.items():
        if name not in tools or grant.tool != name:
            raise ProgramError("PRG-002", f"a grant names the unknown tool {grant.tool!r}")
        mine = tuple(
            rule for rule in judged if rule.at == AUTHORIZE and name in (rule.tools or {name})
        )
        passages[name] = passage(tools[name], grant, mine, seen, sanitizer)
    admission = tuple(rule for rule in judged if rule.at == ADMISSION)
    return Gate(
        tools, passages, Accounts(limits, (*budgets, *policy.budgets)), admission, seen, decider
    )


def _require_names(rules: list[str], windows: list[str]) -> None:
    """Refuse names borne twice: an approval, or a condition, would mean the other one too."""
    for names in (rules, windows):
        if len(set(names)) < len(names):
            raise ProgramError("PRG-005", "two rules, or two windows, bear the same name")
    if UNKNOWN_OUTCOME in rules:
        raise ProgramError("PRG-005", f"the id {UNKNOWN_OUTCOME!r} is the runtime's own")


def _elsewhere(tool: str) -> RefusedError:
    return RefusedError("CAP-002", f"{tool} cannot be proposed; the program calls it.")
