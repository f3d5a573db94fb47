"""The condition language against a second reading of its definition, errors included.

The reference evaluates trees that the generator builds and never sees the parser; the
parser sees only the trees' text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import event, given, settings
from hypothesis import strategies as st

from nanovm_core.conditions import ConditionEvaluationError, ConditionSyntaxError, parse


class NoAnswer(Exception):
    """What the reference says where the language has no answer."""


@dataclass(frozen=True)
class Literal:
    value: object


@dataclass(frozen=True)
class Variable:
    path: tuple[str, ...]


@dataclass(frozen=True)
class Not:
    inner: "Tree"


@dataclass(frozen=True)
class Binary:
    sign: str
    left: "Tree"
    right: "Tree"


Tree = Literal | Variable | Not | Binary

STRENGTH = {"or": 1, "and": 2}
SIGNS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains"]
NAMES = ["a", "b", "c", "Long_name2", "in"]


def written(tree: Tree, outside: int, draw: st.DrawFn) -> str:
    """The tree's text, with parentheses where they are needed and sometimes where not."""
    text, strength = bare(tree, draw)
    if strength < outside or draw(st.integers(0, 5)) == 0:
        return f"({text})"
    return text


def bare(tree: Tree, draw: st.DrawFn) -> tuple[str, int]:
    space = draw(st.sampled_from([" ", "  ", "\n\t"]))
    match tree:
        case Literal(value):
            return spelled(value, draw), 5
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


def spelled(value: object, draw: st.DrawFn) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(spelled(item, draw) for item in value) + "]"
    if isinstance(value, str):
        quote = draw(st.sampled_from([q for q in "\"'" if q not in value]))
        return f"{quote}{value}{quote}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def reference(tree: Tree, context: Mapping[str, object]) -> object:
    """The definition, read plainly and separately."""
    match tree:
        case Literal(value):
            return value
        case Variable(path):
            return looked_up(path, context)
        case Not(inner):
            return not boolean(reference(inner, context))
        case Binary("and", left, right):
            return boolean(reference(left, context)) and boolean(reference(right, context))
        case Binary("or", left, right):
            return boolean(reference(left, context)) or boolean(reference(right, context))
        case Binary(sign, left, right):
            return compared(sign, reference(left, context), reference(right, context))


def looked_up(path: Sequence[str], context: Mapping[str, object]) -> object:
    found: object = context
    for name in path:
        if not isinstance(found, dict) or name not in found:
            raise NoAnswer("missing")
        found = found[name]
    if isinstance(found, list | tuple):
        names = {word(item) for item in found}
        if len(names) > 1 or names - {"boolean", "integer", "string"}:
            raise NoAnswer("list")
        return list(found)
    if word(found) == "foreign":
        raise NoAnswer("foreign")
    return found


def word(value: object) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "foreign"


def boolean(value: object) -> bool:
    if value is True or value is False:
        return value is True
    raise NoAnswer("logic")


def compared(sign: str, left: object, right: object) -> bool:
    if sign == "contains":
        return compared("in", right, left)
    if sign in ("!=", "not in"):
        return not compared({"!=": "==", "not in": "in"}[sign], left, right)
    if sign == "==":
        return equal(left, right)
    if sign == "in":
        return inside(left, right)
    if word(left) != "integer" or word(right) != "integer":
        raise NoAnswer("order")
    assert isinstance(left, int)
    assert isinstance(right, int)
    outcome = {"<": left < right, ">": left > right}
    return outcome[sign[0]] or (len(sign) == 2 and left == right)


def equal(left: object, right: object) -> bool:
    if word(left) != word(right):
        raise NoAnswer("types")
    if isinstance(left, list) and isinstance(right, list):
        if left and right and word(left[0]) != word(right[0]):
            raise NoAnswer("element types")
        return len(left) == len(right) and all(map(equal, left, right))
    return left == right


