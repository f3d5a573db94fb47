"""TOML tables read strictly: each fault has its line and column."""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from nanovm_core.errors import Fault, ProgramError
from nanovm_core.loading.places import STRING, Path, Places

Table = Mapping[str, object]

DEPTH_MAX = 16  # nested arrays and inline tables; a program needs five
KEY_PARTS_MAX = 16  # a.b.c; tomllib's cost is quadratic in it
DIGITS_MAX = 64  # of one number; a number over INTEGER_MAX is refused later, at its key
FAULTS_MAX = 20  # as many as a person mends at once

_SHAPE = re.compile(  # skips runs of other characters first, which is twice as fast
    rf"[^#\"'\[\]{{}}.\n,=0-9]*+(?:#[^\n]*+|{STRING}|(?P<open>[\[{{])|(?P<close>[\]}}])"
    r"|(?P<dot>\.)|(?P<part>[\n,=])|(?P<number>(?<![A-Za-z0-9_-])[0-9](?>(?:_?[0-9])*))|[0-9]++|\Z)",
    re.DOTALL,
)
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Sheet:
    """A file while it is read: its tables, and the faults found so far."""

    def __init__(self, source: bytes, *, code: str, what: str, size_max: int) -> None:
        self.code = code
        self.what = what
        self.text = _decoded(source, code, what, size_max)
        _check_shape(self.text, code, what)
        self._faults: list[tuple[str, str, Path, tuple[str, int] | None]] = []
        self.root = Row(self, (), _parsed(self.text, code, what), what)

    def fault(
        self, path: Path, text: str, code: str = "", inside: tuple[str, int] | None = None
    ) -> None:
        """Note a fault at ``path``, or ``inside`` its string: what it reads, and the offset."""
        self._faults.append((code or self.code, text, path, inside))

    def close(self) -> None:
        """Raise the faults that were noted, in the order of their places."""
        if not self._faults:
            return
        places = Places(self.text)
        found = [
            Fault(code, text, *(places.within(path, *inside) if inside else places.at(path)))
            for code, text, path, inside in self._faults
        ]
        found.sort(key=lambda fault: (fault.line, fault.column))
        first = found[0]
        raise ProgramError(
            first.code,
            first.text,
            line=first.line,
            column=first.column,
            faults=tuple(dict.fromkeys(found))[:FAULTS_MAX],
        )


class Row(NamedTuple):
    """One table of a file."""

    sheet: Sheet
    path: Path
    table: Table
    what: str  # its name in messages: "step charge"

    def fault(self, key: str, text: str, code: str = "") -> None:
        """Note a fault at a key, or at the table that lacks it."""
        path = (*self.path, key) if key in self.table else self.path
        self.sheet.fault(path, f"{self.what}: {text}", code)

    def only(self, known: Collection[str]) -> None:
        """Note a fault at every key that is not known."""
        for key in self.table:
            if key not in known:
                self.fault(key, f"unknown key {key!r}; known are {', '.join(sorted(known))}")

    def row(self, key: str, what: str) -> "Row":
        """A table in this table; absent is empty."""
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            self.fault(key, f"{key} must be a table")
            value = {}
        return Row(self.sheet, (*self.path, key), value, what)

    def rows(self, key: str, what: str, count_max: int) -> Iterator["Row"]:
        """The tables of a list of tables; absent is empty."""
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            self.fault(key, f"{key} must be a list of tables")
            return
        self.require_few(key, len(value), count_max)
        for place, table in enumerate(value):
            yield Row(self.sheet, (*self.path, key, place), table, f"{what} {place + 1}")

    def require_few(self, key: str, count: int, count_max: int | None) -> None:
        """Refuse the file at once where there are too many to read."""
        if count_max is not None and count > count_max:
            self.fault(key, f"there are {count} {key}, and at most {count_max} are taken")
            self.sheet.close()


def _decoded(source: bytes, code: str, what: str, size_max: int) -> str:
    if len(source) > size_max:
        raise _at(source[:size_max], code, f"the {what} is over {size_max} bytes: make it shorter")
    try:
        return source.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        text = f"the {what} is not UTF-8 from here on: save it as UTF-8"
        raise _at(source[: error.start], code, text) from None


def _check_shape(text: str, code: str, what: str) -> None:
    """Refuse text that would exhaust ``tomllib``, before it parses it."""
    depth = parts = 0
    for match in _SHAPE.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        parts = 0 if kind == "part" else parts + (kind == "dot")
        digits = len(match[kind]) if kind == "number" else 0
        if depth > DEPTH_MAX or parts >= KEY_PARTS_MAX or digits > DIGITS_MAX:
            raise _at(
                text[: match.start(kind)].encode(),
                code,
                f"the {what} has over {DEPTH_MAX} levels, {KEY_PARTS_MAX} parts in a key or "
                f"{DIGITS_MAX} digits in a number here",
            )


def _parsed(text: str, code: str, what: str) -> Table:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOML's own, and dates that no calendar has
        found = _AT.search(str(error))
        reason = f"the {what} is not TOML: {_AT.sub('', str(error))}"
        if found is None or found[1] is None:
            raise _at(text.encode(), code, reason) from None
        raise ProgramError(code, reason, line=int(found[1]), column=int(found[2])) from None


def _at(before: bytes, code: str, text: str) -> ProgramError:
    """An error at the end of these bytes."""
    shown = before.decode(errors="ignore").replace("\r\n", "\n")
    column = len(shown) - shown.rfind("\n")
    return ProgramError(code, text, line=shown.count("\n") + 1, column=column)
