"""Places: what a generated document says where, and where it was written, found again."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.loading.places import Path, Places

BARE = st.sampled_from(["a", "b", "cc", "D-1", "_x", "0", "-"])
ANY = st.sampled_from(["a", "e", "", "é.ü", " ", "a b", "[x]", "k = 1", "#", "'", '"', "\\", "🦀"])
SPACE = st.sampled_from(["", " ", "  ", "\t"])
SCALARS = st.sampled_from(
    [
        *("1", "-17", "1_000", "0x1F", "true", "1.5e3", "inf", "1979-05-27 07:32:00Z"),
        *('""', '"a # b"', '"a\\"]b"', '"\\u00e9"', "''", "'a\"=['", "'}#'", "'''x'''"),
        *('"""a\n\\\n  b"""', '""""q"""""', '"""["\\"""]"""', "'''\na'\n''b,]'''"),
        '"""\n[x]\ny = 1\n"""',
    ]
)


class Writer:
    """Writes a document and remembers where it put each path."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.text = ""
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}

    def space(self) -> None:
        self.text += self._draw(SPACE)

    def blank(self) -> None:
        """White space, comments and line ends, where these are allowed."""
        self.text += self._draw(st.sampled_from(["", " ", "\n", " # ] = [x]\n  ", "\n\n\t"]))

    def end_line(self) -> None:
        """The end of a statement, and maybe more lines."""
        self.text += self._draw(st.sampled_from(["\n", " # [no]\n", "\n\n", "\n# k = 1\n", "\t\n"]))

    def key(self, name: str) -> None:
        ways = [f'"{name.translate(ESCAPES)}"']
        ways += [f"'{name}'"] if "'" not in name else []
        ways += [name] if name.isascii() and name.replace("-", "a").isidentifier() else []
        self.text += self._draw(st.sampled_from(ways))

    def dotted(self, base: Path, names: list[str], *, explicit: bool = False) -> Path:
        for place, name in enumerate(names):
            if place:
                self.space()
                self.text += "."
                self.space()
            base = (*base, name)
            if base not in self.keys or (explicit and place == len(names) - 1):
                self.keys[base] = self.values[base] = len(self.text)
            self.key(name)
        return base

    def value(self, path: Path, depth: int) -> None:
        self.values[path] = len(self.text)
        kind = self._draw(st.sampled_from("sssat" if depth else "s"))
        if kind == "s":
            self.text += self._draw(SCALARS)
        elif kind == "a":
            self.array(path, depth)
        else:
            self.text += "{"
            self.space()
            for place, name in enumerate(self._draw(st.lists(ANY, max_size=3, unique=True))):
                self.text += "," if place else ""
                self.space()
                self.pair((*path,), [name], depth - 1)
            self.text += "}"

    def array(self, path: Path, depth: int) -> None:
        """An array over any number of lines, with or without a comma at its end."""
        self.text += "["
        for index in range(self._draw(st.integers(0, 3))):
            self.text += "," if index else ""
            self.blank()
            self.keys[(*path, index)] = len(self.text)
            self.value((*path, index), depth - 1)
            self.blank()
        closing = self._draw(st.sampled_from(["]", ",]", ", # x\n]"]))
        self.text += closing if (*path, 0) in self.keys else "]"

    def pair(self, base: Path, names: list[str], depth: int) -> None:
        path = self.dotted(base, names)
        self.space()
        self.text += "="
        self.space()
        self.value(path, depth)
        self.space()

    def table(self, base: Path) -> None:
        """The pairs of a table, their first names all different."""
        firsts = self._draw(st.lists(ANY, max_size=4, unique=True))
        for first in firsts:
            self.space()
            self.pair(base, [first, *self._draw(st.lists(BARE, max_size=2))], 3)
            self.end_line()

    def header(self, base: Path, names: list[str], index: int = -1) -> Path:
        """The header of a table or, with an index, of an array's element."""
        self.space()
        self.text += "[" if index < 0 else "[["
        self.space()
        whole = [*(each for each in base if isinstance(each, str)), *names]
        path: Path = ()
        for place, name in enumerate(whole, 1):
            self.text += " . " if place > 1 else ""
            path = (*path, name)
            if path not in self.keys or (place == len(whole) and index < 0):
                self.keys[path] = self.values[path] = len(self.text)
            if place == len(whole) and index >= 0:
                path = (*path, index)
                self.keys[path] = self.values[path] = len(self.text)
            elif place < len(base) and isinstance(base[place], int):
                path = base[: place + 1]
            self.key(name)
        self.space()
        self.text += "]" if index < 0 else "]]"
        self.end_line()
        return path


ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\u00e9": "\\u00e9", "\u007f": "\\u007f"})


