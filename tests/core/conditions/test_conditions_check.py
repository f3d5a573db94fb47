"""Types: what checks has an answer in every context of its types; what does not is shown."""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nanovm_core.conditions import ConditionEvaluationError, ConditionTypeError, parse
from nanovm_core.errors import ConditionError
from tests.core.conditions import condition_reference as second
from tests.core.conditions.condition_texts import Texts, conditions, joined, negated, spelled

TYPES = (
    {"slots.amount": "integer", "slots.currency": "string", "slots.open": "boolean"}
    | {"slots.tags": "strings", "slots.sizes": "integers", "slots.marks": "booleans"}
    | {"agent": "string", "count": "integer", "flag": "boolean"}
)
OF = {"integer": st.integers(-3, 3), "string": st.text("ab", max_size=2), "boolean": st.booleans()}
OF |= {f"{kind}s": st.lists(of, max_size=3) | st.lists(of).map(tuple) for kind, of in OF.items()}


@pytest.mark.parametrize("text", [
    "true", "$flag", "not $flag and ($slots.open or $flag)", "$slots.amount <= 5 and 5 > $count",
    "$slots.amount == -1", "$slots.currency != 'EUR'", "$slots.currency in ['EUR', 'USD']",
    "$slots.currency in $slots.tags", "$slots.tags contains 'a'", "'a' in $slots.currency",
    "$slots.currency contains $agent", "$slots.sizes contains $count", "true in $slots.marks",
    "$count in []", "[] contains $flag", "$slots.tags == ['a']", "$slots.tags == []", "[] == []",
    "[] != $slots.sizes", "$slots.sizes == [1]", "($count == 1) == $flag",
    "($count == 1) in [true]",
])  # fmt: skip
def test_what_fits_is_let_through(text: str) -> None:
    parse(text).check(TYPES)


@pytest.mark.parametrize(
    ("text", "code", "position", "says"),
    [
        ("$slots.amout == 1", "CON-030", 0, "there is $slots.amount, $slots.currency"),
        ("$flag or $nothing", "CON-030", 9, "there is $agent"),
        ("$slots", "CON-030", 0, "$slots.amount"),
        ("$slots.amount.more == 1", "CON-030", 0, "there is $slots.amount"),
        ("$slots.amount == 'x'", "CON-031", 14, "integer == string"),
        ("$slots.open != 1", "CON-031", 12, "boolean != integer"),
        ("$slots.tags == [1]", "CON-031", 12, "strings == integers"),
        ("[] == 1", "CON-031", 3, "empty list == integer"),
        ("$flag == ($slots.currency == 1)", "CON-031", 26, "string == integer"),
        ("$slots.currency < 'b'", "CON-032", 16, "string < string"),
        ("$slots.amount >= $flag", "CON-032", 14, "integer >= boolean"),
        ("[] <= []", "CON-032", 3, "empty list <= empty list"),
        ("$flag and $slots.amount", "CON-033", 10, "this is integer"),
        ("not $slots.currency", "CON-033", 4, "this is string"),
        ("($slots.tags) or $flag", "CON-033", 0, "this is strings"),
        ("$slots.amount in $slots.tags", "CON-034", 14, "integer in strings"),
        ("$slots.amount not in 5", "CON-034", 14, "integer not in integer"),
        ("$slots.tags in [] ", "CON-034", 12, "strings in empty list"),
        ("[] in []", "CON-034", 3, "empty list in empty list"),
        ("$slots.currency contains 1", "CON-034", 16, "string contains integer"),
        ("$slots.amount", "CON-035", 0, "this is integer"),
        (" ('x')", "CON-035", 1, "this is string"),
    ],
)
def test_what_can_have_no_answer_is_shown_with_its_place(
    text: str, code: str, position: int, says: str
) -> None:
    with pytest.raises(ConditionTypeError) as caught:
        parse(text).check(TYPES)
    assert (caught.value.code, caught.value.position) == (code, position)
    reason, line, caret = caught.value.text.split("\n")
    assert says in reason
    assert line == f"  {text}"
    assert caret == " " * (position + 2) + "^"
    assert isinstance(caught.value, ConditionError)


def test_the_first_fault_from_the_left_is_the_one_that_is_shown() -> None:
    with pytest.raises(ConditionTypeError, match="CON-032") as caught:
        parse("$count == 1 and 'a' < 'b' and $nothing").check(TYPES)
    assert caught.value.position == 20


def test_a_type_that_is_none_is_the_callers_mistake() -> None:
    for wrong in ("float", "ref", "list", "", "Integer"):
        with pytest.raises(ValueError, match="no type of the condition language"):
            parse("true").check({"a": wrong})
    parse("$a == 'x'").check(MappingProxyType({"a": "string"}))


VARIABLES = st.sampled_from([f"${name}" for name in TYPES])


def of_type(kind: str) -> Texts:
    named = [f"${name}" for name, of in TYPES.items() if of == kind]
    return st.sampled_from(named) | OF[kind].map(spelled)


def fitting(kind: str) -> Texts:
    one, several = of_type(kind), of_type(f"{kind}s")
    signs = ["==", "!=", *(["<", "<=", ">", ">="] if kind == "integer" else [])]
    signs += ["in", "not in", "contains"] if kind == "string" else []
    return (
        joined(st.sampled_from(signs), one, one)
        | joined(st.sampled_from(["in", "not in"]), one, several)
        | joined(st.just("contains"), several, one)
        | joined(st.sampled_from(["==", "!="]), several, several)
    )


ANY = st.sampled_from(["integer", "string", "boolean"]).flatmap(fitting)
FITTING = st.recursive(
    ANY | of_type("boolean"),
    lambda inner: negated(inner) | joined(st.sampled_from(["and", "or", "==", "!="]), inner, inner),
    max_leaves=8,
)


def reads(text: str) -> bool:
    return second.outcome(text, {}) != "refused"


@st.composite
def contexts(draw: st.DrawFn) -> Mapping[str, object]:
    """Every variable, each of its type."""
    found: dict[str, object] = {}
    slots: dict[str, object] = {}
    for name, kind in TYPES.items():
        first, _, field = name.partition(".")
        (slots if field else found)[field or first] = draw(OF[kind])
    return {**found, "slots": draw(st.sampled_from([dict, MappingProxyType]))(slots)}


def checks(text: str) -> bool:
    try:
        parse(text).check(TYPES)
    except ConditionTypeError:
        return False
    return True


@settings(max_examples=30)
@given(
    (FITTING | FITTING | conditions(VARIABLES, VARIABLES)).filter(reads),
    contexts(),
    st.just(set()) | st.sets(st.sampled_from(sorted(TYPES))),
)
def test_what_checks_has_an_answer_unless_something_is_missing(
    text: str, context: Mapping[str, object], gone: set[str]
) -> None:
    left = {name: value for name, value in context.items() if name not in gone}
    slots = context["slots"]
    assert isinstance(slots, Mapping)
    left["slots"] = {name: of for name, of in slots.items() if f"slots.{name}" not in gone}
    event("checks" if checks(text) else "does not")
    if checks(text):
        expected = second.outcome(text, left)
        assert isinstance(expected, bool) or (expected == "CON-020" and gone)
        with suppress(ConditionEvaluationError):
            assert parse(text).holds(left) is expected
