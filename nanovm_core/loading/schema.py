"""The schema of program and policy files: their tables, read into the core's dataclasses.

A field's type says how its key is read (``_BY_TYPE``), and where that is not enough, its name.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeVar

from nanovm_core import agents
from nanovm_core.conditions import Condition
from nanovm_core.core import program
from nanovm_core.core.authority import budget, policy, windows
from nanovm_core.core.authority.arguments import DECIMAL, ITEMS, KINDS, LIST
from nanovm_core.core.authority.capabilities import ArgSpec, Constraint, Grant, Money, Source, Tool
from nanovm_core.core.authority.origin import ORIGINS
from nanovm_core.core.authority.windows import Rate, Window
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.messages import NOTHING, Scalar, Value
from nanovm_core.core.projection import MODES
from nanovm_core.decimals import DIGITS_MAX
from nanovm_core.loading import readers as of
from nanovm_core.loading.readers import CURRENCY, HASH, IDENTIFIER, NAME, SLOT_NAME, Reader
from nanovm_core.loading.strict_toml import Row

SLOTS_MAX, TOOLS_MAX, ARGS_MAX, GRANTS_MAX = 1_024, 256, 64, 256
RULES_MAX, WINDOWS_MAX, FACTS_MAX, BUDGETS_MAX, EXAMPLES_MAX = 256, 64, 64, 64, 1_024
STEPS_MAX, BRANCHES_MAX = 10_000, 64
ATTEMPTS_MAX, PROPOSALS_MAX = 100, 1_000
ARGUMENT_CHARS_MAX = 65_536  # a proposal is smaller
ITEMS_MAX = 1_024  # of a list: a proposal has no room for many more
WARRANT_TTL_MS_MAX = 86_400_000
DAYS_30_MS = 2_592_000_000  # no window, time-out or back-off is longer
TIMEOUT_MS, TOKENS = 300_000, 8_192  # of a step that names none

T = TypeVar("T")
_EFFECT, _MODEL, _PURE, _WAIT = program.EFFECT, program.MODEL, program.PURE, program.WAIT
_OUTSIDE = ("on_error", "timeout_ms", "retry", "tool", "args")
_KEYS_OF = {
    _EFFECT: (*_OUTSIDE, "call", "fills", "endorses", "drops"),
    _MODEL: (*_OUTSIDE, "accepts", "tokens_max"),
    _PURE: ("on_error", "authorizes"),
    _WAIT: ("on_error", "timeout_ms", "fills", "endorses"),
}
# A kind of step without keys here fails the import: KeyError.
_KEYS = {kind: ("name", "kind", "next", *_KEYS_OF[kind]) for kind in program.KINDS}
_ANY = ("type", "optional", "default")
_BOUNDS = {
    "ref": _ANY,
    "string": (*_ANY, "length_max", "plain", "one_of"),
    "integer": (*_ANY, "min", "max", "one_of"),
    "boolean": (*_ANY, "one_of"),
    DECIMAL: (*_ANY, "min", "max", "one_of", "currency", "digits"),
    LIST: (*_ANY, "of", "items_max"),  # and those of its items
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A program file as it was read, before it is checked."""

    first: str
    name: str
    agent: str = ""
    limits: budget.Limits
    slots: Mapping[str, program.Slot]
    tools: Mapping[str, Tool]
    grants: Mapping[str, Grant]
    steps: Mapping[str, program.Step]
    rules: tuple[policy.PolicyRule, ...]
    windows: tuple[Window, ...]
    facts: tuple[policy.Fact, ...]
    budgets: tuple[budget.Budget, ...]
    policy: str = ""  # the last field: until here the name is the module

    @property
    def acting(self) -> str:
        """The agent of its runs: the named one, else one that is called as the program is."""
        return self.agent or self.name.lower().replace("_", "-")


def read(
    kind: Callable[..., T],
    row: Row,
    known: Collection[str] = (),
    usual: Mapping[str, object] = NOTHING,
    /,
    **given: object,
) -> T:
    """A dataclass from a table: each field that is not ``given``, from the key of its name.

    ``known`` are the keys that the table may have: those fields, unless it names others.
    ``usual`` are other defaults than the dataclass has; MISSING is none.
    """
    readers = _readers(kind)
    row.only(known or readers.keys() - given.keys())
    values = dict(given)
    for name in (name for name in readers if name not in given):
        reader, default = readers[name]
        default = usual.get(name, default)
        absent = name not in row.table and default is not MISSING
        values[name] = default if absent else reader(row, name, default)
    return kind(**values)


