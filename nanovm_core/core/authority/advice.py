"""Advice: what an advisor says can make a verdict stricter, never more permissive (PRG-007)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from nanovm_core.conditions import Condition, Context
from nanovm_core.core.authority.policy import ALLOW, OUTCOME, Fact, PolicyRule

Place = tuple[str, int]  # a condition's text, and the offset in it
_READ = ("slots", "origin")


class Advice(NamedTuple):
    """What of a program rests on an advisor's answers.

    ``slots``: what a step fills or drops that asks an advisor, or takes such a slot; an endorsement
    takes none out. ``choosing``: of those steps, the ones whose failure leads to a granted call
    that their success does not lead to. ``judged``: a step at which rules judge, and whose failure
    leads to a granted call; empty for none.
    """

    slots: frozenset[str] = frozenset()
    choosing: tuple[str, ...] = ()
    judged: str = ""

    def paths(self, facts: Iterable[Fact]) -> frozenset[str]:
        """The variables that rest on advice, of ``facts`` too: each reads those before it."""
        found = {f"{part}.{slot}" for slot in self.slots for part in _READ}
        for fact in facts:
            if not found.isdisjoint(fact.when.variables):
                found.add(f"fact.{fact.name}")
        return frozenset(found)

    def faults(
        self, rule: PolicyRule, paths: frozenset[str]
    ) -> Iterator[tuple[str, str, Place | None]]:
        """How advice could make a verdict more permissive by a rule: the key, why, the place."""
        read = advised(rule.when, paths)
        if read is None:
            return
        name, place = read
        if rule.outcome == ALLOW:
            yield "when", f"${name} rests on advice, which may allow nothing: hold or deny", place
        if rule.again_from:
            text = f"${name} rests on advice, which may not have the run begin again: leave it out"
            yield "again_from", text, None
        if rule.at != OUTCOME and self.judged:
            text = f"${name} rests on advice, which could fail step {self.judged}, and that leads"
            yield "when", f"{text} to a granted call: give the step on_error = 'failed'", place


NOTHING_ADVISED = Advice()


def advised(when: Condition, paths: frozenset[str]) -> tuple[str, Place] | None:
    """The first of these variables that a condition reads, and where; None where it reads none."""
    name = next((name for name in when.variables if name in paths), "")
    found = re.search(rf"\${re.escape(name)}(?![\w.])", when.text) if name else None
    return (name, (when.text, found.start() if found else 0)) if name else None


def advised_rules(rules: Iterable[PolicyRule], paths: frozenset[str]) -> frozenset[str]:
    """The ids of the rules that read advice: they can stop a call, and allow none."""
    return frozenset(rule.id for rule in rules if not paths.isdisjoint(rule.when.variables))


def unadvised(context: Context, paths: frozenset[str]) -> Context:
    """A context without what rests on advice: all that a foreign engine may know."""
    found = dict(context)
    for part in (*_READ, "fact") if paths else ():
        named = found.get(part)
        if isinstance(named, Mapping):
            found[part] = {key: each for key, each in named.items() if f"{part}.{key}" not in paths}
    return found
