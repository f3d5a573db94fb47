"""Policy: ordered rules over slots, proposals and history; it denies by default."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nanovm_core.conditions import Condition, Context
from nanovm_core.core.authority.budget import Budget
from nanovm_core.core.authority.windows import Window as Window
from nanovm_core.core.canonical import digest
from nanovm_core.errors import ConditionError, RefusedError

ADMISSION, AUTHORIZE, OUTCOME = "admission", "authorize", "outcome"
STAGES = (ADMISSION, AUTHORIZE, OUTCOME)
ALLOW, HOLD, SUSPEND, DENY = "allow", "hold", "suspend", "deny"
OUTCOMES = (ALLOW, HOLD, SUSPEND, DENY)  # the later decides where several rules apply
SUSPENDED = "POL-004"
HARD, SOFT = "hard", "soft"
LEVELS = (HARD, SOFT)
# The five checks of a call, as people ask for them; every finding of a decision is of one.
SCHEMA, PERMISSION, RATE, ANOMALY, AUDIT = "schema", "permission", "rate", "anomaly", "audit"
CHECKS = (SCHEMA, PERMISSION, RATE, ANOMALY, AUDIT)
# The runtime's own holds, no rules' ids; a person may lift both.
UNKNOWN_OUTCOME, CHANGED_SINCE = "unknown-outcome", "changed-since"
OWN_HOLDS = (UNKNOWN_OUTCOME, CHANGED_SINCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule. ``at``: before the model is asked, when its proposal is judged, or after the call.

    A policy cannot lift a ``hard`` rule. Empty ``tools`` is every tool. ``again_from``: an approval
    lifts nothing, but has the run begin again at this step, where what was missing is looked up.
    ``check``: PERMISSION or ANOMALY; it changes only how a decision is shown.
    """

    id: str
    at: str
    outcome: str
    when: Condition
    why: str
    approvable: bool = False
    level: str = SOFT
    tools: frozenset[str] = frozenset()
    again_from: str = ""
    check: str = PERMISSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A named condition, which guards, rules and the facts below it read as ``$fact.<name>``."""

    name: str
    when: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A policy's own test: ``expect`` (and ``rule``) where ``given`` holds."""

    name: str
    given: Mapping[str, object]
    expect: str
    rule: str = ""
    at: str = AUTHORIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A compiled policy; ``hash`` names the exact bytes it came from.

    ``four_eyes``: nobody approves a run that they requested themselves.
    """

    name: str
    hash: str
    rules: tuple[PolicyRule, ...] = ()
    windows: tuple[Window, ...] = ()
    facts: tuple[Fact, ...] = ()
    budgets: tuple[Budget, ...] = ()
    lifts: tuple[str, ...] = ()  # soft rules of the program
    four_eyes: bool = False
    examples: tuple[Example, ...] = field(default=(), repr=False)


class Outcome(NamedTuple):
    """The rules that allowed, or those that suspend, or the one that holds.

    ``hold``: what stops the call, unless nothing does; the first of ``fired``, if any suspends.
    """

    rules: tuple[str, ...]
    hold: PolicyRule | None = None
    fired: tuple[PolicyRule, ...] = ()


DENY_ALL = Policy(name="deny-all", hash=digest(b"nanovm/policy/v1\0", b""))


def in_force(rules: Sequence[PolicyRule], policy: Policy) -> tuple[PolicyRule, ...]:
    """A program's rules but the soft ones that the policy lifts, then the policy's own."""
    kept = (rule for rule in rules if rule.level == HARD or rule.id not in policy.lifts)
    return (*kept, *policy.rules)


def verdict(
    rules: Iterable[PolicyRule],
    context: Context,
    approved: tuple[str, ...] = (),
    advised: frozenset[str] = frozenset(),
    at: str = AUTHORIZE,
) -> Outcome:
    """The decision of a stage's rules: every one is evaluated; deny over suspend, hold and allow.

    An approvable hold among the ids in ``approved`` allows. A rule among those in ``advised`` only
    stops: neither its hold nor the approval of it stands in for a rule that allows.

    Raises:
        RefusedError: POL-002 on any evaluation error, POL-003 denied, POL-001 nothing allows;
            each with the rules that suspend.
    """
    found: dict[str, list[PolicyRule]] = {outcome: [] for outcome in OUTCOMES}
    refusal = None
    for rule in rules:
        try:
            fires = rule.when.run(context)
        except ConditionError as error:
            refusal = refusal or _unknowable(rule, error, "the call is denied")
            continue
        if fires:
            lifted = rule.outcome == HOLD and rule.approvable and rule.id in approved
            found.get(ALLOW if lifted else rule.outcome, found[DENY]).append(rule)
    if found[DENY] and refusal is None:
        refusal = RefusedError("POL-003", f"{found[DENY][0].why} (rule {found[DENY][0].id})")
    elif refusal is None and {rule.id for rule in (*found[ALLOW], *found[HOLD])} <= advised:
        refusal = unallowed(at)
    fired = tuple(found[SUSPEND])
    if refusal is not None:
        refusal.fired = fired
        raise refusal
    if stops := fired or tuple(found[HOLD][:1]):
        return Outcome(tuple(rule.id for rule in stops), stops[0], fired)
    return Outcome(tuple(rule.id for rule in found[ALLOW]))


def unallowed(at: str = AUTHORIZE) -> RefusedError:
    """The refusal of what no rule allows at a stage."""
    what = "the model to be asked" if at == ADMISSION else "this call"
    to_do = f'add a rule with at = "{at}" and outcome = "{ALLOW}", or meet the condition of one'
    return RefusedError("POL-001", f"No policy rule allows {what}: {to_do}.")


def _unknowable(rule: PolicyRule, error: ConditionError, then: str) -> RefusedError:
    text = f"Rule {rule.id} could not be evaluated ({error.code}), so {then}."
    return RefusedError("POL-002", text)


def suspending(rules: Iterable[PolicyRule], context: Context) -> tuple[PolicyRule, ...]:
    """The rules at outcome that fire.

    There is nothing left to deny: a rule that cannot be evaluated fires as well, and says so in
    place of its own sentence (POL-002).
    """
    found: tuple[PolicyRule, ...] = ()
    for rule in rules:
        try:
            found += (rule,) if rule.when.run(context) else ()
        except ConditionError as error:
            why = str(_unknowable(rule, error, "the agent is suspended"))
            found += (replace(rule, why=why),)
    return found


class Named(NamedTuple):
    """What program and policy name for conditions: windows, and facts in their order."""

    windows: tuple[Window, ...] = ()
    facts: tuple[Fact, ...] = ()


def read_by(rules: Iterable[PolicyRule], named: Named) -> tuple[frozenset[str], Named]:
    """All variables that rules read, themselves or by a fact, and what of ``named`` they are."""
    paths = {path for rule in rules for path in rule.when.variables}
    for fact in reversed(named.facts):
        paths |= {*fact.when.variables} if f"fact.{fact.name}" in paths else set()
    windows = tuple(each for each in named.windows if f"history.{each.name}" in paths)
    facts = tuple(each for each in named.facts if f"fact.{each.name}" in paths)
    return frozenset(paths), Named(windows, facts)


def answers(facts: Iterable[Fact], context: Context) -> dict[str, bool]:
    """What each fact says of a context, in order.

    One that cannot be evaluated is missing, so that a rule that reads it cannot be, either.
    """
    found: dict[str, bool] = {}
    known = {**context, "fact": found}
    for fact in facts:
        with suppress(ConditionError):
            found[fact.name] = fact.when.run(known)
    return found
