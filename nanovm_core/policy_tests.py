"""Policy tests: the examples of a policy, evaluated by the rules and compared with their result."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nanovm_core.conditions import Context
from nanovm_core.core.authority import policy
from nanovm_core.core.authority.scope import RESULT_TYPES
from nanovm_core.core.program import SLOT_TYPES, Program
from nanovm_core.errors import ConditionError, ProgramError, RefusedError

_PARTS = ("slots", "origin", "proposal", "history", "workspace", "result")


class ExampleResult(NamedTuple):
    """The outcome of an example, the rules or the code that decided it, and what was expected."""

    name: str
    outcome: str
    rule: str
    expect: str
    good: bool


def run_examples(program: Program) -> Iterator[ExampleResult]:
    """Evaluate each example of the policy by the rules of program and policy alone.

    An example gives what rules may read: slots, origin, tool, proposal, history, workspace, agent,
    and at outcome the result. Slots, workspace values and arguments without a default that it
    leaves out are missing, and an error denies; at outcome it suspends, and what suspends nothing
    is allowed. A slot is of the origin that the program declares, unless the example says
    otherwise. The defaults are those of a new run: an empty history, no calls, the program's agent;
    and a result that is no failure.

    Raises:
        ProgramError: PRG-004 where an example gives a value that the program does not have.
    """
    for example in program.policy.examples:
        _require_fit(program, example)
        outcome, named = _outcome(program, example)
        good = outcome == example.expect and example.rule in ("", *named)
        yield ExampleResult(example.name, outcome, ", ".join(named), example.expect, good)


def _outcome(program: Program, example: policy.Example) -> tuple[str, tuple[str, ...]]:
    """The outcome, and the rules or the code that decided it."""
    tool = example.given.get("tool")
    if example.at != policy.ADMISSION and tool not in program.grants:
        return policy.DENY, ("CAP-001",)
    rules, context = tuple(_rules(program, example)), _context(program, example)
    if example.at == policy.OUTCOME:
        fired = policy.suspending(rules, context)
        return policy.SUSPEND if fired else policy.ALLOW, tuple(rule.id for rule in fired)
    try:
        found = policy.verdict(rules, context, (), program.gate.advised, example.at)
    except RefusedError as error:
        return policy.DENY, (*_deciders(rules, context, error.code), error.code)
    return found.hold.outcome if found.hold else policy.ALLOW, found.rules


def _rules(program: Program, example: policy.Example) -> Iterator[policy.PolicyRule]:
    """The rules that apply, in the gate's order."""
    for rule in policy.in_force(program.rules, program.policy):
        if rule.at == example.at and (not rule.tools or example.given.get("tool") in rule.tools):
            yield rule


def _context(program: Program, example: policy.Example) -> Context:
    windows = (*program.windows, *program.policy.windows)
    given: dict[str, object] = {"slots": {}, "proposal": {}, "workspace": {}, **example.given}
    slots, tool = _part(example, "slots"), program.tools.get(str(example.given.get("tool")))
    args = tool.args.items() if tool else ()
    usual = {name: spec.default for name, spec in args if spec.default is not None}
    given["proposal"] = {**usual, **_part(example, "proposal")}
    given["origin"] = {**program.declared(slots), **_part(example, "origin")}
    given["history"] = {**{each.name: 0 for each in windows}, **_part(example, "history")}
    given["result"] = {"failed": False, "code": "", **_part(example, "result")}
    context = {"agent": program.agent, "run": {"calls": 0, "refused": 0}, **given}
    return {**context, "fact": policy.answers((*program.facts, *program.policy.facts), context)}


def _deciders(rules: tuple[policy.PolicyRule, ...], context: Context, code: str) -> Iterator[str]:
    """The first rule that denies, or that has no answer."""
    for rule in rules:
        try:
            fires = rule.when.run(context)
        except ConditionError:
            yield rule.id
            return
        if code == "POL-003" and rule.outcome == policy.DENY and fires:
            yield rule.id
            return


def _require_fit(program: Program, example: policy.Example) -> None:
    """Refuse an example that gives an unknown value: a typing error would go unnoticed."""
    what = f"policy {program.policy.name}: example {example.name!r}"
    if example.at != policy.ADMISSION and "tool" not in example.given:
        raise ProgramError("PRG-004", f"{what} says of no tool that it is proposed: give tool")
    scope = program.scope(program.policy)
    types = scope.guard_types()
    tool = program.tools.get(str(example.given.get("tool")))
    if tool is not None:
        types |= scope.proposal_types(tool)
    if example.at == policy.OUTCOME:
        types |= RESULT_TYPES
    for part in _PARTS:
        for name, value in _part(example, part).items():
            kind = types.get(f"{part}.{name}")
            if kind is None or type(value) is not SLOT_TYPES[kind]:
                said = "there is no such" if kind is None else f"it is no {kind}"
                raise ProgramError("PRG-004", f"{what} gives {part}.{name}, but {said}: mend it")


def _part(example: policy.Example, name: str) -> Mapping[str, object]:
    found = example.given.get(name, {})
    return found if isinstance(found, Mapping) else {}
