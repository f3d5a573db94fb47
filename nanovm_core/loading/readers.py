"""Readers of single keys: each returns a checked value, or notes a fault with its place."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from types import MappingProxyType
from typing import Any

from nanovm_core.conditions import TEXT_CHARS_MAX, Condition, parse
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.errors import ConditionError
from nanovm_core.loading.strict_toml import Row

CHARS_MAX = 1_024  # of a text: a sentence that a person still reads
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")  # what a condition can name
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")  # ASCII: no two names look alike
CURRENCY = re.compile(r"[A-Z]{3}")  # ISO 4217
HASH = re.compile(r"[0-9a-f]{64}")  # SHA-256
SLOT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")  # what {{slot}} can name, too

# The row, the key, and the field's default (MISSING: the key must be there). After a fault the
# value is harmless: the file is refused once all faults are known.
Reader = Callable[[Row, str, Any], Any]
_FALSE = parse("false")  # stands in for a condition that is at fault
_TWICE = {
    "rule": "another rule has the id {!r}: rename one",
    "window": "another window is called {!r}: rename one",
    "fact": "another fact is called {!r}: rename one",
    "example": "another example is called {!r}: rename one",
    "budget": "another budget has this scope, unit and currency",
    "grant": "it is there twice: make one of both",
    "step": "another step has this name: rename one",
}


def text(
    like: re.Pattern[str] | None = None, *, among: Collection[str] = (), chars_max: int = CHARS_MAX
) -> Reader:
    """A text that is not empty."""

    def read(row: Row, key: str, default: Any) -> str:
        value = row.table.get(key)
        if not isinstance(value, str) or not 0 < len(value) <= chars_max:
            row.fault(key, f"{key} must be a text of 1 to {chars_max} characters")
            return default if isinstance(default, str) else ""
        if among and value not in among:
            row.fault(key, f"{key} = {value!r} is none of {', '.join(among)}")
        elif like and not like.fullmatch(value):
            row.fault(key, f"{key} = {value!r} is no name: it must match {like.pattern}")
        return value

    return read


def valid(
    holds: Callable[[Any], bool],
    must: str,
    harmless: object,
    made: Callable[[Any], Any] | None = None,
) -> Reader:
    """A value for which ``holds`` is true."""

    def read(row: Row, key: str, _: object) -> Any:
        value = row.table.get(key)
        if holds(value):
            return made(value) if made else value
        row.fault(key, f"{key} must {must}")
        return harmless

    return read


def integer(low: int, high: int) -> Reader:
    """An integer of ``low`` to ``high``."""
    must = f"be an integer of {low} to {high}"
    return valid(lambda value: type(value) is int and low <= value <= high, must, low)


def _is_scalar(value: object) -> bool:
    return type(value) in (str, bool) or (type(value) is int and abs(value) <= INTEGER_MAX)


def _are_scalars(value: object) -> bool:
    each = value if isinstance(value, list) else []
    return len({type(item) for item in each}) == 1 and all(map(_is_scalar, each))


flag = valid(lambda value: isinstance(value, bool), "be true or false", False)
scalar = valid(_is_scalar, f"be a text, true, false, or an integer within ±{INTEGER_MAX}", None)
scalars = valid(_are_scalars, "list texts, or integers, or booleans, and at least one", None, tuple)
value = valid(
    lambda found: _is_scalar(found) or found == [] or _are_scalars(found),
    f"be a text, true, false, an integer within ±{INTEGER_MAX}, or a list of one of these",
    None,
    lambda found: tuple(found) if isinstance(found, list) else found,
)


def names(row: Row, key: str, _: object) -> tuple[str, ...]:
    """A list of names, none of them twice."""
    value = row.table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        row.fault(key, f"{key} must be a list of names")
        return ()
    if len(set(value)) != len(value):
        row.fault(key, f"{key} names something twice")
    return tuple(value)


def each(of: Reader) -> Reader:
    """A table of values, by their names."""

    def read(row: Row, key: str, _: object) -> Mapping[str, Any]:
        inner = row.row(key, row.what)
        return MappingProxyType({name: of(inner, name, MISSING) for name in inner.table})

    return read


def condition(row: Row, key: str, _: object = None) -> Condition:
    """A parsed condition; where it does not parse, the fault points into it."""
    said = text(chars_max=TEXT_CHARS_MAX)(row, key, MISSING)
    try:
        return parse(said) if said else _FALSE
    except ConditionError as error:
        why = f"{row.what}: {key}: {error.text}"
        row.sheet.fault((*row.path, key), why, "PRG-004", (said, error.position or 0))
        return _FALSE


def table(of: Callable[[Row], Any], what: str) -> Reader:
    """A table; ``what`` names it to people, after the table that it is in."""
    return lambda row, key, _: of(row.row(key, what.format(row.what)))


def tables(
    of: Callable[[Row], Any],
    what: str,
    like: re.Pattern[str] | None = None,
    count_max: int | None = None,
) -> Reader:
    """A table of tables, by their names."""

    def read(row: Row, key: str, _: object) -> Mapping[str, Any]:
        outer, found = row.row(key, row.what), {}
        row.require_few(key, len(outer.table), count_max)
        for name in outer.table:
            if like and not like.fullmatch(name):
                outer.fault(name, f"{name!r} is no name: it must match {like.pattern}")
            found[name] = of(outer.row(name, what.format(row.what, name)))
        return MappingProxyType(found)

    return read


def rows(of: Callable[[Row], Any], what: str, count_max: int, *by: str, keyed: str = "") -> Reader:
    """A list of tables that differ in the fields ``by``; ``keyed`` and called by the first."""

    def read(row: Row, key: str, _: object) -> Any:
        found: dict[tuple[Any, ...], Any] = {}
        for table in row.rows(key, what, count_max):
            value = of(table)
            name = tuple(getattr(value, field) for field in by)
            if name in found:
                label = keyed.format(*name) if keyed and name[0] else table.what
                table._replace(what=label).fault(by[0], _TWICE[what].format(*name), "PRG-002")
            found.setdefault(name, value)
        by_name = {name[0]: value for name, value in found.items()}
        return MappingProxyType(by_name) if keyed else tuple(found.values())

    return read
