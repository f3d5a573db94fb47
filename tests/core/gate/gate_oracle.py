"""A second opinion on calls, which shares data types with the kernel and nothing that decides."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nanovm_core.core.authority.budget import Budget, Limits
from nanovm_core.core.authority.capabilities import ArgSpec, Constraint, Grant, Tool, grant_id
from nanovm_core.core.authority.policy import Policy, PolicyRule, Window
from nanovm_core.core.gate.schema import Facts
from nanovm_core.core.messages import Args, Scalar
from tests.core.conditions.condition_reference import outcome

UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
WIDE = 2**53 - 1
SCOPES = ("agent", "workspace", "global")
KINDS = {"integer": int, "string": str, "ref": str, "boolean": bool}


class Refused(Exception):  # it is an answer, not a fault
    """The oracle's no, with the code."""


class World(NamedTuple):
    """All that is compiled into a gate, under the names that ``compile_gate`` has for it."""

    tools: Mapping[str, Tool]
    grants: Mapping[str, Grant]
    limits: Limits
    slots: Mapping[str, str]
    rules: Sequence[PolicyRule]
    windows: Sequence[Window]
    budgets: Sequence[Budget]
    policy: Policy

    def counts(self, scope: str, unit: str) -> list[Budget]:
        """The accounts of a scope that count a unit, the program's and the operator's."""
        both = (*self.budgets, *self.policy.budgets)
        return [each for each in both if (each.scope, each.unit) == (scope, unit)]


class Yes(NamedTuple):
    """The oracle's yes."""

    args: Args
    rules: tuple[str, ...]
    hold: str | None


def opinion(
    world: World, tool: str, given: Mapping[str, object], facts: Facts, accepts: Sequence[str]
) -> Yes | str:
    """What must come of a call: a yes, or the code of the refusal."""
    try:
        require(tool in world.grants, "CAP-001")
        in_force(world.grants[tool], facts)
        args = schema(world, world.tools[tool], given, facts.slots)
        for name, limit in world.grants[tool].where.items():
            require(allowed(limit, args[name], facts.slots), "CAP-006")
        rules, hold = policy(world, tool, args, facts)
        provenance(world.tools[tool], args, facts.slots)
        budgets(world, world.tools[tool], args, facts)
        require(tool in accepts, "CAP-002")
    except Refused as no:
        return str(no)
    return Yes(args, rules, hold)


def require(holds: bool, code: str) -> None:
    """Refuse under this code unless it holds."""
    if not holds:
        raise Refused(code)


def in_force(grant: Grant, facts: Facts) -> None:
    """A grant ends at its time, and with the grant it came from."""
    require(grant.expires_ms == 0 or facts.at_ms < grant.expires_ms, "CAP-007")
    for name in (grant_id(grant), *grant.narrowed_from):
        require(name not in facts.revoked, "CAP-008")


