"""The condition language: its limits, what a context may hold, and what an error tells."""

import sys
from collections import ChainMap, defaultdict
from collections.abc import Callable, Mapping
from types import FrameType, MappingProxyType
from typing import Any

import pytest

from nanovm_core import conditions
from nanovm_core.conditions import DEPTH_MAX, NODES_MAX, TEXT_CHARS_MAX, ConditionSyntaxError, parse
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.errors import ConditionError

NESTS = (("(", "true", ")"), ("not ", "true", ""), ("true == (", "true", ")"))


def nest(opening: str, inner: str, closing: str, more: int = 0) -> str:
    """As many levels as fit, and ``more``."""
    levels = DEPTH_MAX // (2 if "==" in opening else 1) + more
    return opening * levels + inner + closing * levels


@pytest.mark.parametrize(("fits", "over", "code"), [
    (f"1 <= {INTEGER_MAX}", f"1 <= {INTEGER_MAX + 1}", "CON-005"),
    (f"1 > -{INTEGER_MAX}", f"1 > -{INTEGER_MAX + 1}", "CON-005"),
    ("true".ljust(TEXT_CHARS_MAX), "true".ljust(TEXT_CHARS_MAX + 1), "CON-001"),
    *((nest(*each), nest(*each, 1), "CON-001") for each in NESTS),
    *((f"1 in [{','.join(['1'] * (NODES_MAX - 2))}]", f"1 in [{','.join(['1'] * (NODES_MAX - 1))}]",
       "CON-001"),),
    (" or ".join(["false"] * 255 + ["true"]), "(" * TEXT_CHARS_MAX, "CON-001"),
    ("not false", "not " * (TEXT_CHARS_MAX // 4), "CON-001"),
], ids=range(9))  # fmt: skip
def test_each_limit_holds_at_its_number(fits: str, over: str, code: str) -> None:
    assert parse(fits).holds({})
    with pytest.raises(ConditionSyntaxError, match=code):
        parse(over)


HALF = DEPTH_MAX // 2
HOSTILE = {
    "openings": "(" * TEXT_CHARS_MAX,
    "negations": "not " * (TEXT_CHARS_MAX // 4),
    "not in not in": "not in " * 585,
    "a nest to the right": "true == (" * HALF + "true" + ")" * HALF,
    "a nest of logic": "true and (false or (" * 8 + "true" + "))" * 8,
    "and": " and ".join(["$a.b"] * 256),
    "nests in a chain": " or ".join(["(" * 31 + "false" + ")" * 31] * 57),
    "a comparison of lists": " == ".join(["[" + ",".join(["1"] * 255) + "]"] * 2),
    "lists in a chain": " or ".join(["1 in [" + ",".join(["2"] * 20) + "]"] * 22),
    "paths": " == ".join(["$" + ".".join(["a"] * 1_000)] * 2),
    "a string": "'" + "a" * 4_094 + "'",
    "an integer": "9" * TEXT_CHARS_MAX,
    "comparisons": "1 < " * 1_023 + "1",
    "surrogates": "\ud800" * TEXT_CHARS_MAX,
}
CALLS_MAX = 100_000  # Python and built-in functions entered; the worst here takes half of it
FRAMES_MAX = DEPTH_MAX + 30


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_costs_much_or_goes_deep(text: str) -> None:
    """Everything that can be done with a text, its calls and its frames counted."""
    calls = depth = deepest = 0

    def watch(_: FrameType, event: str, __: object) -> None:
        nonlocal calls, depth, deepest
        calls += event in ("call", "c_call")
        depth += {"call": 1, "return": -1}.get(event, 0)
        deepest = max(deepest, depth)

    sys.setprofile(watch)
    try:
        done = everything(text)
    finally:
        sys.setprofile(None)
    assert done in ("refused", "no answer", "does not check", "done")
    assert deepest <= FRAMES_MAX
    assert calls <= CALLS_MAX


def everything(text: str) -> str:
    """Parse, hold, explain and check, whatever the first of them says."""
    try:
        condition = parse(text)
    except ConditionSyntaxError:
        return "refused"
    done = "done"
    context = {"a": {"b": True}, "c": False}
    assert condition.explain(context)
    try:
        condition.holds(context)
    except conditions.ConditionEvaluationError:
        done = "no answer"
    try:
        condition.check({"a.b": "boolean", "c": "boolean"})
    except conditions.ConditionTypeError:
        done = "does not check"
    return done


def test_variables_are_named_once_in_order() -> None:
    condition = parse("$b.c == 1 and ($a or $b.c > 2) and 'x' in $b")
    assert condition.variables == ("b.c", "a", "b")
    assert parse("true").variables == ()
    assert condition.text == "$b.c == 1 and ($a or $b.c > 2) and 'x' in $b"


class Sly(str):
    """Equal to everything: no method of a foreign type may decide."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Number(int):
    def __lt__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize(
    "foreign",
    [None, 1.0, b"x", {1}, object(), Sly("x"), Number(5), [Sly("x")], [1.0], range(3), iter("x")],
)
def test_a_foreign_value_is_an_error_wherever_it_is_read(foreign: object) -> None:
    for text in ("$v == 'x'", "$v != 'x'", "'x' in $v", "$v in ['x']", "$v < 6", "$v", "not $v"):
        with pytest.raises(conditions.ConditionEvaluationError, match="CON-021"):
            parse(text).holds({"v": foreign})


class Record:
    """An attribute and items, and no mapping."""

    v = 1

    def __getitem__(self, name: str) -> object:
        return 1

    def __contains__(self, name: str) -> bool:
        return True


@pytest.mark.parametrize("foreign", [Record(), "v", ["v"], {"v"}, Sly("v")])
def test_only_a_mapping_has_fields(foreign: object) -> None:
    for context in ({"r": foreign}, {"r": {"s": foreign}}):
        with pytest.raises(conditions.ConditionEvaluationError, match="CON-020"):
            parse("$r.v == 1 or $r.s.v == 1").holds(context)
    whole: Any = foreign
    with pytest.raises(conditions.ConditionEvaluationError, match="CON-020"):
        parse("$v == 1").holds(whole)


@pytest.mark.parametrize("view", [dict, MappingProxyType, ChainMap, lambda given: given])
def test_a_context_that_makes_what_is_missing_does_not_grow(
    view: Callable[[dict[str, object]], Mapping[str, object]],
) -> None:
    growing: dict[str, object] = defaultdict(int)
    for text, context in (("$a == 0", view(growing)), ("$m.a == 0", {"m": view(growing)})):
        with pytest.raises(conditions.ConditionEvaluationError, match="CON-020"):
            parse(text).holds(context)
        assert not growing


def test_an_error_names_the_variable_and_no_value() -> None:
    for text in ("$who == 1", "$who > 1", "$who and true", "1 in $who", "$who.iban == 1"):
        with pytest.raises(ConditionError) as caught:
            parse(text).holds({"who": "Erika Mustermann"})
        assert "Erika" not in str(caught.value)
    with pytest.raises(ConditionError, match=r"\$who\.iban") as caught:
        parse("$who.iban == 1").holds({"who": {"name": "Erika Mustermann"}})
    assert "Erika" not in str(caught.value)
