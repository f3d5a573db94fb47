"""Windows of time in words: what each counts, and from which count on rules fire."""

from collections.abc import Iterator
from typing import NamedTuple

from dashboard.templatetags.show import length
from engine.models import Workspace
from engine.queries import limits
from nanovm_core.core.authority.windows import AGENT
from nanovm_core.core.program import Program

COUNTED = {
    "calls": "calls of granted tools",
    "failures": "failed calls",
    "refusals": "refused proposals",
    "failures_in_a_row": "failed calls in a row",
    "spent": "paid",
}
MORE_THAN = {
    ">": "more than",
    ">=": "at least",
    "<": "fewer than",
    "<=": "at most",
    "==": "exactly",
}


class WindowLine(NamedTuple):
    """A window. ``limits``: the rules that read it, with outcome and count."""

    name: str
    counts: str
    within: str  # empty: no time bounds it
    whose: str
    now: int | None  # None before there is a log
    limits: tuple[tuple[str, str, str], ...]


def windows_of(program: Program, agent: str, log: Workspace | None) -> Iterator[WindowLine]:
    """The windows of a program and its policy, with what they count of an agent in a log."""
    counts = limits.windows(log, program, agent) if log else {}
    for each in (*program.windows, *program.policy.windows):
        whose = f"by {agent}" if each.scope == AGENT else "by all agents together"
        within = length(each.within_ms) if each.within_ms else ""
        yield WindowLine(
            name=each.name,
            counts=COUNTED.get(each.counts, each.counts),
            within=within,
            whose=whose,
            now=counts.get(each.name),
            limits=tuple(_limits(program, f"history.{each.name}")),
        )


def _limits(program: Program, variable: str) -> Iterator[tuple[str, str, str]]:
    """The rules that compare a variable with a number: id, outcome and comparison."""
    for rule in (*program.rules, *program.policy.rules):
        for found in rule.when.comparisons():
            if found.variable == variable and found.sign in MORE_THAN:
                yield rule.id, rule.outcome, f"{MORE_THAN[found.sign]} {found.literal}"