def schema(
    world: World, tool: Tool, given: Mapping[str, object], slots: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """Unknown, missing, placeholders, then type and bounds, in the schema's order."""
    require(all(name in tool.args for name in given), "CAP-003")
    require(all(name in given for name in tool.args), "CAP-004")
    filled = {name: placed(world, given[name], slots) for name in tool.args}
    found: dict[str, Scalar] = {}
    for name, spec in tool.args.items():
        source = tool.critical.get(name)
        slot = source.slot if source else ""
        found[name] = typed(spec, filled[name], slots.get(slot))
    return found


def placed(world: World, value: object, slots: Mapping[str, Scalar]) -> object:
    """The value of a shown slot for its placeholder; a placeholder for nothing is refused."""
    pattern = r"\{\{([a-z][a-z0-9_]*)\}\}"
    match = re.fullmatch(pattern, value) if isinstance(value, str) else None
    if match is None:
        return value
    name = match[1]
    shown = world.slots.get(name) in ("clear", "placeholder", "text") and name in slots
    require(shown, "CAP-005")
    inner = slots[name]
    require(not (isinstance(inner, str) and re.fullmatch(pattern, inner)), "CAP-005")
    return inner


def typed(spec: ArgSpec, value: object, known: Scalar | None) -> Scalar:
    """A value of the schema's type, within its bounds."""
    require(type(value) is KINDS[spec.type], "CAP-005")
    assert isinstance(value, int | str)
    if spec.type == "ref":
        named = re.fullmatch(f"vault://secret/{UUID4}", str(value))
        require(bool(named) or (isinstance(known, str) and known == value), "CAP-005")
    if isinstance(value, str):
        require(len(value) <= spec.length_max, "CAP-006")
    elif spec.type == "integer":
        low = -WIDE if spec.min is None else spec.min
        require(low <= value <= (WIDE if spec.max is None else spec.max), "CAP-006")
    if spec.one_of is not None:
        require(any(equal(value, option) for option in spec.one_of), "CAP-006")
    return value


def equal(one: object, other: object) -> bool:
    """Of one type, and equal."""
    return type(one) is type(other) and one == other


def allowed(limit: Constraint, value: Scalar, slots: Mapping[str, Scalar]) -> bool:
    """Whether a value lies within every bound of a grant."""
    number = value if type(value) is int else None
    return (
        (limit.one_of is None or any(equal(value, option) for option in limit.one_of))
        and (limit.min is None or (number is not None and limit.min <= number))
        and (limit.max is None or (number is not None and number <= limit.max))
        and (limit.prefix is None or str.startswith(str(value), limit.prefix))
        and (limit.prefix is None or type(value) is str)
        and (limit.equals_slot is None or equal(slots.get(limit.equals_slot), value))
    )


def policy(
    world: World, tool: str, args: Mapping[str, Scalar], facts: Facts
) -> tuple[tuple[str, ...], str | None]:
    """Deny over suspend over hold over allow; any error denies; what nothing allows is denied."""
    context = said(world, tool, args, facts)
    fired: list[PolicyRule] = []
    lifted = world.policy.lifts
    lifts = [rule for rule in world.rules if rule.level == "soft" and rule.id in lifted]
    for rule in (*world.rules, *world.policy.rules):
        if rule in lifts or (rule.tools and tool not in rule.tools):
            continue
        found = outcome(rule.when.text, context)
        require(isinstance(found, bool), "POL-002")
        fired += [rule] if found else []
    require(not any(rule.outcome == "deny" for rule in fired), "POL-003")
    stops = tuple(rule.id for rule in fired if rule.outcome == "suspend")
    require(len(fired) > len(stops), "POL-001")
    if stops:
        return stops, stops[0]
    waits = [
        rule
        for rule in fired
        if rule.outcome == "hold" and not (rule.approvable and rule.id in facts.approved)
    ]
    if waits:
        return (waits[0].id,), waits[0].id
    return tuple(rule.id for rule in fired), None


def said(world: World, tool: str, args: Mapping[str, Scalar], facts: Facts) -> Mapping[str, object]:
    """What rules at authorize may read."""
    currency = cost(world.tools[tool], args)[0]
    named = re.fullmatch("[A-Z]{3}", currency)
    left = facts.ledger.get(f"workspace/{currency}") if named else None
    return {
        "slots": facts.slots,
        "proposal": args,
        "tool": tool,
        "agent": facts.agent,
        "workspace": {} if left is None else {"left_minor": left},
        "run": {"calls": facts.used.get("calls", 0), "refused": facts.refused},
    }


def provenance(tool: Tool, args: Mapping[str, Scalar], slots: Mapping[str, Scalar]) -> None:
    """Each critical argument is its slot's value, or the program's constant."""
    for name, source in tool.critical.items():
        known = slots.get(source.slot) if source.slot else source.constant
        require(known is not None and equal(known, args[name]), "POL-010")


def cost(tool: Tool, args: Mapping[str, Scalar]) -> tuple[str, int]:
    """The currency and the amount of a call; an empty currency moves no money."""
    if tool.money is None:
        return "", 0
    currency = str(args[tool.money.currency]) if tool.money.currency else tool.money.currency_is
    return currency, int(args[tool.money.amount])


def budgets(world: World, tool: Tool, args: Mapping[str, Scalar], facts: Facts) -> None:
    """One call and its money, of the run's own limits and of every shared account."""
    require(facts.used.get("calls", 0) < world.limits.calls_max, "BUD-002")
    for scope in SCOPES:
        if world.counts(scope, "calls"):
            require(facts.ledger.get(f"{scope}/calls", 0) >= 1, "BUD-002")
    if tool.money is not None and cost(tool, args)[1]:
        money(world, *cost(tool, args), facts)
    ran_ms = facts.at_ms - facts.started_ms if facts.started_ms else 0
    require(ran_ms < world.limits.wall_ms_max, "BUD-005")


def money(world: World, currency: str, amount: int, facts: Facts) -> None:
    """Three capital letters, more than nothing, covered by the run and by every scope's account."""
    require(re.fullmatch("[A-Z]{3}", currency) is not None, "BUD-006")
    pots = {scope: world.counts(scope, "money") for scope in SCOPES}
    require(any(pots.values()), "BUD-006")
    for mine in pots.values():
        require(not mine or any(each.currency in ("", currency) for each in mine), "BUD-006")
    left = world.limits.money_minor_max - facts.used.get(currency, 0)
    require(0 < amount <= left, "BUD-001")
    for scope, mine in pots.items():
        if mine:
            account = facts.ledger.get(f"{scope}/{currency}")
            require(account is not None, "BUD-006")
            require(amount <= (account or 0), "BUD-001")
