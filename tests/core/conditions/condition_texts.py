"""Conditions and contexts as Hypothesis draws them: trees, their texts, and texts gone wrong."""

from collections import OrderedDict, UserDict, defaultdict
from types import MappingProxyType

from hypothesis import strategies as st

from tests.core.conditions.condition_reference import Binary, Literal, Not, Tree, Variable

STRENGTH = {"or": 1, "and": 2}
SIGNS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains"]
NAMES = ["a", "b", "c", "Long_name2", "in"]
# What people type who know another language, and what attackers type.
STRAY = [
    *("!", "=", "&&", "||", "&", "+", "-", "*", "%", ";", "#", "`", "\\", "{", "}", "?", ":", "@"),
    *("(", ")", "[", "]", ",", "$", ".", "_", "'", '"', "<", ">", "==", "<>", "===", "1", "0"),
    *(" and ", " or ", " not ", " in ", " contains ", " is ", " AND ", " true ", " null ", "False"),
    *("\u00a0", "\u200b", "\u202e", "é", "\u0430", "\uff11", "\x00", "\n", " ", "1.5", "1e3"),
    *("007", "-1", "0x10", "1_0", "-0", "[]", "''"),
    *("9007199254740991", "9007199254740992", "-9007199254740992"),
]

TEXTS = st.text("ab'é ", max_size=3)
INTEGERS = st.integers(-3, 3)
ITEMS = (st.booleans(), INTEGERS, TEXTS)
LISTS = st.one_of(*(st.lists(item, max_size=3) for item in ITEMS))
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple)
FOREIGN = st.none() | st.floats() | st.just([1, True]) | st.just([None]) | st.just([[1]])
FIELDS = st.one_of(*ITEMS, LISTS, LISTS.map(tuple), FOREIGN)
KINDS = st.sampled_from(
    [dict, MappingProxyType, OrderedDict, UserDict, lambda of: defaultdict(int, of)]
)
INNER = st.dictionaries(st.sampled_from(NAMES), FIELDS | st.just({"a": 1, "b": "x"}), max_size=3)
SOMETHING = FIELDS | st.booleans() | st.builds(lambda kind, of: kind(of), KINDS, INNER)
FEW = st.dictionaries(st.sampled_from(NAMES), SOMETHING, max_size=5)
MANY = st.fixed_dictionaries(dict.fromkeys(NAMES, SOMETHING))
CONTEXTS = st.builds(lambda kind, of: kind(of), st.just(dict) | KINDS, FEW | MANY)
LITERALS = st.one_of(*ITEMS, LISTS).map(Literal)
VARIABLES = PATHS.map(Variable)
LOGICAL = st.booleans().map(Literal) | VARIABLES
SIGN = st.sampled_from(SIGNS)


def trees(
    variables: st.SearchStrategy[Variable], logical: st.SearchStrategy[Tree]
) -> st.SearchStrategy[Tree]:
    """Trees over these variables: comparisons and logic, mixed as a person would not."""
    same = st.sampled_from(ITEMS).flatmap(
        lambda item: (
            st.builds(Binary, SIGN, item.map(Literal), item.map(Literal))
            | st.builds(Binary, SIGN, item.map(Literal), st.lists(item, max_size=3).map(Literal))
        )
    )
    values = LITERALS | variables
    compared = st.builds(Binary, SIGN, variables, values) | st.builds(Binary, SIGN, values, values)
    return st.recursive(
        same | compared | logical,
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(Binary, st.sampled_from(["and", "or"]), inner, inner)
            | st.builds(Binary, SIGN, inner, inner | LITERALS)
        ),
        max_leaves=6,
    )


TREES = trees(VARIABLES, LOGICAL)


@st.composite
def conditions(draw: st.DrawFn, found: st.SearchStrategy[Tree] = TREES) -> tuple[Tree, str]:
    tree = draw(found)
    return tree, written(tree, 0, draw)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A condition's text after one to three strokes of a wrong key."""
    text = draw(conditions())[1]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(at + 3, len(text))))
        put = draw(st.sampled_from(["", *STRAY]) | st.just(text[at:end] * 2))
        text = text[:at] + put + text[end:]
    return text


GARBAGE = st.text("$ab._1-09=!<>()[],'\" notridul\\é\n", max_size=30) | st.lists(
    st.sampled_from([*STRAY, *SIGNS, "$a", "$b.c", "'x'", "2", "true", "not ", " "]), max_size=12
).map("".join)


def written(tree: Tree, outside: int, draw: st.DrawFn) -> str:
    """The tree's text, with parentheses where they are needed and sometimes where not."""
    text, strength = _bare(tree, draw)
    if strength < outside or draw(st.integers(0, 5)) == 0:
        return f"({text})"
    return text


def _bare(tree: Tree, draw: st.DrawFn) -> tuple[str, int]:
    space = draw(st.sampled_from([" ", "  ", "\n\t"]))
    match tree:
        case Literal(value):
            return _spelled(value, draw), 5
        case Variable(path):
            return "$" + ".".join(path), 5
        case Not(inner):
            return f"not{space}{written(inner, 3, draw)}", 3
        case Binary(sign, left, right):
            own = STRENGTH.get(sign, 4)
            # A chain of one word groups from the left; comparisons do not chain at all.
            near = own if own < 4 else 5
            one, other = written(left, near, draw), written(right, own + 1, draw)
            return f"{one}{space}{sign}{space}{other}", own


def _spelled(value: object, draw: st.DrawFn) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_spelled(item, draw) for item in value) + "]"
    if isinstance(value, str):
        quote = draw(st.sampled_from([q for q in "\"'" if q not in value]))
        return f"{quote}{value}{quote}"
    return str(value).lower() if isinstance(value, bool) else str(value)
