"""Reads TOML tables strictly: what is not understood to the last word is refused."""

import tomllib
from collections.abc import Mapping

from nanovm_core.errors import ProgramError

Table = Mapping[str, object]


def document(source: bytes, *, code: str, what: str, size_max: int) -> Table:
    """The tables of a file (TOML, UTF-8), or ProgramError under ``code``."""
    if len(source) > size_max:
        raise ProgramError(code, f"the {what} is over {size_max} bytes")
    try:
        return tomllib.loads(source.decode())
    except (ValueError, RecursionError) as error:  # also an integer of thousands of digits
        raise ProgramError(code, f"the {what} is not TOML: {error}") from error


def rows(table: Table, key: str) -> list[Table]:
    """A list of tables; absent is empty."""
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        raise ProgramError("PRG-001", f"{key} must be a list of tables: [[{key}]]")
    return found


def subtable(table: Table, key: str) -> Table:
    """A table in a table; absent is empty."""
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise ProgramError("PRG-001", f"{key} must be a table")
    return found


def text(row: Table, key: str, place: str, default: str | None = None) -> str:
    """A text that is not empty; without a ``default`` it must be there."""
    if default is not None and key not in row:
        return default
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise ProgramError("PRG-001", f"{place}: {key} must be a text")
    return value


def positive(row: Table, key: str, place: str, default: int = 0) -> int:
    """An integer of 1 or more."""
    value = row.get(key, default)
    if type(value) is not int or value < 1:
        raise ProgramError("PRG-001", f"{place}: {key} must be an integer of 1 or more")
    return value


def names(row: Table, key: str, place: str) -> tuple[str, ...]:
    """A list of names; absent is empty."""
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ProgramError("PRG-001", f"{place}: {key} must be a list of names")
    return tuple(value)


def only(row: Table, known: set[str], place: str) -> None:
    """Refuse every key that nobody knows."""
    unknown = sorted(set(row) - known)
    if unknown:
        raise ProgramError("PRG-001", f"{place}: unknown keys {unknown}")
