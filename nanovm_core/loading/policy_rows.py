"""Rules, windows, budgets and examples, as rows of a program or a policy file say them."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from nanovm_core.conditions import TEXT_CHARS_MAX, Condition, parse
from nanovm_core.core.budget import MONEY, SCOPES, UNITS, Budget
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.policy import (
    ADMISSION,
    AUTHORIZE,
    COUNTS,
    HARD,
    HOLD,
    IN_A_ROW,
    LEVELS,
    OUTCOMES,
    SOFT,
    STAGES,
    UNKNOWN_OUTCOME,
    WINDOW_SCOPES,
    WORKSPACE,
    Example,
    PolicyRule,
    Window,
)
from nanovm_core.errors import ConditionError
from nanovm_core.loading.strict_toml import IDENTIFIER, NAME, Row

RULES_MAX, WINDOWS_MAX, BUDGETS_MAX, EXAMPLES_MAX = 256, 64, 64, 1_024
DAYS_30_MS = 2_592_000_000  # no window, time-out or back-off is longer
CURRENCY = re.compile(r"[A-Z]{3}")  # ISO 4217
_RULE_KEYS = ("id", "at", "outcome", "approvable", "tools", "when", "why")
_FALSE = parse("false")  # stands in for a condition that is at fault; no program keeps it


def rules(root: Row, *, leveled: bool) -> tuple[PolicyRule, ...]:
    """The rules of a file: a program's have a level, an operator's are soft by being there."""
    found: dict[str, PolicyRule] = {}
    for row in root.rows("rules", "rule", RULES_MAX):
        rule = _rule(row, leveled)
        if rule.id in found:
            row.fault("id", f"another rule has the id {rule.id!r}: rename one", "PRG-002")
        found.setdefault(rule.id, rule)
    return tuple(found.values())


def windows(root: Row) -> tuple[Window, ...]:
    """The windows of a file."""
    found: dict[str, Window] = {}
    for row in root.rows("windows", "window", WINDOWS_MAX):
        window = _window(row)
        if window.name in found:
            row.fault("name", f"another window is called {window.name!r}: rename one", "PRG-002")
        found.setdefault(window.name, window)
    return tuple(found.values())


def budgets(root: Row) -> tuple[Budget, ...]:
    """The shared accounts of a file."""
    found: dict[tuple[str, str, str], Budget] = {}
    for row in root.rows("budgets", "budget", BUDGETS_MAX):
        row.only(("scope", "unit", "max", "currency"))
        budget = Budget(
            scope=row.text("scope", among=SCOPES),
            unit=row.text("unit", among=UNITS),
            max=row.integer("max", 0, INTEGER_MAX),
            currency=row.text("currency", "", like=CURRENCY),
        )
        if budget.currency and budget.unit != MONEY:
            row.fault("currency", f"only money has a currency, and this counts {budget.unit}")
        key = (budget.scope, budget.unit, budget.currency)
        if key in found:
            row.fault("scope", "another budget has this scope, unit and currency", "PRG-002")
        found.setdefault(key, budget)
    return tuple(found.values())


def examples(root: Row) -> tuple[Example, ...]:
    """What the author of a policy expects of it."""
    found: dict[str, Example] = {}
    for row in root.rows("examples", "example", EXAMPLES_MAX):
        row.only(("name", "given", "expect", "rule", "at"))
        example = Example(
            name=row.text("name"),
            given=_given(row.row("given", row.what)),
            expect=row.text("expect", among=OUTCOMES),
            rule=row.text("rule", "", like=NAME),
            at=row.text("at", AUTHORIZE, among=STAGES),
        )
        if example.name in found:
            row.fault("name", f"another example is called {example.name!r}: rename one", "PRG-002")
        found.setdefault(example.name, example)
    return tuple(found.values())


def condition(row: Row, key: str) -> Condition:
    """A parsed condition; where it does not parse, the fault points into it."""
    text = row.text(key, chars_max=TEXT_CHARS_MAX)
    try:
        return parse(text) if text else _FALSE
    except ConditionError as error:
        said = f"{row.what}: {key}: {error.text}"
        row.sheet.fault_within((*row.path, key), said, "PRG-004", text, error.position or 0)
        return _FALSE


def _rule(row: Row, leveled: bool) -> PolicyRule:
    name = row.text("id", like=NAME)
    row = row._replace(what=f"rule {name}" if name else row.what)
    row.only((*_RULE_KEYS, "level") if leveled else _RULE_KEYS)
    rule = PolicyRule(
        id=name,
        level=row.text("level", HARD, among=LEVELS) if leveled else SOFT,
        at=row.text("at", among=STAGES),
        outcome=row.text("outcome", among=OUTCOMES),
        approvable=row.flag("approvable", False),
        tools=frozenset(row.names("tools")),
        when=condition(row, "when"),
        why=row.text("why"),
    )
    if name == UNKNOWN_OUTCOME:
        row.fault("id", f"{name!r} is the runtime's own hold: choose another id")
    if rule.approvable and rule.outcome != HOLD:
        row.fault("approvable", f"a person lifts a hold, and this rule says {rule.outcome}")
    if "tools" in row.table and (rule.at == ADMISSION or not rule.tools):
        row.fault("tools", "names the tools that a rule at authorize is about, one or more")
    return rule


def _window(row: Row) -> Window:
    row.only(("name", "counts", "within_ms", "scope"))
    counts = row.text("counts", among=COUNTS)
    within_ms = 0
    if counts != IN_A_ROW:
        within_ms = row.integer("within_ms", 1, DAYS_30_MS)
    elif "within_ms" in row.table:
        row.fault("within_ms", f"{IN_A_ROW} reads the end of the history, however long: leave it")
    return Window(
        name=row.text("name", like=IDENTIFIER),
        counts=counts,
        within_ms=within_ms,
        scope=row.text("scope", WORKSPACE, among=WINDOW_SCOPES),
    )


def _given(row: Row) -> Mapping[str, object]:
    row.only(("slots", "tool", "proposal", "history", "workspace", "agent"))
    given: dict[str, object] = {key: row.text(key) for key in ("tool", "agent") if key in row.table}
    for key in ("slots", "proposal", "history", "workspace"):
        if key in row.table:
            given[key] = MappingProxyType(dict(_scalars(row.row(key, row.what))))
    return MappingProxyType(given)


def _scalars(row: Row) -> Iterator[tuple[str, object]]:
    for name in row.table:
        value = row.scalar(name)
        if value is not None:
            yield name, value
