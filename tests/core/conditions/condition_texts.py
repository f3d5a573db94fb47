"""Conditions and contexts as Hypothesis draws them: texts, and texts gone wrong."""

from collections import OrderedDict, UserDict, defaultdict
from types import MappingProxyType

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]
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
SPACE = st.sampled_from([" ", "  ", "\n\t"])


def spelled(value: object) -> str:
    """A literal's text."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(spelled, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"' if "'" in value else f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


LITERALS = st.one_of(*ITEMS, LISTS).map(spelled)
VARIABLES = PATHS.map(lambda path: "$" + ".".join(path))
SIGN = st.sampled_from(SIGNS)


def negated(inner: Texts) -> Texts:
    return st.builds(lambda space, text: f"not{space}{text}", SPACE, enclosed(inner))


def joined(sign: Texts, left: Texts, right: Texts) -> Texts:
    """Two texts and a sign; without parentheses they may group otherwise, or not be read."""

    def build(one: str, said: str, space: str, other: str) -> str:
        return f"{one}{space}{said}{space}{other}"

    return st.builds(build, enclosed(left), sign, SPACE, enclosed(right))


def enclosed(inner: Texts) -> Texts:
    """In parentheses more often than not, where there is more than one word."""
    often = st.sampled_from([True, True, True, False])
    return st.builds(lambda text, shut: f"({text})" if shut and " " in text else text, inner, often)


def conditions(variables: Texts = VARIABLES, logical: Texts | None = None) -> Texts:
    """Texts over these variables: comparisons and logic, mixed as a person would not."""
    logical = st.booleans().map(spelled) | variables if logical is None else logical
    same = st.sampled_from(ITEMS).flatmap(
        lambda item: joined(
            SIGN, item.map(spelled), item.map(spelled) | st.lists(item, max_size=3).map(spelled)
        )
    )
    values = LITERALS | variables
    compared = joined(SIGN, variables, values) | joined(SIGN, values, values)
    return st.recursive(
        same | compared | logical,
        lambda inner: (
            negated(inner)
            | joined(st.sampled_from(["and", "or"]), inner, inner)
            | joined(SIGN, inner, inner | LITERALS)
        ),
        max_leaves=6,
    )


CONDITIONS = conditions()


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A condition's text after one to three strokes of a wrong key."""
    text = draw(CONDITIONS)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(at + 3, len(text))))
        put = draw(st.sampled_from(["", *STRAY]) | st.just(text[at:end] * 2))
        text = text[:at] + put + text[end:]
    return text


GARBAGE = st.text("$ab._1-09=!<>()[],'\" notridul\\é\n", max_size=30) | st.lists(
    st.sampled_from([*STRAY, *SIGNS, "$a", "$b.c", "'x'", "2", "true", "not ", " "]), max_size=12
).map("".join)
