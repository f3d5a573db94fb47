"""Windows of time in words: what each counts, and from which count on rules fire."""

from collections.abc import Iterator
from typing import NamedTuple

from dashboard.templatetags.show import length, money
from engine.models import Workspace
from engine.queries import limits
from nanovm_core.core.authority.windows import AGENT, Window
from nanovm_core.core.program import Program

COUNTED = {
    "calls": "calls of granted tools",
    "failures": "failed calls",
    "refusals": "refused proposals",
    "failures_in_a_row": "failed calls in a row",
    "spent": "paid",
}
SIGNS = {">": "more than", ">=": "at least", "<": "fewer than", "<=": "at most", "==": "exactly"}


class WindowLine(NamedTuple):
    """A window. ``limits``: the rules that read it, with outcome and count."""

    name: str
    counts: str
    within: str  # empty: no time bounds it
    whose: str
    now: str  # empty before there is a log
    limits: tuple[tuple[str, str, str], ...]


def windows_of(program: Program, agent: str, log: Workspace | None) -> Iterator[WindowLine]:
    """The windows of a program and its policy, with what they count of an agent in a log."""
    counts = limits.windows(log, program, agent) if log else {}
    for each in (*program.windows, *program.policy.windows):
        whose = f"by {agent}" if each.scope == AGENT else "by all agents together"
        within = length(each.within_ms) if each.within_ms else ""
        counted = COUNTED.get(each.counts, each.counts)
        of = f" {'by' if each.counts == 'spent' else 'of'} {each.tool}"
        yield WindowLine(
            name=each.name,
            counts=counted.removesuffix(" of granted tools") + of if each.tool else counted,
            within=within,
            whose=whose,
            now=_said(each, counts[each.name]) if each.name in counts else "",
            limits=tuple(_limits(program, each)),
        )


def _said(window: Window, count: object) -> str:
    """A count as people write it: an amount, where money is counted."""
    return money(count, window.currency) if type(count) is int and window.currency else str(count)


def _limits(program: Program, window: Window) -> Iterator[tuple[str, str, str]]:
    """The rules and facts that compare a window with a number: name, outcome and comparison."""
    rules = [(each.id, each.outcome, each.when) for each in program.rules + program.policy.rules]
    facts = [(each.name, "fact", each.when) for each in program.facts + program.policy.facts]
    for name, outcome, when in (*rules, *facts):
        for found in when.comparisons():
            if found.variable == f"history.{window.name}" and found.sign in SIGNS:
                yield name, outcome, f"{SIGNS[found.sign]} {_said(window, found.literal)}"
