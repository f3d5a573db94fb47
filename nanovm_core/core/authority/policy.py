"""Policy: ordered rules over slots, proposals and history; it denies by default."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nanovm_core.conditions import Condition, Context
from nanovm_core.core.authority.budget import Budget
from nanovm_core.core.authority.windows import Window as Window
from nanovm_core.core.canonical import digest
from nanovm_core.errors import ConditionError, RefusedError

ADMISSION, AUTHORIZE = "admission", "authorize"
STAGES = (ADMISSION, AUTHORIZE)
ALLOW, HOLD, DENY = "allow", "hold", "deny"
OUTCOMES = (ALLOW, HOLD, DENY)
HARD, SOFT = "hard", "soft"
LEVELS = (HARD, SOFT)
# The five checks of a call, as people ask for them; every finding of a decision is of one.
SCHEMA, PERMISSION, RATE, ANOMALY, AUDIT = "schema", "permission", "rate", "anomaly", "audit"
CHECKS = (SCHEMA, PERMISSION, RATE, ANOMALY, AUDIT)
UNKNOWN_OUTCOME = "unknown-outcome"  # the runtime's own hold, no rule's id


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule. ``at``: before the model is asked, or when its proposal is judged.

    A policy cannot lift a ``hard`` rule. Empty ``tools`` is every tool. ``again_from``: an approval
    lifts nothing, but has the run begin again at this step, where what was missing is looked up.
    ``check``: PERMISSION or ANOMALY. It changes no decision, only how it is shown.
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
class Example:
    """A policy's own test: ``expect`` (and ``rule``) where ``given`` holds."""

    name: str
    given: Mapping[str, object]
    expect: str
    rule: str = ""
    at: str = AUTHORIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A compiled policy; ``hash`` names the exact bytes it came from."""

    name: str
    hash: str
    rules: tuple[PolicyRule, ...] = ()
    windows: tuple[Window, ...] = ()
    budgets: tuple[Budget, ...] = ()
    lifts: tuple[str, ...] = ()  # soft rules of the program
    examples: tuple[Example, ...] = field(default=(), repr=False)


class Outcome(NamedTuple):
    """The rules that allowed, or the one that holds."""

    rules: tuple[str, ...]
    hold: PolicyRule | None = None


DENY_ALL = Policy(name="deny-all", hash=digest(b"nanovm/policy/v1\0", b""))


Verdict = Callable[[Context, tuple[str, ...]], Outcome]


def verdict(rules: Sequence[PolicyRule]) -> Verdict:
    """Compile these rules' decision: every one is evaluated; deny over hold over allow.

    The decision takes a context and the ids of approved rules: an approvable hold among these
    allows. It raises RefusedError: POL-002 on any evaluation error, POL-003 denied, POL-001
    nothing allows.
    """

    def decide(context: Context, approved: tuple[str, ...]) -> Outcome:
        allowed: tuple[str, ...] = ()
        denied = held = None
        for rule in rules:
            try:
                fires = rule.when.run(context)
            except ConditionError as error:
                raise _unknowable(rule, error) from error
            if not fires:
                continue
            lifted = rule.outcome == HOLD and rule.approvable and rule.id in approved
            if rule.outcome == ALLOW or lifted:
                allowed += (rule.id,)
            elif rule.outcome == HOLD:
                held = held or rule
            else:
                denied = denied or rule
        if denied is not None:
            raise RefusedError("POL-003", f"{denied.why} (rule {denied.id})")
        if held is not None:
            return Outcome((held.id,), held)
        if not allowed:
            raise unallowed()
        return Outcome(allowed)

    return decide


def unallowed() -> RefusedError:
    """The refusal of what no rule allows."""
    return RefusedError("POL-001", "No policy rule allows this call.")


def _unknowable(rule: PolicyRule, error: ConditionError) -> RefusedError:
    return RefusedError(
        "POL-002", f"Rule {rule.id} could not be evaluated ({error.code}), so the call is denied."
    )
