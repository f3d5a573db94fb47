"""Policy: ordered rules over slots, proposals and history; what no rule allows is denied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nanovm_core.budget import Budget
from nanovm_core.canonical import digest
from nanovm_core.conditions import Condition

ADMISSION, AUTHORIZE = "admission", "authorize"
STAGES = (ADMISSION, AUTHORIZE)
ALLOW, HOLD, DENY = "allow", "hold", "deny"
OUTCOMES = (ALLOW, HOLD, DENY)
HARD, SOFT = "hard", "soft"
LEVELS = (HARD, SOFT)
CALLS, FAILURES, REFUSALS, IN_A_ROW = "calls", "failures", "refusals", "failures_in_a_row"
COUNTS = (CALLS, FAILURES, REFUSALS, IN_A_ROW)
WORKSPACE, AGENT = "workspace", "agent"
WINDOW_SCOPES = (WORKSPACE, AGENT)
RECORDS_MAX = 256  # the newest records a window looks at; its count never exceeds them
UNKNOWN_OUTCOME = "unknown-outcome"  # the runtime's own hold; no rule may bear its name


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule. ``at``: before the model is asked, or when its proposal is judged.

    ``level``: hard rules of a program cannot be lifted. ``tools`` limits the rule to these
    tools; empty is every tool.
    """

    id: str
    at: str
    outcome: str
    when: Condition
    why: str
    approvable: bool = False
    level: str = SOFT
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What rules read as ``$history.<name>``: a count over the recorded calls."""

    name: str
    counts: str
    within_ms: int = 0  # not for failures_in_a_row
    scope: str = WORKSPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What a policy's author expects of it: ``expect`` (and ``rule``) where ``given`` holds."""

    name: str
    given: Mapping[str, object]
    expect: str
    rule: str = ""
    at: str = AUTHORIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A compiled policy; ``hash`` names the exact bytes it came from. It denies by default."""

    name: str
    hash: str
    rules: tuple[PolicyRule, ...] = ()
    windows: tuple[Window, ...] = ()
    budgets: tuple[Budget, ...] = ()
    lifts: tuple[str, ...] = ()  # soft rules of the program that this policy takes away
    examples: tuple[Example, ...] = field(default=(), repr=False)


class Outcome(NamedTuple):
    """What the rules say where they do not deny: those that allowed, or the one that holds."""

    rules: tuple[str, ...]
    hold: PolicyRule | None = None


DENY_ALL = Policy(name="deny-all", hash=digest(b"nanovm/policy/v1\0", b""))
