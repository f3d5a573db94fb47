"""Findings: one check of a decision each, and how the policy's rules explain themselves."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from nanovm_core.conditions import Part
from nanovm_core.core.authority.arguments import REF, ArgSpec
from nanovm_core.core.authority.policy import ALLOW, DENY, PolicyRule
from nanovm_core.errors import RefusedError

A_REF = "(a vault ref)"  # in place of any ref


class Finding(NamedTuple):
    """One check of a decision. ``holds``: None if not reached, or not firing, or held.

    ``code`` and ``refusal``: of the call, if this check is the first that fails. ``text`` is for
    people. ``parts``: a rule's condition, piece by piece.
    """

    check: str
    subject: str
    holds: bool | None
    text: str
    parts: tuple[Part, ...] = ()
    code: str = ""
    refusal: str = ""


def failed(check: str, subject: str, error: RefusedError, text: str = "") -> Finding:
    """A check that refuses; ``text`` for people, else the refusal's own."""
    return Finding(check, subject, False, text or error.text, code=error.code, refusal=error.text)


def outcome(check: str, rules: tuple[str, ...], hold: PolicyRule | None) -> Finding:
    if hold is not None:
        return Finding(check, "", None, f"On hold: {hold.id}.")
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
    elif rule.outcome == ALLOW or lifted:
        holds, text = True, "Approved by a person." if lifted else rule.why
    else:
        holds, text = None, f"A person must approve it first: {rule.why}"
    return Finding("rule", rule.id, holds, text, parts)


def _shown(part: Part) -> Part:
    if isinstance(part.value, str) and REF.fullmatch(part.value):
        return replace(part, value=A_REF)
    return part


def described(spec: ArgSpec) -> str:
    """A schema in words."""
    if spec.one_of is not None:
        return f"It is one of {len(spec.one_of)} allowed values."
    if spec.type == "integer":
        low = "…" if spec.min is None else spec.min
        return f"It is an integer of {low} to {'…' if spec.max is None else spec.max}."
    if spec.type == "boolean":
        return "It is true or false."
    return f"It is a {spec.type} of at most {spec.length_max} characters."
