"""The line and column of each key and element of a TOML source."""

import re
import tomllib
from bisect import bisect_right
from typing import NamedTuple

Path = tuple[str | int, ...]  # keys, and the indices of elements: ("steps", 3, "next")

# Bodies are possessive, and what never ends runs to its line's or the file's end: no text, TOML
# or not, costs more than its length.
STRING = (
    r'"""(?>(?:[^"\\]|\\.|"{1,2}(?!"))*)(?:"{3,5}|\\?\Z)'
    r"|'''(?>(?:[^']|'{1,2}(?!'))*)(?:'{3,5}|\Z)"
    r'|"(?>(?:[^"\\\n]|\\.)*)(?:"|(?=\n)|\\?\Z)'
    r"|'[^'\n]*+(?:'|(?=\n)|\Z)"
)
_BLANK = re.compile(r"(?>(?:[ \t\r\n,]|#[^\n]*)*)")  # also commas: the source is known to be TOML
_SPACE = re.compile(r"[ \t]*+")
_KEY = re.compile(r'"(?>(?:[^"\\\n]|\\.)*)"|\'[^\'\n]*+\'|[A-Za-z0-9_-]++')
_VALUE = re.compile(rf"{STRING}|[^,\]}}#\n]++", re.DOTALL)
_QUOTE = re.compile(r"(?:\"\"\"|''')\n?|[\"']")


class Spot(NamedTuple):
    """The offsets at which a key and its value begin; for an element they are one."""

    key: int
    value: int


class Places:
    """The places in one source that ``tomllib`` accepts.

    Its cost is the source's length times its depth, which ``strict_toml`` bounds.
    """

    def __init__(self, source: str) -> None:
        self._text = source.replace("\r\n", "\n")
        self._lines = [0, *(match.end() for match in re.finditer("\n", self._text))]
        self._spots = _Scan(self._text).spots

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column, from 1, of a key or an element; where it is absent, of its table."""
        while path and path not in self._spots:
            path = path[:-1]
        return self._shown(self._spots[path].key if path else 0)

    def within(self, path: Path, text: str, offset: int) -> tuple[int, int]:
        """Line and column of a character of the string at ``path``, which reads ``text``.

        Where the string is written with escapes, the place is that of its opening quote.
        """
        if path not in self._spots:
            return self.at(path)
        begins = self._spots[path].value
        quote = _QUOTE.match(self._text, begins)
        first = quote.end() if quote else begins
        verbatim = self._text.startswith(text, first)
        return self._shown(first + offset if verbatim else begins)

    def __contains__(self, path: Path) -> bool:
        return path in self._spots

    def _shown(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1


class _Scan:
    """One walk over the source, with a stack of its own: no nesting can exhaust Python's."""

    def __init__(self, text: str) -> None:
        self.spots: dict[Path, Spot] = {}
        self._text = text
        self._counts: dict[Path, int] = {}  # how many elements an array of tables has so far
        base: Path = ()
        at = self._blank(0)
        while at < len(text):
            if text[at] == "[":
                at, base = self._header(at)
            else:
                at, path = self._key(at, base)
                at = self._value(path, self._text.index("=", at) + 1)
            at = self._blank(at)

    def _blank(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def _parts(self, at: int) -> tuple[int, list[tuple[str, int]]]:
        """The parts of a dotted key with their offsets, and the offset behind them."""
        parts = []
        while match := _KEY.match(self._text, self._space(at)):
            parts.append((_unquoted(match[0]), match.start()))
            at = self._space(match.end())
            if self._text[at : at + 1] != ".":
                break
            at += 1
        return at, parts

    def _space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _key(self, at: int, base: Path) -> tuple[int, Path]:
        """Note a dotted key and the tables it passes through; its first mention counts."""
        at, parts = self._parts(at)
        for name, offset in parts:
            base = (*base, name)
            self.spots.setdefault(base, Spot(offset, offset))
        return at, base

    def _header(self, at: int) -> tuple[int, Path]:
        """Note a table's header, or the next element of an array of tables."""
        double = self._text[at + 1] == "["
        at, parts = self._parts(at + 1 + double)
        path: Path = ()
        for place, (name, offset) in enumerate(parts, 1):
            path = (*path, name)
            self.spots.setdefault(path, Spot(offset, offset))
            if place == len(parts) and double:
                count = self._counts[path] = self._counts.get(path, 0) + 1
                path = (*path, count - 1)
                self.spots[path] = Spot(offset, offset)
            elif place == len(parts):
                self.spots[path] = Spot(offset, offset)
            elif path in self._counts:
                path = (*path, self._counts[path] - 1)
        return self._text.index("]", at) + 1 + double, path

    def _value(self, path: Path, at: int) -> int:
        """Note where a value begins and everything in it; the offset behind it."""
        text, still_open = self._text, list[tuple[Path, int]]()  # an array's last index, or -1
        at = self._space(at)
        self.spots[path] = Spot(self.spots[path].key, at)
        while True:
            if text[at] in "[{":
                still_open.append((path, 0 if text[at] == "[" else -1))
                at += 1
            elif match := _VALUE.match(text, at):
                at = match.end()
            while still_open and text[at := self._blank(at)] in "]}":
                still_open.pop()
                at += 1
            if not still_open:
                return at
            table, index = still_open[-1]
            if index < 0:
                at, path = self._key(at, table)
                at = self._blank(text.index("=", at) + 1)
            else:
                path = (*table, index)
                still_open[-1] = (table, index + 1)
                self.spots[path] = Spot(at, at)
            self.spots[path] = Spot(self.spots[path].key, at)


def _unquoted(key: str) -> str:
    """The name that a bare or quoted key is; TOML's own reader knows the escapes."""
    if key[0] == '"' and "\\" in key:
        return str(tomllib.loads(f"k = {key}")["k"])
    return key[1:-1] if key[0] in "\"'" else key
