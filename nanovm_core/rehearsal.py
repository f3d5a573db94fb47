"""Rehearsals: a policy's own examples, each judged by the rules and held to what it expects."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nanovm_core.errors import RefusedError
from nanovm_core.policy import ADMISSION, AUTHORIZE, Example, judge
from nanovm_core.program import Program

OUTCOMES = ("allow", "hold", "deny")


class Rehearsed(NamedTuple):
    """What came of an example: outcome, the rule or code that decided, and what was expected."""

    name: str
    outcome: str
    rule: str
    expect: str
    good: bool


def rehearse(program: Program) -> Iterator[Rehearsed]:
    """Judge each example of the program's policy by the rules of both, and by nothing else.

    An example gives what its rules may read: slots, tool, proposal, history, workspace, run,
    agent. What it leaves out is missing, and an error denies.
    """
    for example in program.policy.examples:
        outcome, rule = _outcome(program, example)
        right = outcome == example.expect and example.rule in ("", *rule.split(", "))
        yield Rehearsed(example.name, outcome, rule, example.expect, right)


def _outcome(program: Program, example: Example) -> tuple[str, str]:
    given = example.given
    lifted = set(program.policy.lifts)
    rules = tuple(
        rule
        for rule in (*program.rules, *program.policy.rules)
        if rule.at == example.at and rule.id not in lifted and _about(rule.tools, given)
    )
    if example.at not in (ADMISSION, AUTHORIZE):
        return "deny", "POL-001"
    try:
        found = judge(rules, given, ())
    except RefusedError as error:
        return "deny", _named(error)
    return ("hold", found.hold.id) if found.hold else ("allow", ", ".join(found.rules))


def _about(tools: frozenset[str], given: Mapping[str, object]) -> bool:
    return not tools or given.get("tool") in tools


def _named(error: RefusedError) -> str:
    """The rule that a refusal names at its end, and its code."""
    rule = error.text.rpartition("(rule ")[2].rstrip(")") if "(rule " in error.text else ""
    return f"{rule}, {error.code}" if rule else error.code
