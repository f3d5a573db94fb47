"""The shortcut: one pass that lets the usual good call through, and says nothing of any other.

It decides nothing of its own. What it lets through, ``Passage.judge`` lets through with the same
answer; whatever it does not see to be good, the judge decides. So each part of a plan may be
narrower than what it stands for, and never wider.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from nanovm_core.conditions.syntax import COMPARISONS, LITERAL, VARIABLE, Node, tree, upwards
from nanovm_core.core.arguments import ArgSpec, Constraint
from nanovm_core.core.budget import CALLS, USUAL, Accounts
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.gate.tool_guard import Allowed, Facts, Passage
from nanovm_core.core.messages import Args
from nanovm_core.core.policy import ALLOW, RECORDS_MAX, PolicyRule, Window
from nanovm_core.errors import ConditionError

Affordable = Callable[[Args, Mapping[str, int], Mapping[str, int]], bool]
Quick = Callable[[Any, Facts], Allowed | None]  # a call's arguments, and what it may know

_ANY = range(-INTEGER_MAX, INTEGER_MAX + 1)
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "contains": "in"}
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Demand(NamedTuple):
    """What must be true of one variable: it is of this type, and among these values, or not."""

    root: str
    name: str
    kind: type
    values: Container[object]
    among: bool = True


class Plan(NamedTuple):
    """What the pass looks at; each integer and each text is an argument with its slot."""

    integers: tuple[tuple[str, str, range], ...]
    texts: tuple[tuple[str, str, int, str | None], ...]  # and the placeholder for it
    slots: tuple[tuple[str, type, Container[object], bool], ...]  # demands
    allowed: tuple[str, ...]  # the one allow rule, where the demands are its condition
    others: tuple[PolicyRule, ...]  # the rules that are asked in full
    watching: tuple[PolicyRule, ...]  # those that only a history can set off,
    quiet: int  # and one of more records than these


def shortcut(passage: Passage) -> Quick:
    """The pass for one tool; for a tool of an unusual shape one that says nothing."""
    plan = _plan(passage)
    return _quick(passage, plan) if plan is not None else lambda _, __: None


def affordable(passage: Passage, accounts: Accounts) -> Affordable:
    """Whether a call is covered by what it usually draws on; a no says nothing."""
    money = passage.tool.money
    calls_max, shared = accounts.of(CALLS)
    if money is None or not money.currency:
        return lambda _, __, ___: False
    amount_name, currency_name = money.amount, money.currency
    covered = {currency: accounts.of(currency) for currency in USUAL if accounts.covers(currency)}
    pockets = MappingProxyType(covered)

    def covers(args: Any, ledger: Mapping[str, int], used: Mapping[str, int]) -> bool:
        amount, currency = args[amount_name], args[currency_name]
        found = pockets.get(currency)
        if found is None or used.get(CALLS, 0) >= calls_max:
            return False
        for name in shared:
            if ledger.get(name, 0) < 1:
                return False
        limit, names = found
        for name in names:
            if ledger.get(name, 0) < amount:
                return False
        return bool(0 < amount <= limit - used.get(currency, 0))

    return covers


def _quick(passage: Passage, plan: Plan) -> Quick:  # noqa: C901  # a call costs what a check does
    size, expires_ms, new = len(passage.tool.args), passage.grant.expires_ms, tuple.__new__
    integers, texts, demands, allowed, others, watching, quiet = plan
    asked = (*others, *watching)

    def quick(given: Any, facts: Facts) -> Allowed | None:  # noqa: C901
        if len(given) != size or facts.revoked or (expires_ms and facts.at_ms >= expires_ms):
            return None
        slots, form = facts.slots, type(given)
        args = given.copy() if form is dict or form is MappingProxyType else dict(given)
        value: Any
        known: Any
        try:
            for name, slot, values in integers:
                value, known = args[name], slots[slot]
                if type(value) is not int or value not in values:
                    return None
                if value != known or type(known) is not int:
                    return None
            for name, slot, length, placeholder in texts:
                value, known = args[name], slots[slot]
                if placeholder is not None and value == placeholder:
                    args[name] = value = known
                if value != known or type(value) is not str or len(value) > length:
                    return None
                if value >= "{{" and value[:2] == "{{":
                    return None
            for name, kind, among, wanted in demands:
                known = slots[name]
                if type(known) is not kind or (known in among) is not wanted:
                    return None
        except KeyError:
            return None
        rules = allowed
        if others or (watching and len(facts.history) > quiet):
            rules = _asked(passage, asked, facts, args, allowed)
        return new(Allowed, (MappingProxyType(args), rules, None)) if rules else None

    return quick


def _asked(
    passage: Passage,
    rules: Iterable[PolicyRule],
    facts: Facts,
    args: Args,
    allowed: tuple[str, ...],
) -> tuple[str, ...]:
    """The rules that allow, those among these too; none where one of these is against it."""
    context = passage.reads(facts, args)
    for rule in rules:
        try:
            fires = rule.when.run(context)
        except ConditionError:
            return ()
        if fires and rule.outcome != ALLOW:
            return ()
        allowed += (rule.id,) if fires else ()
    return allowed


# --- the plan --------------------------------------------------------------------------------


def _plan(passage: Passage) -> Plan | None:
    """The plan for a tool whose every argument is a number or a text from a slot."""
    tool = passage.tool
    slots = {name: source.slot for name, source in tool.critical.items() if source.slot}
    demands: list[Demand] = []
    for name, spec in tool.args.items():
        found = _bounds(name, spec, passage.grant.where.get(name, Constraint()), slots.get(name))
        if found is None:
            return None
        demands += found
    allows = [rule for rule in passage.rules if rule.outcome == ALLOW]
    allowed: tuple[str, ...] = ()
    others, watching, quiet = [], [], RECORDS_MAX
    for rule in passage.rules:
        wanted = rule.outcome == ALLOW
        found = None if wanted and len(allows) > 1 else _condition(rule, wanted, set(slots))
        if found is not None:
            demands += found
            allowed += (rule.id,) if wanted else ()
        elif not wanted and (most := _quiet(rule, passage.windows)) >= 0:
            watching.append(rule)
            quiet = min(quiet, most)
        else:
            others.append(rule)
    return _placed(passage, slots, demands)._replace(
        allowed=allowed, others=tuple(others), watching=tuple(watching), quiet=quiet
    )


def _placed(passage: Passage, slots: Mapping[str, str], demands: Iterable[Demand]) -> Plan:
    """Every demand where it costs least: on a number as its range, on a text as its slot's."""
    args = passage.tool.args
    ranges = {name: _ANY for name, spec in args.items() if spec.type == "integer"}
    rest: list[tuple[str, type, Container[object], bool]] = []
    for root, name, kind, values, among in demands:
        if root == "proposal" and name in ranges and isinstance(values, range):
            known = ranges[name]
            ranges[name] = range(max(known.start, values.start), min(known.stop, values.stop))
        else:
            rest.append((slots[name] if root == "proposal" else name, kind, values, among))
    return Plan(
        integers=tuple((name, slots[name], values) for name, values in ranges.items()),
        texts=tuple(
            (name, slots[name], spec.length_max, passage.sanitizer.placeholder(slots[name]))
            for name, spec in args.items()
            if name not in ranges
        ),
        slots=tuple(rest),
        allowed=(),
        others=(),
        watching=(),
        quiet=0,
    )