def inside(value: object, among: object) -> bool:
    if isinstance(among, str) and isinstance(value, str):
        return among.find(value) >= 0
    if isinstance(among, list) and not isinstance(value, list):
        return any([equal(value, item) for item in among])  # noqa: C419  # all are looked at
    raise NoAnswer("membership")


TEXTS = st.text("ab'é ", max_size=3)
INTEGERS = st.integers(-3, 3)
ITEMS = (st.booleans(), INTEGERS, TEXTS)
LISTS = st.one_of(*(st.lists(item, max_size=3) for item in ITEMS))
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)
FOREIGN = st.none() | st.floats() | st.just([1, True]) | st.just([None]) | st.just([[1]])
FIELDS = st.one_of(*ITEMS, LISTS, LISTS.map(tuple), FOREIGN)
CONTEXTS = st.dictionaries(
    st.sampled_from(NAMES),
    FIELDS | st.booleans() | st.dictionaries(st.sampled_from(NAMES), FIELDS, max_size=3),
    max_size=5,
)
LITERALS = st.one_of(*ITEMS, LISTS).map(Literal)
VARIABLES = PATHS.map(Variable)
LOGICAL = st.booleans().map(Literal) | VARIABLES


def comparisons() -> st.SearchStrategy[Tree]:
    """Comparisons that often have an answer: both sides of one type more often than chance."""
    same = st.sampled_from(ITEMS).flatmap(
        lambda item: (
            st.builds(Binary, SIGN, item.map(Literal), item.map(Literal))
            | st.builds(Binary, SIGN, item.map(Literal), st.lists(item, max_size=3).map(Literal))
        )
    )
    return same | st.builds(Binary, SIGN, LITERALS | VARIABLES, LITERALS | VARIABLES)


SIGN = st.sampled_from(SIGNS)
TREES: st.SearchStrategy[Tree] = st.recursive(
    comparisons() | LOGICAL,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(Binary, st.sampled_from(["and", "or"]), inner, inner)
        | st.builds(Binary, SIGN, inner, inner | LITERALS)
    ),
    max_leaves=6,
)


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Tree, str]:
    tree = draw(TREES)
    return tree, written(tree, 0, draw)


def asked(text: str, context: Mapping[str, object]) -> bool | None:
    """What the language says; None for an error."""
    try:
        return parse(text).holds(context)
    except ConditionEvaluationError:
        return None


@settings(max_examples=300)
@given(conditions(), CONTEXTS)
def test_the_language_agrees_with_a_second_reading(
    condition: tuple[Tree, str], context: dict[str, object]
) -> None:
    tree, text = condition
    try:
        expected: bool | None = boolean(reference(tree, context))
    except NoAnswer:
        expected = None
    event(str(expected))
    assert asked(text, context) is expected


@settings(max_examples=200)
@given(conditions(), CONTEXTS)
def test_an_error_stays_an_error_when_negated(
    condition: tuple[Tree, str], context: dict[str, object]
) -> None:
    outcome, opposite = asked(condition[1], context), asked(f"not ({condition[1]})", context)
    assert opposite is (None if outcome is None else not outcome)


@settings(max_examples=200)
@given(conditions(), CONTEXTS)
def test_explain_agrees_with_holds(condition: tuple[Tree, str], context: dict[str, object]) -> None:
    text = condition[1]
    parts = parse(text).explain(context)
    whole = parts[0]
    assert whole.value is asked(text, context)
    assert (whole.error is None) == (whole.value is not None)
    for part in parts:
        assert part.text == text[part.start : part.end]
        alone = parse(f"({part.text}) == ({part.text})")  # any value equals itself
        if part.error is not None and part is not whole:
            assert asked(alone.text, context) is None
        if part.value is not None:
            assert alone.holds(context)


@settings(max_examples=300)
@given(st.text("$ab._1-09=!<>()[],'\" notridul\\é\n", max_size=30))
def test_any_text_is_a_condition_or_a_placed_error(text: str) -> None:
    place: int | None = 0
    try:
        parse(text)
    except ConditionSyntaxError as error:
        place = error.position
    assert place is not None
    assert 0 <= place <= len(text)
