"""Slots, tools, grants and steps, as the rows of a program file say them."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.capabilities import ArgSpec, Constraint, Grant, Money, Source, Tool
from nanovm_core.core.program import (
    AUTHORIZED,
    COMPLETED,
    EFFECT,
    FAILED,
    KINDS,
    MODEL,
    PURE,
    SLOT_TYPES,
    WAIT,
    Branch,
    Retry,
    Slot,
    Step,
)
from nanovm_core.core.projection import HIDDEN, MODES
from nanovm_core.loading.policy_rows import CURRENCY, DAYS_30_MS, condition
from nanovm_core.loading.strict_toml import IDENTIFIER, NAME, Row

SLOTS_MAX, TOOLS_MAX, ARGS_MAX, GRANTS_MAX = 1_024, 256, 64, 256
STEPS_MAX = 10_000
BRANCHES_MAX = 64
ATTEMPTS_MAX = 100
CHARS_MAX = 65_536  # of one argument; a proposal is smaller
TIMEOUT_MS, TOKENS = 300_000, 8_192  # what a step has that says nothing

_SLOT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")  # what {{slot}} can name, too
_OUTSIDE = ("on_error", "timeout_ms", "retry", "tool", "args")
_KEYS_OF: Mapping[str, tuple[str, ...]] = {
    EFFECT: (*_OUTSIDE, "call", "fills", "drops"),
    MODEL: (*_OUTSIDE, "accepts", "tokens_max"),
    PURE: ("on_error", "authorizes"),
    WAIT: ("on_error", "timeout_ms", "fills"),
}
# A kind of step whose keys nobody has written down here fails the import: KeyError.
_KEYS = MappingProxyType({kind: _KEYS_OF[kind] for kind in KINDS})
_BOUNDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ref": (),
        "string": ("length_max", "one_of"),
        "integer": ("min", "max", "one_of"),
        "boolean": ("one_of",),
    }
)


def slots(root: Row) -> Mapping[str, Slot]:
    """What a run may hold."""
    found = {}
    for name, row in root.named("slots", "slot", _SLOT_NAME, SLOTS_MAX):
        row.only(("type", "model"))
        kind = row.text("type", among=SLOT_TYPES)
        found[name] = Slot(
            type=kind if kind in SLOT_TYPES else "", model=row.text("model", HIDDEN, among=MODES)
        )
    return MappingProxyType(found)


def tools(root: Row) -> Mapping[str, Tool]:
    """The tools with their arguments."""
    found = {}
    for name, row in root.named("tools", "tool", NAME, TOOLS_MAX):
        row.only(("args", "critical", "free", "money"))
        found[name] = Tool(
            name=name,
            args=_args(row),
            critical=_critical(row.row("critical", row.what)),
            free=row.names("free"),
            money=_money(row.row("money", row.what)) if "money" in row.table else None,
        )
    return MappingProxyType(found)


def grants(root: Row) -> Mapping[str, Grant]:
    """The capability snapshot: at most one grant a tool."""
    found: dict[str, Grant] = {}
    for row in root.rows("grants", "grant", GRANTS_MAX):
        tool = row.text("tool", like=NAME)
        row = row._replace(what=f"the grant of {tool}" if tool else row.what)
        row.only(("tool", "where", "expires_ms"))
        if tool in found:
            row.fault("tool", "it is there twice: make one of both", "PRG-002")
        where = row.row("where", row.what)
        limits = {name: _constraint(where.row(name, f"{row.what}: {name}")) for name in where.table}
        grant = Grant(
            tool=tool,
            where=MappingProxyType(limits),
            expires_ms=row.integer("expires_ms", 0, INTEGER_MAX, 0),
        )
        found.setdefault(tool, grant)
    return MappingProxyType(found)


def steps(root: Row) -> Mapping[str, Step]:
    """The steps, in the order of the file."""
    found: dict[str, Step] = {}
    for row in root.rows("steps", "step", STEPS_MAX):
        name = row.text("name", like=NAME)
        row = row._replace(what=f"step {name}" if name else row.what)
        if name in found:
            row.fault("name", "another step has this name: rename one", "PRG-002")
        if name in (COMPLETED, FAILED):
            row.fault("name", "this is where runs end: rename the step", "PRG-002")
        found.setdefault(name, _step(name, row))
    return MappingProxyType(found)


# --- tools -----------------------------------------------------------------------------------


def _args(tool: Row) -> Mapping[str, ArgSpec]:
    found = {}
    for name, row in tool.named("args", f"{tool.what}: argument", IDENTIFIER, ARGS_MAX):
        kind = row.text("type", among=SLOT_TYPES)
        known = _BOUNDS.get(kind, ("min", "max", "length_max", "one_of"))
        row.only(("type", *known))
        found[name] = ArgSpec(
            type=kind if kind in SLOT_TYPES else "",
            min=row.bound("min"),
            max=row.bound("max"),
            length_max=row.integer("length_max", 1, CHARS_MAX, ArgSpec(type="").length_max),
            one_of=row.scalars("one_of"),
        )
    return MappingProxyType(found)


def _critical(row: Row) -> Mapping[str, Source]:
    found = {}
    for name, value in row.table.items():
        if isinstance(value, Mapping):
            constant = row.row(name, f"{row.what}: critical {name}")
            constant.only(("constant",))
            if "constant" not in constant.table:
                constant.fault("constant", "say which: { constant = … }")
            found[name] = Source(constant=constant.scalar("constant"))
        else:
            found[name] = Source(slot=row.text(name, like=_SLOT_NAME))
    return MappingProxyType(found)


def _money(row: Row) -> Money:
    row.only(("amount", "currency", "currency_is"))
    if ("currency" in row.table) == ("currency_is" in row.table):
        row.fault("currency_is", "money needs either currency (an argument) or currency_is")
    return Money(
        amount=row.text("amount", like=IDENTIFIER),
        currency=row.text("currency", "", like=IDENTIFIER),
        currency_is=row.text("currency_is", "", like=CURRENCY),
    )


def _constraint(row: Row) -> Constraint:
    row.only(("one_of", "min", "max", "prefix", "equals_slot"))
    return Constraint(
        one_of=row.scalars("one_of"),
        min=row.bound("min"),
        max=row.bound("max"),
        prefix=row.text("prefix") if "prefix" in row.table else None,
        equals_slot=row.text("equals_slot") if "equals_slot" in row.table else None,
    )


# --- steps -----------------------------------------------------------------------------------


def _step(name: str, row: Row) -> Step:
    kind = row.text("kind", among=KINDS)
    if kind in _KEYS:
        _check_keys(row, kind, _KEYS[kind])
    return Step(
        name=name,
        kind=kind,
        next=_next(row),
        on_error=row.text("on_error", FAILED, like=NAME),
        tool=row.text("tool", "", like=NAME),
        call=row.text("call", "", among=(AUTHORIZED,)),
        args=row.strings("args"),
        fills=row.names("fills"),
        drops=row.names("drops"),
        accepts=row.names("accepts"),
        authorizes=row.text("authorizes", "", like=NAME),
        timeout_ms=_timeout_ms(row, kind),
        retry=_retry(row.row("retry", f"{row.what}: retry")),
        tokens_max=row.integer("tokens_max", 1, INTEGER_MAX, TOKENS) if kind == MODEL else 0,
    )


def _check_keys(row: Row, kind: str, known: tuple[str, ...]) -> None:
    """Refuse keys that a step of this kind has no use for, and miss those it needs."""
    if kind == MODEL and "fills" in row.table:
        row.fault("fills", "a model fills no slot: what it says stays a proposal", "PRG-002")
    row.only(("name", "kind", "next", *known, *(("fills",) if kind == MODEL else ())))
    if kind != PURE and "on_error" not in row.table:
        text = 'no failure path: say where it leads when it fails, as in on_error = "failed"'
        row.fault("on_error", text, "PRG-002")
    if kind == MODEL and "tool" not in row.table:
        row.fault("tool", "say which tool asks the model", "PRG-002")
    if kind == EFFECT and ("tool" in row.table) == ("call" in row.table):
        row.fault("call", f"an effect has either a tool, or call = {AUTHORIZED!r}", "PRG-002")


def _next(row: Row) -> tuple[Branch, ...]:
    """Where a step leads: one target, or guarded ones of which the last has no guard."""
    if not isinstance(row.table.get("next"), list):
        to = row.text("next", like=NAME)
        return (Branch(to=to),) if to else ()
    rows = list(row.rows("next", f"{row.what}: branch", BRANCHES_MAX))
    for place, branch in enumerate(rows, 1):
        branch.only(("when", "to"))
        if ("when" in branch.table) != (place < len(rows)):
            text = "every branch but the last needs a `when`, and the last has none: it is the rest"
            branch.fault("when", text, "PRG-002")
    if not rows:
        row.fault("next", "name at least one target")
    return tuple(
        Branch(
            when=condition(branch, "when") if "when" in branch.table else None,
            to=branch.text("to", like=NAME),
        )
        for branch in rows
    )


def _timeout_ms(row: Row, kind: str) -> int:
    if kind == WAIT:
        return row.integer("timeout_ms", 1, DAYS_30_MS)
    return row.integer("timeout_ms", 1, DAYS_30_MS, TIMEOUT_MS) if kind in (EFFECT, MODEL) else 0


def _retry(row: Row) -> Retry:
    row.only(("attempts_max", "backoff_ms", "backoff_max_ms"))
    usual = Retry()
    retry = Retry(
        attempts_max=row.integer("attempts_max", 1, ATTEMPTS_MAX, usual.attempts_max),
        backoff_ms=row.integer("backoff_ms", 0, DAYS_30_MS, usual.backoff_ms),
        backoff_max_ms=row.integer("backoff_max_ms", 0, DAYS_30_MS, usual.backoff_max_ms),
    )
    if retry.backoff_ms > retry.backoff_max_ms:
        text = f"it would wait {retry.backoff_ms} ms, and at most {retry.backoff_max_ms}"
        row.fault("backoff_ms", f"{text}: raise backoff_max_ms", "PRG-002")
    return retry
