"""The variables that conditions may read at each place, with their types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nanovm_core.conditions import Condition
from nanovm_core.core.authority.advice import Advice
from nanovm_core.core.authority.arguments import KINDS, LIST
from nanovm_core.core.authority.budget import MONEY, WORKSPACE, Budget
from nanovm_core.core.authority.capabilities import ArgSpec, Tool
from nanovm_core.core.authority.policy import ADMISSION, OUTCOME, Fact, PolicyRule
from nanovm_core.core.authority.windows import SPENT, Window
from nanovm_core.errors import ConditionError

Types = Mapping[str, str]

# What conditions read of a type.
READS = {
    name: {int: "integer", bool: "boolean", str: "string"}[kind] for name, kind in KINDS.items()
}
RESULT_TYPES: Types = {"result.failed": "boolean", "result.code": "string"}  # at outcome


class Misread(NamedTuple):
    """A rule, fact or window that does not fit its program, and why.

    ``inside``: its condition's text, and the place in it.
    """

    what: str  # "rule small"
    text: str
    key: str
    code: str = "PRG-004"
    inside: tuple[str, int] | None = None


class Scope(NamedTuple):
    """What the conditions of a program under a policy may read."""

    slots: Types  # slot → its type in the program
    tools: Mapping[str, Tool]
    granted: Sequence[str]
    windows: Sequence[Window]
    facts: Sequence[Fact]
    budgets: Sequence[Budget]
    effects: Sequence[str]  # the steps that have one
    advice: Advice

    def guard_types(self) -> dict[str, str]:
        return {
            **{f"slots.{name}": READS[kind] for name, kind in self.slots.items()},
            **{f"origin.{name}": "string" for name in self.slots},
            **{f"history.{window.name}": "integer" for window in self.windows},
            **{f"fact.{fact.name}": "boolean" for fact in self.facts},
            "agent": "string",
            "run.calls": "integer",
            "run.refused": "integer",
        }

    def proposal_types(self, tool: Tool) -> dict[str, str]:
        """The further variables of rules at authorize, and at outcome, for this tool."""
        args = {name: spec.type for name, spec in tool.args.items() if not _hidden(spec)}
        found = {f"proposal.{name}": READS[kind] for name, kind in args.items()}
        paid = {(each.scope, each.unit) for each in self.budgets}
        if tool.money is not None and (WORKSPACE, MONEY) in paid:
            found["workspace.left_minor"] = "integer"
        return {**found, "tool": "string"}


def _hidden(spec: ArgSpec) -> str:
    """Why no condition may read an argument, if so."""
    if spec.type == LIST:
        return "is a list, which no condition reads: bound it in the grant"
    return "may be left out: give it a default" if spec.may_lack else ""


def misread(
    rules: Iterable[PolicyRule], windows: Iterable[Window], scope: Scope
) -> Iterator[Misread]:
    """Every window that would never count, every fact and rule that would err or never apply.

    And every rule by which advice could make a verdict more permissive (PRG-007). A fact reads what
    guards read, and the facts above it. A rule at authorize or outcome is checked for each of its
    tools; without ``tools``, for each granted one.
    """
    yield from _uncounted(windows, scope)
    common = scope.guard_types()
    known = {name: kind for name, kind in common.items() if not name.startswith("fact.")}
    for fact in scope.facts:
        yield from _unfit(f"fact {fact.name}", fact.when, {"": known})
        known[f"fact.{fact.name}"] = "boolean"
    types = {
        name: {**common, **scope.proposal_types(scope.tools[name])}
        for name in scope.granted
        if name in scope.tools
    }
    advised = scope.advice.paths(scope.facts)
    for rule in rules:
        what = f"rule {rule.id}"
        for key, text, place in scope.advice.faults(rule, advised):
            yield Misread(what, text, key, "PRG-007", place)
        if rule.again_from and rule.again_from not in scope.effects:
            text = f"again_from = {rule.again_from!r} is no step with an effect"
            yield Misread(what, text, "again_from", "PRG-002")
        if unknown := sorted(rule.tools - types.keys()):
            yield Misread(what, f"it is about {unknown[0]!r}, which is not granted", "tools")
        elif rule.at == ADMISSION:
            yield from _unfit(what, rule.when, {"": common})
        elif hidden := _hidden_read(rule, types, scope):
            yield Misread(what, hidden, "when")
        else:
            more = RESULT_TYPES if rule.at == OUTCOME else {}
            mine = {name: {**types[name], **more} for name in rule.tools or types}
            yield from _unfit(what, rule.when, mine)


def _hidden_read(rule: PolicyRule, types: Mapping[str, Types], scope: Scope) -> str:
    """What of a call a rule reads and may not, and why."""
    for tool in rule.tools or types:
        for name, spec in scope.tools[tool].args.items():
            if f"proposal.{name}" in rule.when.variables and (why := _hidden(spec)):
                return f"it reads {name} of {tool}, which {why}"
    return ""


def _uncounted(windows: Iterable[Window], scope: Scope) -> Iterator[Misread]:
    for window in windows:
        tool, what = scope.tools.get(window.tool), f"window {window.name}"
        if window.tool and (tool is None or window.tool not in scope.granted):
            text = f"it counts calls of {window.tool!r}, which is not granted"
            yield Misread(what, text, "tool")
        elif tool is not None and window.counts == SPENT and tool.money is None:
            yield Misread(what, f"it counts what is paid, and {tool.name} moves no money", "tool")


def unfit(condition: Condition, types: Types) -> tuple[str, tuple[str, int]] | None:
    """Why a condition does not fit what it may read, and its text and the place; or None."""
    try:
        condition.check(types)
    except ConditionError as error:
        return error.text, (condition.text, error.position or 0)
    return None


def _unfit(what: str, condition: Condition, types: Mapping[str, Types]) -> Iterator[Misread]:
    for tool in sorted(types):
        found = unfit(condition, types[tool])
        if found is not None:
            about = f" where {tool} is proposed (with tools = […] it is about these alone)"
            text = f"its condition does not fit{about if tool else ''}: {found[0]}"
            yield Misread(what, text, "when", inside=found[1])
            return
