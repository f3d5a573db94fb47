"""Reads TOML tables strictly: what is not understood to the last word is a fault with a place."""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import Fault, ProgramError
from nanovm_core.loading.places import STRING, Path, Places

Table = Mapping[str, object]

DEPTH_MAX = 16  # nested arrays and inline tables; a program needs five
KEY_PARTS_MAX = 16  # a.b.c; the reader's cost grows with the square of it
DIGITS_MAX = 64  # of one number; what is over INTEGER_MAX is refused later, by its key
TEXT_CHARS_MAX = 1_024  # a sentence that a person still reads
FAULTS_MAX = 20  # what a person mends at one sitting

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")  # what a condition can name
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")  # ASCII: no two names look alike
_SHAPE = re.compile(  # what matters no more is skipped first, which is twice as fast
    rf"[^#\"'\[\]{{}}.\n,=0-9]*+(?:#[^\n]*+|{STRING}|(?P<open>[\[{{])|(?P<close>[\]}}])"
    r"|(?P<dot>\.)|(?P<part>[\n,=])|(?P<number>(?<![A-Za-z0-9_-])[0-9](?:_?[0-9])*+)|[0-9]++|\Z)",
    re.DOTALL,
)
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Sheet:
    """A file while it is read: its tables, and what was found wrong in it so far."""

    def __init__(self, source: bytes, *, code: str, what: str, size_max: int) -> None:
        self.code = code
        self.what = what
        self.text = _decoded(source, code, what, size_max)
        _check_shape(self.text, code, what)
        self._faults: list[tuple[str, str, Path, tuple[str, int] | None]] = []
        self.root = Row(self, (), _parsed(self.text, code, what), what)

    def fault(self, path: Path, text: str, code: str = "") -> None:
        """Note that something at ``path`` is wrong."""
        self._faults.append((code or self.code, text, path, None))

    def fault_within(self, path: Path, text: str, code: str, inside: str, offset: int) -> None:
        """Note a fault at a character of the string at ``path``, which reads ``inside``."""
        self._faults.append((code, text, path, (inside, offset)))

    def close(self) -> None:
        """Raise what was found wrong, by place; return where nothing was."""
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
    """One table of a file. Its readers note what does not fit, and give a harmless value for it."""

    sheet: Sheet
    path: Path
    table: Table
    what: str  # how a person calls it: "step charge"

    def fault(self, key: str, text: str, code: str = "") -> None:
        """Note a fault at a key, or at the table that lacks it."""
        path = (*self.path, key) if key in self.table else self.path
        self.sheet.fault(path, f"{self.what}: {text}", code)

    def only(self, known: Collection[str]) -> None:
        """Refuse every key that nobody knows."""
        for key in self.table:
            if key not in known:
                self.fault(key, f"unknown key {key!r}; known are {', '.join(sorted(known))}")

    def text(
        self,
        key: str,
        default: str | None = None,
        *,
        among: Collection[str] = (),
        like: re.Pattern[str] | None = None,
        chars_max: int = TEXT_CHARS_MAX,
    ) -> str:
        """A text that is not empty; without a ``default`` it must be there."""
        value = self.table.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not 0 < len(value) <= chars_max:
            self.fault(key, f"{key} must be a text of 1 to {chars_max} characters")
            return default or ""
        if among and value not in among:
            self.fault(key, f"{key} = {value!r} is none of {', '.join(among)}")
        elif like and not like.fullmatch(value):
            self.fault(key, f"{key} = {value!r} is no name: it must match {like.pattern}")
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer of ``low`` to ``high``; without a ``default`` it must be there."""
        value = self.table.get(key, default)
        known = type(value) is int and low <= value <= high
        if not known and (key in self.table or default is None):
            self.fault(key, f"{key} must be an integer of {low} to {high}")
            return low
        return value  # type: ignore[return-value]

    def bound(self, key: str) -> int | None:
        """An integer that may be absent."""
        if key not in self.table:
            return None
        return self.integer(key, -INTEGER_MAX, INTEGER_MAX)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.table.get(key, default)
        if isinstance(value, bool):
            return value
        self.fault(key, f"{key} must be true or false")
        return default

    def scalar(self, key: str) -> Scalar | None:
        """A text, an integer or a boolean that may be absent."""
        value = self.table.get(key)
        if value is None or _is_scalar(value):
            return value  # type: ignore[return-value]
        self.fault(key, f"{key} must be a text, true, false, or an integer within ±{INTEGER_MAX}")
        return None

    def scalars(self, key: str) -> tuple[Scalar, ...] | None:
        """A list of texts, integers or booleans, all of one type, that may be absent."""
        value = self.table.get(key)
        if value is None:
            return None
        each = value if isinstance(value, list) else []
        if len({type(item) for item in each}) == 1 and all(map(_is_scalar, each)):
            return tuple(each)
        self.fault(key, f"{key} must list texts, or integers, or booleans, and at least one")
        return None

    def names(self, key: str) -> tuple[str, ...]:
        """A list of names, none of them twice; absent is empty."""
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self.fault(key, f"{key} must be a list of names")
            return ()
        if len(set(value)) != len(value):
            self.fault(key, f"{key} names something twice")
        return tuple(value)

    def strings(self, key: str) -> Mapping[str, str]:
        """A table from names to names; absent is empty."""
        row = self.row(key, self.what)
        return MappingProxyType({name: row.text(name, like=NAME) for name in row.table})

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
        self._require_few(key, len(value), count_max)
        for place, table in enumerate(value):
            yield Row(self.sheet, (*self.path, key, place), table, f"{what} {place + 1}")

    def named(
        self, key: str, what: str, like: re.Pattern[str], count_max: int
    ) -> Iterator[tuple[str, "Row"]]:
        """The tables of a table, by their names; absent is empty."""
        row = self.row(key, self.what)
        self._require_few(key, len(row.table), count_max)
        for name in row.table:
            if not like.fullmatch(name):
                row.fault(name, f"{name!r} is no name: it must match {like.pattern}")
            yield name, row.row(name, f"{what} {name}")

    def _require_few(self, key: str, count: int, count_max: int) -> None:
        """Refuse the file here where it has too many: what they say nobody reads."""
        if count > count_max:
            self.fault(key, f"there are {count} {key}, and at most {count_max} are taken")
            self.sheet.close()


def _is_scalar(value: object) -> bool:
    return type(value) in (str, bool) or (type(value) is int and abs(value) <= INTEGER_MAX)


def _decoded(source: bytes, code: str, what: str, size_max: int) -> str:
    if len(source) > size_max:
        raise _at(source[:size_max], code, f"the {what} is over {size_max} bytes: make it shorter")
    try:
        return source.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        text = f"the {what} is not UTF-8 from here on: save it as UTF-8"
        raise _at(source[: error.start], code, text) from None


def _check_shape(text: str, code: str, what: str) -> None:
    """Refuse what would exhaust the reader, before it reads."""
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
    """An error at what comes behind these bytes."""
    shown = before.decode(errors="ignore").replace("\r\n", "\n")
    column = len(shown) - shown.rfind("\n")
    return ProgramError(code, text, line=shown.count("\n") + 1, column=column)