@cache
def _readers(kind: Any) -> Mapping[str, tuple[Reader, object]]:
    """How each field of a dataclass is read, and its default."""
    by_name = {each.name: f"{kind.__name__}.{each.name}" for each in fields(kind) if each.init}
    return {
        each.name: (
            _BY_NAME.get(by_name[each.name]) or _BY_NAME.get(each.name) or _BY_TYPE[each.type],
            each.default,
        )
        for each in fields(kind)
        if each.init
    }


def keys_of(kind: type) -> tuple[str, ...]:
    """The keys of a dataclass's fields."""
    return tuple(_readers(kind))


def _named(row: Row, key: str, what: str) -> tuple[str, Row]:
    """The name of a row, and the row as it is called by it."""
    name = of.text(NAME)(row, key, MISSING)
    return name, row._replace(what=f"{what} {name}" if name else row.what)


# --- rules, windows, budgets, examples -------------------------------------------------------


def _rule(row: Row) -> policy.PolicyRule:
    """A rule of a program; a policy's has no level, and is soft."""
    name, row = _named(row, "id", "rule")
    soft = {"level": policy.SOFT} if row.sheet.what == "policy" else {}
    keys = [key for key in keys_of(policy.PolicyRule) if key not in soft]
    rule = read(policy.PolicyRule, row, keys, {"level": policy.HARD}, id=name, **soft)
    if name in policy.OWN_HOLDS:
        row.fault("id", f"{name!r} is the runtime's own hold: choose another id")
    if rule.approvable and rule.outcome != policy.HOLD:
        row.fault("approvable", f"a person lifts a hold, and this rule says {rule.outcome}")
    if "again_from" in row.table and not (rule.approvable and rule.at == policy.ADMISSION):
        row.fault("again_from", "is for a hold at admission that a person can approve")
    if "tools" in row.table and (rule.at == policy.ADMISSION or not rule.tools):
        row.fault("tools", "names the tools that a rule at authorize is about, one or more")
    if rule.at == policy.OUTCOME and rule.outcome in {*policy.OUTCOMES} - {policy.SUSPEND}:
        row.fault("outcome", f"the call has ended: at outcome a rule can only {policy.SUSPEND}")
    return rule


def _example(row: Row) -> policy.Example:
    example = read(policy.Example, row)
    if example.at == policy.OUTCOME and example.expect in (policy.HOLD, policy.DENY):
        row.fault("expect", f"a call that has ended can only {policy.SUSPEND}, or allow to go on")
    return example


def _window(row: Row) -> Window:
    counts = row.table.get("counts")
    usual = {"within_ms": 0 if counts == windows.IN_A_ROW else MISSING}
    if counts == windows.IN_A_ROW and "within_ms" in row.table:
        why = "reads the end of the history, however long: leave it"
        row.fault("within_ms", f"{windows.IN_A_ROW} {why}")
    if counts == windows.REFUSALS and "tool" in row.table:
        row.fault("tool", "a refused proposal may name any tool, or none: leave it")
    if (counts == windows.SPENT) != ("currency" in row.table):
        why = "spent needs a currency, and what counts no money has none"
        row.fault("currency", why)
    return read(Window, row, (), usual)


def _budget(row: Row) -> budget.Budget:
    found = read(budget.Budget, row)
    if found.currency and found.unit != budget.MONEY:
        row.fault("currency", f"only money has a currency, and this counts {found.unit}")
    if found.unit == budget.WALL and found.scope != budget.AGENT:
        row.fault("scope", f"a clock is an agent's: say scope = {budget.AGENT!r}")
    return found


def _given(row: Row) -> Mapping[str, object]:
    """What an example gives: texts, and tables of values."""
    readers = dict.fromkeys(
        ("slots", "origin", "proposal", "history", "workspace", "result"), _VALUES
    )
    readers |= dict.fromkeys(("tool", "agent"), of.text())
    row.only(readers)
    given = {key: readers[key](row, key, MISSING) for key in readers if key in row.table}
    return MappingProxyType(given)


def _values(row: Row) -> Mapping[str, Scalar]:
    found = {name: of.scalar(row, name, None) for name in row.table}
    return MappingProxyType({name: value for name, value in found.items() if value is not None})


_VALUES = of.table(_values, "{}")


# --- tools and grants ------------------------------------------------------------------------


def _tool(row: Row) -> Tool:
    if "pinned" in row.table and "at" not in row.table:
        row.fault("pinned", "it is what an upstream says of the tool: name that with at = …")
    return read(Tool, row, name=row.path[-1])


