"""Findings: one check of a decision each, how rules explain themselves, and the five checks."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from nanovm_core.conditions import Part
from nanovm_core.core.authority.arguments import DECIMAL, LIST, REF, ArgSpec
from nanovm_core.core.authority.policy import (
    ALLOW,
    AUDIT,
    CHECKS,
    DENY,
    PERMISSION,
    RATE,
    SCHEMA,
    SUSPEND,
    PolicyRule,
)
from nanovm_core.decimals import decimal_of
from nanovm_core.errors import RefusedError

A_REF = "(a vault ref)"  # in place of any ref
PASSED, HELD, REFUSED, NOT_REACHED = "passed", "held", "refused", "not reached"
_CHECK_OF = {"schema": SCHEMA, "budget": RATE, "rate": RATE, "audit": AUDIT}
_WORST_FIRST = (REFUSED, HELD, NOT_REACHED, PASSED)


class Finding(NamedTuple):
    """One check of a decision. ``holds``: None if not reached, or not firing, or held.

    ``code`` and ``refusal``: of the call, if this check is the first that fails. ``text`` is for
    people. ``parts``: a rule's condition, piece by piece. ``of``: a rule's kind of check.
    ``held``: it waits for a person, who approves the call or resumes the agent.
    """

    check: str
    subject: str
    holds: bool | None
    text: str
    parts: tuple[Part, ...] = ()
    code: str = ""
    refusal: str = ""
    of: str = ""
    held: bool = False

    @property
    def state(self) -> str:
        """What it says of the call: PASSED, HELD, REFUSED, or NOT_REACHED."""
        if self.holds is not None:
            return PASSED if self.holds else REFUSED
        not_firing = PASSED if self.check == "rule" else NOT_REACHED
        return HELD if self.held else not_firing


class Check(NamedTuple):
    """One of the five checks of a call, with all findings that make it up."""

    name: str
    state: str
    findings: tuple[Finding, ...]


def five(findings: Iterable[Finding]) -> tuple[Check, ...]:
    """Schema, permission, rate, anomaly and audit: every finding is of one of them.

    A rule that holds or refuses replaces the finding that sums up all rules.
    """
    found = tuple(findings)
    decided = {each.state for each in found if each.check == "rule"} & {HELD, REFUSED}
    kept = [each for each in found if each.check != "policy" or not decided]
    groups = {
        name: [each for each in kept if (each.of or _CHECK_OF.get(each.check, PERMISSION)) == name]
        for name in CHECKS
    }
    return tuple(Check(name, _worst(group), tuple(group)) for name, group in groups.items())


def _worst(findings: Iterable[Finding]) -> str:
    states = {each.state for each in findings}
    return next((state for state in _WORST_FIRST if state in states), NOT_REACHED)


def failed(check: str, subject: str, error: RefusedError, text: str = "") -> Finding:
    """A check that refuses; ``text`` for people, else the refusal's own."""
    return Finding(check, subject, False, text or error.text, code=error.code, refusal=error.text)


def outcome(check: str, rules: tuple[str, ...], hold: PolicyRule | None) -> Finding:
    if hold is not None:
        what = "Suspends the agent" if hold.outcome == SUSPEND else "On hold"
        return Finding(check, "", None, f"{what}: {hold.id}.", held=True)
    return Finding(check, "", True, f"Allowed: {', '.join(rules)}.")


def explained(
    rule: PolicyRule, context: Mapping[str, object], approved: tuple[str, ...]
) -> Finding:
    """One rule's answer on a call, with its condition in parts; the policy check decides."""
    parts = tuple(_shown(part) for part in rule.when.explain(context))
    lifted = rule.outcome != ALLOW and rule.approvable and rule.id in approved
    if parts[0].error is not None:
        holds, text = False, "The rule could not be evaluated, so the call is denied."
    elif parts[0].value is not True:
        holds, text = None, "Rule not triggered."
    elif rule.outcome == DENY:
        holds, text = False, rule.why
    elif rule.outcome == SUSPEND:
        holds, text = None, f"It suspends the agent: {rule.why}"
    elif rule.outcome == ALLOW or lifted:
        holds, text = True, "Approved by a person." if lifted else rule.why
    else:
        holds, text = None, f"A person must approve it first: {rule.why}"
    counts = any(path.startswith("history.") for path in rule.when.variables)
    kind = RATE if counts and rule.check == PERMISSION else rule.check
    held = holds is None and parts[0].value is True
    return Finding("rule", rule.id, holds, text, parts, of=kind, held=held)


def _shown(part: Part) -> Part:
    if isinstance(part.value, str) and REF.fullmatch(part.value):
        return replace(part, value=A_REF)
    return part


def described(spec: ArgSpec) -> str:
    """A schema in words."""
    if spec.type == LIST:
        each = described(replace(spec, type=spec.of))
        return f"It is a list of at most {spec.items_max}. Of each item: {each}"
    if spec.one_of is not None:
        return f"It is one of {len(spec.one_of)} allowed values."
    if spec.type in ("integer", DECIMAL):
        ends = (spec.min, spec.max)
        low, high = ("…" if end is None else decimal_of(end, spec.places) for end in ends)
        return f"It is {'an' if spec.type == 'integer' else 'a'} {spec.type} of {low} to {high}."
    if spec.type == "boolean":
        return "It is true or false."
    of = " of printable ASCII," if spec.plain else ""
    return f"It is a {spec.type}{of} of at most {spec.length_max} characters."