@st.composite
def documents(draw: Any) -> Writer:
    """A document with tables, tables in them, and arrays of tables with tables in them."""
    writer = Writer(draw)
    writer.text += draw(st.sampled_from(["", "# head\n", "\n"]))
    writer.table(())
    for name in draw(st.lists(st.sampled_from("%&\u00df"), max_size=3, unique=True)):
        if draw(st.booleans()):
            path = writer.header((), [name])
            writer.table(path)
            writer.table(writer.header(path, ["below"]))
            continue
        for index in range(draw(st.integers(1, 3))):
            path = writer.header((), [name], index)
            writer.table(path)
            if draw(st.booleans()):
                writer.table(writer.header(path, ["below"]))
    return writer


def place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def paths(value: object, path: Path = ()) -> list[Path]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += paths(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += paths(below, (*path, index))
    return found


@settings(max_examples=40)
@given(documents(), st.booleans())
def test_every_path_is_found_where_it_was_written(writer: Writer, windows: bool) -> None:
    source = writer.text.replace("\n", "\r\n") if windows else writer.text
    read = tomllib.loads(source)
    places = Places(source)
    for path in paths(read):
        assert path in places
        assert places.at(path) == place(writer.text, writer.keys[path]), path
        assert places.within(path, "\0", 0) == place(writer.text, writer.values[path]), path
    assert {path for path in writer.keys if path in places} == set(paths(read))


@pytest.mark.parametrize(("source", "path", "expected"), [
    ("a = 1\nb = 2", ("b",), (2, 1)), ("[a]\nb.c = 2", ("a", "b", "c"), (2, 3)),
    ("[a.b]\nc = 1\n[a]\nd = 2", ("a",), (3, 2)),
    ("[[a]]\n[[a]]\n[a.b]\nc = 1", ("a", 1, "b", "c"), (4, 1)),
    ("[[a]]\n[[a.b]]\n[[a.b]]\n[[a]]\n[[a.b]]\nx=1", ("a", 1, "b", 0, "x"), (6, 1)),
    ("a = [\n  1, # ]\n  [2,\n 3],\n]", ("a", 1, 1), (4, 2)), ('"\\u0061" = 1', ("a",), (1, 1)),
    ("a = { b = { c = [{ d = 1 }] } }", ("a", "b", "c", 0, "d"), (1, 20)),
    ("é = 1".replace("é", "'é'") + "\nb = '''\n]\n'''\nc = 3", ("c",), (5, 1)),
])  # fmt: skip
def test_a_place_by_hand(source: str, path: Path, expected: tuple[int, int]) -> None:
    tomllib.loads(source)
    assert Places(source).at(path) == expected


def test_what_is_absent_stands_where_it_is_lacking() -> None:
    places = Places("[a]\nb = 1\n")
    assert places.at(("a", "x", 3)) == (1, 2)
    assert places.at(("z",)) == (1, 1)
    assert places.at(()) == (1, 1)
    assert ("a", "x") not in places


@pytest.mark.parametrize(
    ("written", "text", "expected"),
    [
        ('"ab cd"', "ab cd", (1, 9)),
        ("'ab cd'", "ab cd", (1, 9)),
        ('"""\nab\ncd"""', "ab\ncd", (3, 1)),
        ("'''ab\ncd'''", "ab\ncd", (2, 1)),
        ('"ab\\u0020cd"', "ab cd", (1, 5)),  # with escapes: its opening quote
    ],
)
def test_a_character_of_a_string_has_a_place(
    written: str, text: str, expected: tuple[int, int]
) -> None:
    for source in (f"k = {written}", f"k = {written}".replace("\n", "\r\n")):
        assert tomllib.loads(source) == {"k": text}
        assert Places(source).within(("k",), text, 3) == expected


def test_deep_nesting_exhausts_nothing() -> None:
    deep = "k = " + "[" * 2_000 + "]" * 2_000
    assert Places(deep).at(("k", *[0] * 1_500)) == (1, 1_505)
