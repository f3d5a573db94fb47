"""The gate: the whole authorization decision, compiled once for a program under a policy."""

from collections.abc import Mapping
from typing import NamedTuple

from nanovm_core.budget import Budget, Limits
from nanovm_core.capabilities import Grant, Tool
from nanovm_core.conditions import Part
from nanovm_core.messages import NOTHING, Args, Recorded, Reservation
from nanovm_core.policy import Outcome, Policy, PolicyRule, Window
from nanovm_core.proposals import Call

_NONE: Mapping[str, int] = {}


class Facts(NamedTuple):
    """What a decision may know: the run's value, and what came in on the event.

    ``ledger``: what each shared account has left. ``used``: what the run itself has used, by
    unit. ``started_ms``: since when the run's clock runs; 0 while it does not.
    """

    slots: Args = NOTHING
    ledger: Mapping[str, int] = _NONE
    used: Mapping[str, int] = _NONE
    history: tuple[Recorded, ...] = ()
    agent: str = ""
    at_ms: int = 0
    approved: tuple[str, ...] = ()
    revoked: frozenset[str] = frozenset()
    refused: int = 0
    started_ms: int = 0


class Allowed(NamedTuple):
    """A call that may be made, with its arguments as they are to be made.

    ``hold``: the rule that a person must lift first; ``rules`` are those that decided.
    """

    args: Args
    rules: tuple[str, ...]
    hold: PolicyRule | None = None


class Finding(NamedTuple):
    """One check of a decision: ``holds`` is None where it could not be reached."""

    check: str
    subject: str
    holds: bool | None
    text: str
    parts: tuple[Part, ...] = ()


class Gate:
    """What a program under its policy lets an agent do; made by ``compile_gate``."""

    def authorize(
        self, call: Call, facts: Facts, accepts: tuple[str, ...] | None = None
    ) -> Allowed:
        """Judge a call whole, budgets included."""
        raise NotImplementedError

    def permit(self, call: Call, facts: Facts, accepts: tuple[str, ...] | None = None) -> Allowed:
        """``authorize`` without the budgets: ``reserve`` sees to them when the call is made."""
        raise NotImplementedError

    def permit_own(self, call: Call, facts: Facts) -> Args:
        """Judge the program's own use of a granted tool: all but policy and budgets."""
        raise NotImplementedError

    def admit(self, facts: Facts) -> Outcome:
        """Judge whether the model may be asked."""
        raise NotImplementedError

    def context(self, facts: Facts) -> Mapping[str, object]:
        """What guards and admission rules read."""
        raise NotImplementedError

    def need(self, tool: str, args: Args) -> Mapping[str, int]:
        """What one call uses, by unit."""
        raise NotImplementedError

    def reserve(self, need: Mapping[str, int], facts: Facts) -> tuple[Reservation, ...]:
        """What to freeze for a need: all of it or, with a refusal, nothing."""
        raise NotImplementedError

    def explain(
        self, call: Call, facts: Facts, accepts: tuple[str, ...] | None = None
    ) -> tuple[Finding, ...]:
        """Every check of ``authorize``, for accepted calls too."""
        raise NotImplementedError


def compile_gate(
    *,
    tools: Mapping[str, Tool],
    grants: Mapping[str, Grant],
    limits: Limits,
    slots: Mapping[str, str],
    rules: tuple[PolicyRule, ...],
    windows: tuple[Window, ...],
    budgets: tuple[Budget, ...],
    policy: Policy,
) -> Gate:
    """Compile a gate. ``slots`` maps each slot to how the model sees it (hidden, clear, …)."""
    raise NotImplementedError