def _bounds(name: str, spec: ArgSpec, limit: Constraint, slot: str | None) -> list[Demand] | None:
    """What schema and grant demand of an argument from a slot; None where that is unusual."""
    number = spec.type == "integer"
    if slot is None or spec.type == "boolean" or limit.prefix is not None:
        return None
    if limit.equals_slot not in (None, slot) or not (number or limit.min is limit.max is None):
        return None
    kind = int if number else str
    found = []
    for options in (spec.one_of, limit.one_of):
        if options is not None:
            mine = frozenset(option for option in options if type(option) is kind)
            found.append(Demand("proposal", name, kind, mine))
    if number:
        found += [
            Demand("proposal", name, int, _between(bound.min, bound.max)) for bound in (spec, limit)
        ]
    return found


def _between(low: int | None, high: int | None) -> range:
    return range(
        -INTEGER_MAX if low is None else low, INTEGER_MAX + 1 if high is None else high + 1
    )


def _condition(rule: PolicyRule, holds: bool, args: set[str]) -> list[Demand] | None:
    """The demands that say together that a rule's condition holds, or does not."""
    waiting, found = [(tree(rule.when.text), holds)], []
    while waiting:
        node, wanted = waiting.pop()
        if node.kind == "not":
            waiting.append((node.children[0], not wanted))
        elif node.kind == ("and" if wanted else "or"):
            waiting += [(child, wanted) for child in node.children]
        else:
            demand = _comparison(node, wanted)
            if demand is None or not (
                demand.root == "slots" or (demand.root == "proposal" and demand.name in args)
            ):
                return None
            found.append(demand)
    return found


def _comparison(node: Node, wanted: bool) -> Demand | None:
    """The demand that one comparison of a variable with a literal is, or is not, true."""
    if node.kind == VARIABLE and len(node.path) == 2:
        return Demand(node.path[0], node.path[1], bool, frozenset({True}), wanted)
    if node.kind not in COMPARISONS:
        return None
    sign, (left, right) = node.kind, node.children
    if left.kind == LITERAL:
        sign, left, right = _MIRRORED.get(sign, ""), right, left
    if left.kind != VARIABLE or right.kind != LITERAL or len(left.path) != 2:
        return None
    (root, name), literal = left.path, right.value
    if sign in _OPPOSITE and type(literal) is int:
        return Demand(root, name, int, _ordered(sign if wanted else _OPPOSITE[sign], literal))
    if sign in ("==", "!=") and not isinstance(literal, tuple):
        return Demand(root, name, type(literal), frozenset({literal}), wanted is (sign == "=="))
    if sign in ("in", "not in") and isinstance(literal, tuple) and literal:
        options = frozenset(literal)
        return Demand(root, name, type(literal[0]), options, wanted is (sign == "in"))
    return None


def _ordered(sign: str, number: int) -> range:
    """The integers that stand so to a number."""
    if sign in ("<", "<="):
        return _between(None, number if sign == "<=" else number - 1)
    return _between(number if sign == ">=" else number + 1, None)


def _quiet(rule: PolicyRule, windows: tuple[Window, ...]) -> int:
    """How many records there may be before a rule over history alone could fire; -1 is none.

    No window counts more than there are; and of an ``and`` it is enough that one part is quiet.
    """
    known, bounds = {window.name for window in windows}, [-1]
    for node in upwards(tree(rule.when.text)):
        parts = len(node.children)
        if node.kind in COMPARISONS:
            demand = _comparison(node, False)
            if demand is None or demand.root != "history" or demand.name not in known:
                return -1
            most = demand.values.stop - 1 if isinstance(demand.values, range) else -1
            bounds.append(most if 0 in demand.values else -1)
        elif node.kind in ("and", "or") and all(child.children for child in node.children):
            mine, bounds = bounds[-parts:], bounds[:-parts]
            bounds.append(max(mine) if node.kind == "and" else min(mine))
        elif node.kind not in (VARIABLE, LITERAL):
            return -1
    return bounds[-1]
