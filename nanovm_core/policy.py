"""Policy: ordered rules over an invoice and a proposal; what no rule allows is denied."""

from collections.abc import Mapping
from dataclasses import dataclass

from nanovm_core.canonical import INTEGER_MAX, digest
from nanovm_core.conditions import Condition, parse
from nanovm_core.errors import ConditionError, ProgramError, RefusedError
from nanovm_core.strict_toml import Table, document

ADMISSION, AUTHORIZE = "admission", "authorize"
STAGES = (ADMISSION, AUTHORIZE)
OUTCOMES = ("allow", "hold", "deny")
SOURCE_BYTES_MAX = 65_536
KEY = "workspace_minor"
RULE_KEYS = {"id", "at", "outcome", "when", "why", "approvable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule. ``at``: before the model is asked, or when its proposal is judged."""

    id: str
    at: str
    outcome: str
    when: Condition
    why: str
    approvable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A compiled policy; ``hash`` names the exact bytes it came from."""

    name: str
    hash: str
    rules: tuple[PolicyRule, ...]
    budget_minor: int  # what a new workspace may spend in each currency, in minor units


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the policy says when it does not deny: the rules that allowed, or the one that holds."""

    rules: tuple[str, ...]
    hold: PolicyRule | None = None


UNKNOWN_OUTCOME = "unknown-outcome"  # the runtime's own hold; no rule may bear its name

DENY_ALL = Policy(
    name="deny-all", hash=digest(b"nanovm/policy/v1\0", b""), rules=(), budget_minor=0
)


def load_policy(source: bytes) -> Policy:
    """Compile a policy file (TOML, UTF-8).

    Raises:
        ProgramError: PRG-003, with the rule and the reason, and a caret where a condition fails.
    """
    found = _document(source)
    rows = found.get("rules", [])
    if not isinstance(rows, list):
        raise ProgramError("PRG-003", "rules must be a list of tables: [[rules]]")
    rules = tuple(_rule(row, place) for place, row in enumerate(rows, 1))
    if len({rule.id for rule in rules}) != len(rules):
        raise ProgramError("PRG-003", "two rules have the same id")
    if UNKNOWN_OUTCOME in {rule.id for rule in rules}:
        raise ProgramError("PRG-003", f"the id {UNKNOWN_OUTCOME!r} is the runtime's own")
    budget = found.get("budget", {})
    limit = budget.get(KEY) if isinstance(budget, Mapping) else None
    if type(limit) is not int or not 0 <= limit <= INTEGER_MAX or budget != {KEY: limit}:
        raise ProgramError(
            "PRG-003", f"[budget] holds {KEY}, an integer of 0 to {INTEGER_MAX}, and nothing else"
        )
    return Policy(
        name=str(found["name"]),
        hash=digest(b"nanovm/policy/v1\0", source),
        rules=rules,
        budget_minor=limit,
    )


def judge(
    policy: Policy, stage: str, context: Mapping[str, object], approved: tuple[str, ...] = ()
) -> Outcome:
    """Evaluate every rule of a stage: deny wins over hold, hold over allow.

    A rule in ``approved`` has been lifted by a person and counts as an allow.

    Raises:
        RefusedError: POL-002 on any evaluation error, POL-003 denied, POL-001 nothing allows.
    """
    fired = [rule for rule in policy.rules if rule.at == stage and _fires(rule, context)]
    denied = [rule for rule in fired if rule.outcome == "deny"]
    if denied:
        raise RefusedError("POL-003", f"{denied[0].why} (rule {denied[0].id})")
    for rule in fired:
        if rule.outcome == "hold" and rule.id not in approved:
            return Outcome(rules=(rule.id,), hold=rule)
    allowed = tuple(rule.id for rule in fired)
    if not allowed:
        raise RefusedError("POL-001", "No rule of the policy allows it.")
    return Outcome(rules=allowed)


def _fires(rule: PolicyRule, context: Mapping[str, object]) -> bool:
    try:
        return rule.when.holds(context)
    except ConditionError as error:
        raise RefusedError(
            "POL-002", f"Rule {rule.id} could not be evaluated ({error.code}); an error denies."
        ) from error


def _document(source: bytes) -> Table:
    found = document(source, code="PRG-003", what="policy", size_max=SOURCE_BYTES_MAX)
    unknown = set(found) - {"v", "name", "rules", "budget"}
    if found.get("v") != "nanovm-policy/1" or unknown or "name" not in found:
        raise ProgramError(
            "PRG-003", f'expected v = "nanovm-policy/1" and a name; unknown keys: {sorted(unknown)}'
        )
    return found


def _rule(row: object, place: int) -> PolicyRule:
    if not isinstance(row, dict) or not {"id", "at", "outcome", "when", "why"} <= set(row):
        raise ProgramError("PRG-003", f"rule {place} needs id, at, outcome, when and why")
    unknown = set(row) - RULE_KEYS
    known = row["at"] in STAGES and row["outcome"] in OUTCOMES
    if unknown or not known or not isinstance(row.get("approvable", False), bool):
        raise ProgramError(
            "PRG-003",
            f"rule {row['id']!r}: at is one of {STAGES}, outcome one of {OUTCOMES}, "
            f"approvable true or false; unknown keys: {sorted(unknown)}",
        )
    return PolicyRule(
        id=str(row["id"]),
        at=row["at"],
        outcome=row["outcome"],
        when=_condition(row),
        why=str(row["why"]),
        approvable=row.get("approvable", False),
    )


def _condition(row: dict[str, object]) -> Condition:
    try:
        return parse(str(row["when"]))
    except ConditionError as error:
        raise ProgramError("PRG-003", f"rule {row['id']!r}: {error.text}") from error