def _argument(row: Row) -> ArgSpec:
    if "default" in row.table and row.table.get("optional") is not True:
        row.fault("default", "only what may be left out has a default: add optional = true")
    kind = str(row.table.get("type"))
    item = str(row.table.get("of")) if kind == LIST else kind
    if kind == LIST and "of" not in row.table:
        row.fault("of", f"say of what: of = one of {', '.join(ITEMS)}")
    if item == DECIMAL and ("currency" in row.table) == ("digits" in row.table):
        row.fault("digits", "a decimal has either a currency or digits after its point")
    return read(ArgSpec, row, {*_BOUNDS.get(kind, ()), *_BOUNDS.get(item, ())})


def _type(among: Collection[str], row: Row, key: str, default: object) -> str:
    """A type's name; empty after a fault."""
    kind: str = of.text(among=among)(row, key, default)
    return kind if kind in among else ""


def _source(row: Row, key: str, _: object) -> Source:
    """What a critical argument must equal: a slot, ``{ slot, origin }`` or ``{ constant = … }``."""
    if not isinstance(row.table[key], Mapping):
        return Source(slot=of.text(SLOT_NAME)(row, key, MISSING))
    inner = row.row(key, f"{row.what}: critical {key}")
    if "slot" in inner.table:
        return read(Source, inner, ("slot", "origin"), constant=None)
    if "constant" not in inner.table:
        inner.fault("constant", "say which: { constant = … } or { slot = … }")
    return read(Source, inner, ("constant",), slot="", origin="")


def _money(row: Row) -> Money:
    if ("currency" in row.table) == ("currency_is" in row.table):
        row.fault("currency_is", "money needs either currency (an argument) or currency_is")
    return read(Money, row)


def _grant(row: Row) -> Grant:
    tool, row = _named(row, "tool", "the grant of")
    return read(Grant, row, ("tool", "where", "expires_ms", "rate"), tool=tool, narrowed_from=())


# --- steps -----------------------------------------------------------------------------------


def _step(row: Row) -> program.Step:
    name, row = _named(row, "name", "step")
    if name in (program.COMPLETED, program.FAILED):
        row.fault("name", "this is where runs end: rename the step", "PRG-002")
    kind = of.text(among=program.KINDS)(row, "kind", MISSING)
    known = _step_keys(row, kind) if kind in _KEYS else tuple(row.table)
    given: dict[str, object] = {key: 0 for key in ("timeout_ms", "tokens_max") if key not in known}
    usual = {"timeout_ms": MISSING if kind == _WAIT else TIMEOUT_MS, "tokens_max": TOKENS}
    return read(program.Step, row, known, usual, name=name, kind=kind, **given)


def _step_keys(row: Row, kind: str) -> tuple[str, ...]:
    """The keys of a step of this kind; a fault for each that it needs and lacks."""
    if kind == _MODEL and "fills" in row.table:
        row.fault("fills", "a model fills no slot: what it says stays a proposal", "PRG-002")
    if kind != _PURE and "on_error" not in row.table:
        why = 'no failure path: say where it leads when it fails, as in on_error = "failed"'
        row.fault("on_error", why, "PRG-002")
    if kind == _MODEL and "tool" not in row.table:
        row.fault("tool", "say which tool asks the model", "PRG-002")
    if kind == _EFFECT and ("tool" in row.table) == ("call" in row.table):
        why = f"an effect has either a tool, or call = {program.AUTHORIZED!r}"
        row.fault("call", why, "PRG-002")
    return (*_KEYS[kind], "fills") if kind == _MODEL else _KEYS[kind]


def _next(row: Row, key: str, _: object) -> tuple[program.Branch, ...]:
    """Where a step leads: one target, or guarded ones of which the last has no guard."""
    if not isinstance(row.table.get(key), list):
        to = of.text(NAME)(row, key, MISSING)
        return (program.Branch(to=to),) if to else ()
    branches = list(row.rows(key, f"{row.what}: branch", BRANCHES_MAX))
    for place, branch in enumerate(branches, 1):
        if ("when" in branch.table) != (place < len(branches)):
            why = "every branch but the last needs a `when`, and the last has none: it is the rest"
            branch.fault("when", why, "PRG-002")
    if not branches:
        row.fault(key, "name at least one target")
    return tuple(read(program.Branch, branch) for branch in branches)


def _retry(row: Row) -> program.Retry:
    retry = read(program.Retry, row)
    if retry.backoff_ms > retry.backoff_max_ms:
        why = f"it would wait {retry.backoff_ms} ms, and at most {retry.backoff_max_ms}"
        row.fault("backoff_ms", f"{why}: raise backoff_max_ms", "PRG-002")
    return retry


# --- fields ----------------------------------------------------------------------------------

