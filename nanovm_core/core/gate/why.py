"""Why: every check of an authorization decision and what it came to, for people to read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from nanovm_core.conditions import Part
from nanovm_core.core.arguments import REF, ArgSpec, same
from nanovm_core.core.budget import CALLS, Accounts
from nanovm_core.core.capabilities import Source, check_names
from nanovm_core.core.gate.tool_guard import Facts, Passage
from nanovm_core.core.messages import Args, Scalar
from nanovm_core.core.policy import ALLOW, DENY, PolicyRule
from nanovm_core.core.proposals import Call
from nanovm_core.errors import RefusedError

A_REF = "(a vault ref)"  # what a finding shows in place of one


class Finding(NamedTuple):
    """One check of a decision. ``holds``: yes, no, or None where it says neither.

    None is a check that could not be reached, a rule that does not speak, and a hold.
    ``parts`` are a rule's condition, piece by piece.
    """

    check: str
    subject: str
    holds: bool | None
    text: str
    parts: tuple[Part, ...] = ()


def findings(
    passage: Passage | None,
    accounts: Accounts,
    call: Call,
    facts: Facts,
    accepts: tuple[str, ...] | None,
) -> Iterator[Finding]:
    """Every check in the order of the decision; a call is refused where one of them says no."""
    if passage is None:
        yield Finding("tool", "", False, "The proposed tool was never granted.")
        return
    tool = passage.tool.name
    yield Finding("tool", tool, True, "It is granted.")
    yield _tried("grant", tool, "It is in force.", lambda: passage.require_live(facts))
    args: dict[str, Scalar] = {}
    yield from _schema(passage, call, facts, args)
    for name, holds in passage.bounds:
        known = name in args
        within = holds(args[name], facts.slots) if known else None
        yield Finding("constraint", name, within, _LIES[within])
    whole = args if len(args) == len(passage.tool.args) == len(call.args) else None
    yield from _rules(passage, facts, whole)
    for name, source in passage.tool.critical.items():
        yield _provenance(name, source, args.get(name), facts.slots)
    yield from _budgets(passage, accounts, facts, whole)
    if accepts is not None:
        text = "It may be called here." if tool in accepts else "It cannot be proposed here."
        yield Finding("step", tool, tool in accepts, text)


def _tried(check: str, subject: str, text: str, attempt: Callable[[], object]) -> Finding:
    """A check that raises where it fails."""
    try:
        attempt()
    except RefusedError as error:
        return Finding(check, subject, False, error.text)
    return Finding(check, subject, True, text)


def _schema(
    passage: Passage, call: Call, facts: Facts, args: dict[str, Scalar]
) -> Iterator[Finding]:
    """The names of the arguments, then each one; what passes is put into ``args``."""
    tool, slots = passage.tool, facts.slots
    yield _tried("schema", "", "It has its arguments.", lambda: check_names(tool, call.args))
    for name, read in passage.schema:
        if name not in call.args:
            yield Finding("schema", name, None, "It is not there.")
            continue
        try:
            args[name] = read(passage.filled(name, call.args[name], slots), slots)
        except RefusedError as error:
            yield Finding("schema", name, False, error.text)
        else:
            yield Finding("schema", name, True, _described(tool.args[name]))


def _rules(passage: Passage, facts: Facts, args: Args | None) -> Iterator[Finding]:
    """What all rules come to together, then each one, with its condition in parts."""
    if args is None:
        yield Finding("policy", "", None, "No rule is asked about a call that is not whole.")
        return
    context = passage.reads(facts, args)
    try:
        decided, hold = passage.verdict(context, facts.approved)
    except RefusedError as error:
        yield Finding("policy", "", False, error.text)
    else:
        text = f"Allowed by {', '.join(decided)}." if hold is None else f"Held by {hold.id}."
        yield Finding("policy", "", True if hold is None else None, text)
    for rule in passage.rules:
        yield _rule(rule, context, facts.approved)


def _rule(rule: PolicyRule, context: Mapping[str, object], approved: tuple[str, ...]) -> Finding:
    parts = tuple(_shown(part) for part in rule.when.explain(context))
    if parts[0].error is not None:
        return Finding("rule", rule.id, False, "It could not be evaluated; an error denies.", parts)
    if parts[0].value is not True:
        return Finding("rule", rule.id, None, f"It does not {rule.outcome} this.", parts)
    if rule.outcome == DENY:
        return Finding("rule", rule.id, False, rule.why, parts)
    lifted = rule.outcome != ALLOW and rule.approvable and rule.id in approved
    if rule.outcome == ALLOW or lifted:
        return Finding("rule", rule.id, True, "A person lifted it." if lifted else rule.why, parts)
    return Finding("rule", rule.id, None, f"A person must look at it first: {rule.why}", parts)


def _provenance(name: str, source: Source, value: Scalar | None, slots: Args) -> Finding:
    known = slots.get(source.slot) if source.slot else source.constant
    origin = f"the slot {source.slot!r}" if source.slot else "the program's own constant"
    if value is None:
        return Finding("provenance", name, None, f"It must equal {origin}.")
    text = f"It equals {origin}." if same(known, value) else f"It is not {origin}."
    return Finding("provenance", name, same(known, value), text)


def _budgets(
    passage: Passage, accounts: Accounts, facts: Facts, args: Args | None
) -> Iterator[Finding]:
    """Each account that the call draws on, with what it has left, and the run's clock."""
    for unit, amount in passage.need(args) if args is not None else ((CALLS, 1),):
        try:
            found = accounts.left(unit, facts.ledger, facts.used)
        except RefusedError as error:
            yield Finding("budget", unit, False, error.text)
            continue
        for account, left in found.items():
            text = f"{left} left, {amount} needed." if left is not None else "It is not open."
            yield Finding("budget", account, 0 < amount <= (left or 0), text)
    yield _tried(
        "budget",
        "run/time",
        "The run has time left.",
        lambda: accounts.require_time(facts.started_ms, facts.at_ms),
    )


def _shown(part: Part) -> Part:
    """A part of a condition as people may see it: of a ref only that it is one."""
    if isinstance(part.value, str) and REF.fullmatch(part.value):
        return replace(part, value=A_REF)
    return part


def _described(spec: ArgSpec) -> str:
    """A schema in words."""
    if spec.one_of is not None:
        return f"It is one of {len(spec.one_of)} values, as it must be."
    if spec.type == "integer":
        low = "…" if spec.min is None else spec.min
        return f"It is an integer of {low} to {'…' if spec.max is None else spec.max}."
    if spec.type == "boolean":
        return "It is true or false."
    return f"It is a {spec.type} of at most {spec.length_max} characters."


_LIES = {True: "It lies within the grant.", False: "It lies outside.", None: "It is not known."}
