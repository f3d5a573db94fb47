"""Budgets: integers, reserved before an effect, settled after it, given back when it failed."""

from dataclasses import dataclass

MONEY, CALLS, STEPS, TOKENS = "money", "calls", "steps", "tokens"
UNITS = (MONEY, CALLS, STEPS, TOKENS)
RUN, AGENT, WORKSPACE, GLOBAL = "run", "agent", "workspace", "global"
SCOPES = (AGENT, WORKSPACE, GLOBAL)  # the shared ones; a run's own limits are in ``Limits``


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A shared account: ``max`` of a unit; money in minor units, each currency apart."""

    scope: str
    unit: str
    max: int
    currency: str = ""  # money only; empty is every currency


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use at most. Money is per currency, and nothing unless it is given."""

    proposals_max: int = 0
    warrant_ttl_ms: int = 900_000
    calls_max: int = 16
    steps_max: int = 1_000
    tokens_max: int = 100_000
    wall_ms_max: int = 86_400_000
    money_minor_max: int = 0