_BY_TYPE: Mapping[Any, Reader] = {
    bool: of.flag,
    int: of.integer(1, INTEGER_MAX),
    int | None: of.integer(-INTEGER_MAX, INTEGER_MAX),
    str: of.text(NAME),
    str | None: of.text(),
    Scalar | None: of.scalar,
    Value | None: of.value,
    tuple[Scalar, ...] | None: of.scalars,
    tuple[str, ...]: of.names,
    frozenset[str]: lambda row, key, default: frozenset(of.names(row, key, default)),
    Mapping[str, str]: of.each(of.text(NAME)),
    Mapping[str, Source]: of.each(_source),
    Mapping[str, object]: of.table(_given, "{}"),
    Condition: of.condition,
    Condition | None: of.condition,
    Money | None: of.table(_money, "{}"),
    Rate | None: of.table(partial(read, Rate), "{}: rate"),
    program.Retry: of.table(_retry, "{}: retry"),
    budget.Limits: of.table(partial(read, budget.Limits), "limits"),
    tuple[program.Branch, ...]: _next,
    Mapping[str, program.Slot]: of.tables(
        partial(read, program.Slot), "slot {1}", SLOT_NAME, SLOTS_MAX
    ),
    Mapping[str, Tool]: of.tables(_tool, "tool {1}", NAME, TOOLS_MAX),
    Mapping[str, ArgSpec]: of.tables(_argument, "{}: argument {}", IDENTIFIER, ARGS_MAX),
    Mapping[str, Constraint]: of.tables(partial(read, Constraint), "{}: {}"),
    Mapping[str, Grant]: of.rows(_grant, "grant", GRANTS_MAX, "tool", keyed="the grant of {}"),
    Mapping[str, program.Step]: of.rows(_step, "step", STEPS_MAX, "name", keyed="step {}"),
    tuple[policy.PolicyRule, ...]: of.rows(_rule, "rule", RULES_MAX, "id"),
    tuple[Window, ...]: of.rows(_window, "window", WINDOWS_MAX, "name"),
    tuple[policy.Fact, ...]: of.rows(partial(read, policy.Fact), "fact", FACTS_MAX, "name"),
    tuple[policy.Example, ...]: of.rows(_example, "example", EXAMPLES_MAX, "name"),
    tuple[budget.Budget, ...]: of.rows(_budget, "budget", BUDGETS_MAX, "scope", "unit", "currency"),
}
_BY_NAME: Mapping[str, Reader] = {  # a field of all dataclasses, or of one
    **dict.fromkeys(
        ("wall_ms_max", "approval_ttl_ms", "within_ms", "timeout_ms"), of.integer(1, DAYS_30_MS)
    ),
    **dict.fromkeys(("backoff_ms", "backoff_max_ms"), of.integer(0, DAYS_30_MS)),
    **dict.fromkeys(("Budget.max", "expires_ms", "money_minor_max"), of.integer(0, INTEGER_MAX)),
    **dict.fromkeys(("outcome", "expect"), of.text(among=policy.OUTCOMES)),
    **dict.fromkeys(("Window.name", "Fact.name", "amount", "Money.currency"), of.text(IDENTIFIER)),
    **dict.fromkeys(
        ("Budget.currency", "Window.currency", "currency_is", "ArgSpec.currency"), of.text(CURRENCY)
    ),
    **dict.fromkeys(("why", "Example.name"), of.text()),
    **dict.fromkeys(("Parts.agent", "Tool.agent", "Tool.at"), of.text(agents.NAME)),
    "pinned": of.text(HASH),
    "type": partial(_type, program.SLOT_TYPES),
    "ArgSpec.type": partial(_type, (*KINDS, LIST)),
    "of": partial(_type, ITEMS),
    "digits": of.integer(0, DIGITS_MAX),
    "items_max": of.integer(1, ITEMS_MAX),
    "model": of.text(among=MODES),
    "origin": of.text(among=ORIGINS),
    "endorses": of.each(of.text(among=ORIGINS)),
    "Source.slot": of.text(SLOT_NAME),
    "call": of.text(among=(program.AUTHORIZED,)),
    "level": of.text(among=policy.LEVELS),
    "check": of.text(among=(policy.PERMISSION, policy.ANOMALY)),
    "at": of.text(among=policy.STAGES),
    "counts": of.text(among=windows.COUNTS),
    "unit": of.text(among=budget.UNITS),
    "Budget.scope": of.text(among=budget.SCOPES),
    "Window.scope": of.text(among=windows.WINDOW_SCOPES),
    "proposals_max": of.integer(1, PROPOSALS_MAX),
    "warrant_ttl_ms": of.integer(1, WARRANT_TTL_MS_MAX),
    "attempts_max": of.integer(1, ATTEMPTS_MAX),
    "length_max": of.integer(1, ARGUMENT_CHARS_MAX),
}
