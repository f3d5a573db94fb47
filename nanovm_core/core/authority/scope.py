"""The variables that conditions may read at each place, with their types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nanovm_core.conditions import Condition
from nanovm_core.core.authority.budget import MONEY, WORKSPACE, Budget
from nanovm_core.core.authority.capabilities import Tool
from nanovm_core.core.authority.policy import ADMISSION, OUTCOME, Fact, PolicyRule
from nanovm_core.core.authority.windows import SPENT, Window
from nanovm_core.errors import ConditionError

Types = Mapping[str, str]

_READS = {"ref": "string", "string": "string", "integer": "integer", "boolean": "boolean"}
RESULT_TYPES: Types = {"result.failed": "boolean", "result.code": "string"}  # at outcome


class Misread(NamedTuple):
    """A rule or fact that does not fit its program, why, and the position in its condition."""

    what: str  # "rule small"
    condition: Condition
    text: str
    position: int | None = None  # None: the fault is in ``key``, not in ``when``
    key: str = "tools"
    code: str = "PRG-004"


class Scope(NamedTuple):
    """What the conditions of a program under a policy may read."""

    slots: Types  # slot → its type in the program
    tools: Mapping[str, Tool]
    granted: Sequence[str]
    windows: Sequence[Window]
    facts: Sequence[Fact]
    budgets: Sequence[Budget]
    effects: Sequence[str]  # the steps that have one

    def guard_types(self) -> dict[str, str]:
        return {
            **{f"slots.{name}": _READS[kind] for name, kind in self.slots.items()},
            **{f"origin.{name}": "string" for name in self.slots},
            **{f"history.{window.name}": "integer" for window in self.windows},
            **{f"fact.{fact.name}": "boolean" for fact in self.facts},
            "agent": "string",
            "run.calls": "integer",
            "run.refused": "integer",
        }

    def proposal_types(self, tool: Tool) -> dict[str, str]:
        """The further variables of rules at authorize, and at outcome, for this tool."""
        found = {f"proposal.{name}": _READS[spec.type] for name, spec in tool.args.items()}
        if tool.money is not None and any(_holds_money(each) for each in self.budgets):
            found["workspace.left_minor"] = "integer"
        return {**found, "tool": "string"}


def misread(rules: Sequence[PolicyRule], scope: Scope) -> Iterator[Misread]:
    """Every fact and rule that would err or never apply: unknown names, types that do not fit.

    A fact reads what guards read, and of the facts those above it: so it refers to none in a
    circle. A rule at authorize or outcome is checked for each of its tools; without ``tools``, for
    each granted one.
    """
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
    for rule in rules:
        what = f"rule {rule.id}"
        if rule.again_from and rule.again_from not in scope.effects:
            text = f"again_from = {rule.again_from!r} is no step with an effect"
            yield Misread(what, rule.when, text, key="again_from", code="PRG-002")
        unknown = sorted(rule.tools - types.keys())
        if unknown:
            yield Misread(what, rule.when, f"it is about {unknown[0]!r}, which is not granted")
        elif rule.at == ADMISSION:
            yield from _unfit(what, rule.when, {"": common})
        else:
            more = RESULT_TYPES if rule.at == OUTCOME else {}
            mine = {name: {**types[name], **more} for name in rule.tools or types}
            yield from _unfit(what, rule.when, mine)


def unfit(condition: Condition, types: Types) -> tuple[str, int] | None:
    """Why, and where, a condition does not fit what it may read; None where it fits."""
    try:
        condition.check(types)
    except ConditionError as error:
        return error.text, error.position or 0
    return None


def uncountable(windows: Iterable[Window], scope: Scope) -> Iterator[tuple[Window, str, str]]:
    """Each window that would count nothing, ever: with the key at fault, and why."""
    for each in windows:
        tool = scope.tools.get(each.tool)
        if each.tool and (tool is None or each.tool not in scope.granted):
            yield each, "tool", f"it counts calls of {each.tool!r}, which is not granted"
        elif tool is not None and each.counts == SPENT and tool.money is None:
            yield each, "tool", f"it counts what is paid, and {each.tool} moves no money"


def _unfit(what: str, condition: Condition, types: Mapping[str, Types]) -> Iterator[Misread]:
    for tool in sorted(types):
        found = unfit(condition, types[tool])
        if found is not None:
            about = f" where {tool} is proposed (with tools = […] it is about these alone)"
            text = f"its condition does not fit{about if tool else ''}: {found[0]}"
            yield Misread(what, condition, text, found[1])
            return


def _holds_money(account: Budget) -> bool:
    return account.scope == WORKSPACE and account.unit == MONEY
