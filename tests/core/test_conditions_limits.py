"""The condition language: its limits, what a context may hold, and what an error tells."""

from collections import defaultdict

import pytest

from nanovm_core.canonical import INTEGER_MAX
from nanovm_core.conditions import (
    DEPTH_MAX,
    NODES_MAX,
    TEXT_CHARS_MAX,
    ConditionEvaluationError,
    ConditionSyntaxError,
    parse,
)
from nanovm_core.errors import ConditionError


def test_integers_end_at_their_limit() -> None:
    for number in (INTEGER_MAX, -INTEGER_MAX):
        assert parse(f"$n == {number}").holds({"n": number})
    for number in (INTEGER_MAX + 1, -INTEGER_MAX - 1):
        with pytest.raises(ConditionSyntaxError, match="CON-005"):
            parse(f"$n == {number}")


def test_the_text_ends_at_its_limit() -> None:
    assert parse("true".ljust(TEXT_CHARS_MAX)).holds({})
    with pytest.raises(ConditionSyntaxError, match="CON-001"):
        parse("true".ljust(TEXT_CHARS_MAX + 1))


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("not ", ""), ("true == (", ")")])
def test_depth_ends_at_its_limit(opening: str, closing: str) -> None:
    levels = DEPTH_MAX // (2 if "==" in opening else 1)
    assert parse(opening * levels + "true" + closing * levels).holds({})
    with pytest.raises(ConditionSyntaxError, match="CON-001"):
        parse(opening * (levels + 1) + "true" + closing * (levels + 1))


def test_nodes_end_at_their_limit() -> None:
    fits, over = ["1"] * (NODES_MAX - 2), ["1"] * (NODES_MAX - 1)
    assert parse(f"1 in [{','.join(fits)}]").holds({})
    with pytest.raises(ConditionSyntaxError, match="CON-001"):
        parse(f"1 in [{','.join(over)}]")


def test_a_long_chain_needs_no_stack() -> None:
    assert parse(" or ".join(["false"] * 255 + ["true"])).holds({})
    with pytest.raises(ConditionSyntaxError):
        parse("(" * TEXT_CHARS_MAX)
    with pytest.raises(ConditionSyntaxError):
        parse("not " * (TEXT_CHARS_MAX // 4))


def test_variables_are_named_once_in_order() -> None:
    condition = parse("$b.c == 1 and ($a or $b.c > 2) and 'x' in $b")
    assert condition.variables == ("b.c", "a", "b")
    assert parse("true").variables == ()
    assert condition.text == "$b.c == 1 and ($a or $b.c > 2) and 'x' in $b"


def test_a_condition_is_a_value() -> None:
    assert parse("$a") == parse("$a") != parse("$b")
    assert len({parse("$a"), parse("$a")}) == 1
    with pytest.raises(AttributeError):
        parse("$a").text = "true"  # type: ignore[misc]


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
        with pytest.raises(ConditionEvaluationError, match="CON-021"):
            parse(text).holds({"v": foreign})


def test_attributes_are_never_read_and_the_context_never_changed() -> None:
    class Record:
        field = 1

    with pytest.raises(ConditionEvaluationError, match="CON-020"):
        parse("$r.field == 1").holds({"r": Record()})
    growing: defaultdict[str, object] = defaultdict(int)
    with pytest.raises(ConditionEvaluationError, match="CON-020"):
        parse("$a == 0").holds(growing)
    assert not growing


def test_an_error_names_the_variable_and_no_value() -> None:
    for text in ("$who == 1", "$who > 1", "$who and true", "1 in $who", "$who.iban == 1"):
        with pytest.raises(ConditionError) as caught:
            parse(text).holds({"who": "Erika Mustermann"})
        assert "Erika" not in str(caught.value)
    with pytest.raises(ConditionError, match=r"\$who\.iban"):
        parse("$who.iban == 1").holds({"who": {}})
