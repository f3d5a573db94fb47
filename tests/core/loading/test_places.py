"""Places: each key and value of a document is found where it was written."""

import tomllib
from itertools import product
from typing import Any

import pytest

from nanovm_core.loading.places import Path, Places

DOCUMENTS = [
    'a = 1\n\t"b" = 2\n\'c\' . d . "\\u0065" = 3 # ] = [x]\n"é.ü 🦀" = 4\n"" = 5\n0 = 1_000\n',
    "# head\n[a]\nb.c = 2\nb.d = -17\n[ a . 'x y' ] # [no]\n"
    'c = 0x1F\n\n\t[e."#"]\n"k = 1" = 1.5e3\n',
    "[a.b]\nc = 1\n[a]\nd = 2\n",
    "[[a]]\n[[a]]\nx = 1\n[a.b]\nc = 1\n[[ a ]]\n[a.b]\nc = 2\n",
    "[[a]]\n[[a.b]]\n[[a.b]]\ny = 2\n[[a]]\n[[a.b]]\nx=1\n[a.b.c]\nz = inf\n",
    'a = [\n  1, # ] = [x]\n  [2,\n 3],\n]\nb = [ "]" , \'#\', """\n]""", [], [[]], {}, ]\nc = 1\n',
    "a = { b = { c = [{ d = 1 }, {}] }, 'e'.f = \"}\", g = '''{\n"
    "''' }\nh = {}\nk = { x = [ 1 ] }\n",
    "a = \"\"\"a\n\\\n  b\"\"\" # \"\nb = '''\n''x,]'''\n"
    'c = """["\\"""]"""\nd = """"q"""""\ne = 1\n',
    'a = "a # b"\nb = "a\\"]b"\nc = \'a"=[\'\n'
    'd = "\\u00e9"\ne = 1979-05-27 07:32:00Z\nf = """\n[x]\ny = 1\n"""\n',
    "\n\na = true\n\n[b]\n\n\n[[c]]\n# k = 1\n\n[c.below]\nd = [ 1,\n\t# ] = [x]\n  2 , # x\n]\n",
]


def paths(value: object, path: Path = ()) -> list[Path]:
    found = [path] if path else []
    pairs: Any = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    return found + [below for key, each in pairs for below in paths(each, (*path, key))]


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def continued(text: str, said: str, path: Path) -> Any:
    """What stands at a path once the text goes on with this, and all that is open is closed."""
    for count in range(len(path) + 2):
        for closing in product("]}", repeat=count):
            try:
                return at(tomllib.loads(text + said + "".join(closing)), path)
            except (tomllib.TOMLDecodeError, LookupError, TypeError):
                continue
    return None


def cut(text: str, place: tuple[int, int]) -> str:
    lines = text.split("\n")[: place[0]]
    return "\n".join([*lines[:-1], lines[-1][: place[1] - 1]])


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("source", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_every_path_is_found_where_it_was_written(source: str, windows: bool) -> None:
    """Cut off at its place, the document goes on with a 7, or with another key, at that path."""
    read = tomllib.loads(source)
    places = Places(source.replace("\n", "\r\n") if windows else source)
    for path in paths(read):
        assert path in places
        key, value = cut(source, places.at(path)), cut(source, places.within(path, "\0", 0))
        name = path if isinstance(path[-1], str) else path[:-1]
        found = [continued(key, "zz = 7", new := (*name[:-1], "zz")), continued(value, "7", path)]
        if key == value:  # a header, an element of an array, or a part of a dotted key
            assert 7 in found or continued(key, "zz", new) in ({}, [{}]), path
        else:
            assert found == [7, 7], path


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
