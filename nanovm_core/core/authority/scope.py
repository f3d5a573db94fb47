"""The variables that conditions may read at each place, with their types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nanovm_core.conditions import Condition
from nanovm_core.core.authority.budget import MONEY, WORKSPACE, Budget
from nanovm_core.core.authority.capabilities import Tool
from nanovm_core.core.authority.policy import AUTHORIZE, PolicyRule
from nanovm_core.core.authority.windows import SPENT, Window
from nanovm_core.errors import ConditionError

Types = Mapping[str, str]

_READS = {"ref": "string", "string": "string", "integer": "integer", "boolean": "boolean"}


class Misread(NamedTuple):
    """A rule that does not fit its program, why, and the position in its condition."""

    rule: PolicyRule
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
    budgets: Sequence[Budget]
    effects: Sequence[str]  # the steps that have one

    def guard_types(self) -> dict[str, str]:
        return {
            **{f"slots.{name}": _READS[kind] for name, kind in self.slots.items()},
            **{f"origin.{name}": "string" for name in self.slots},
            **{f"history.{window.name}": "integer" for window in self.windows},
            "agent": "string",
            "run.calls": "integer",
            "run.refused": "integer",
        }

    def proposal_types(self, tool: Tool) -> dict[str, str]:
        """The further variables of rules at authorize for this tool."""
        found = {f"proposal.{name}": _READS[spec.type] for name, spec in tool.args.items()}
        if tool.money is not None and any(_holds_money(each) for each in self.budgets):
            found["workspace.left_minor"] = "integer"
        return {**found, "tool": "string"}


def misread(rules: Sequence[PolicyRule], scope: Scope) -> Iterator[Misread]:
    """Every rule that would err or never apply: unknown names, types that do not fit.

    A rule at authorize is checked for each of its tools; without ``tools``, for each granted one.
    """
    common = scope.guard_types()
    types = {
        name: {**common, **scope.proposal_types(scope.tools[name])}
        for name in scope.granted
        if name in scope.tools
    }
    for rule in rules:
        if rule.again_from and rule.again_from not in scope.effects:
            text = f"again_from = {rule.again_from!r} is no step with an effect"
            yield Misread(rule, text, key="again_from", code="PRG-002")
        unknown = sorted(rule.tools - types.keys())
        if unknown:
            yield Misread(rule, f"it is about {unknown[0]!r}, which is not granted")
        elif rule.at == AUTHORIZE:
            mine = {name: types[name] for name in rule.tools or types}
            yield from _unfit(rule, mine)
        else:
            yield from _unfit(rule, {"": common})


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


def _unfit(rule: PolicyRule, types: Mapping[str, Types]) -> Iterator[Misread]:
    for tool in sorted(types):
        found = unfit(rule.when, types[tool])
        if found is not None:
            about = f" where {tool} is proposed (with tools = […] it is about these alone)"
            text = f"its condition does not fit{about if tool else ''}: {found[0]}"
            yield Misread(rule, text, found[1])
            return


def _holds_money(account: Budget) -> bool:
    return account.scope == WORKSPACE and account.unit == MONEY
