"""The condition language against a second reading of its description, errors included."""

from collections.abc import Mapping

from hypothesis import event, given, settings

from nanovm_core.conditions import ConditionEvaluationError, ConditionSyntaxError, parse
from tests.core.conditions import condition_reference as second
from tests.core.conditions.condition_texts import CONDITIONS, CONTEXTS, GARBAGE, mutated


def asked(text: str, context: Mapping[str, object]) -> bool | str:
    """What the language says: an answer, the code of why there is none, or that it is none."""
    try:
        return parse(text).holds(context)
    except ConditionEvaluationError as error:
        return error.code
    except ConditionSyntaxError:
        return "refused"


def reads(text: str) -> bool:
    return asked(text, {}) != "refused"


@settings(max_examples=25)
@given(CONDITIONS, CONTEXTS)
def test_the_language_agrees_with_a_second_reading(
    text: str, context: Mapping[str, object]
) -> None:
    expected = second.outcome(text, context)
    event(str(expected))
    assert asked(text, context) == expected
    opposite = expected if isinstance(expected, str) else not expected
    assert asked(f"not ({text})", context) == opposite


@settings(max_examples=50)
@given(mutated() | GARBAGE, CONTEXTS)
def test_any_text_means_the_same_to_both_readings_or_is_refused_with_its_place(
    text: str, context: Mapping[str, object]
) -> None:
    expected = second.outcome(text, context)
    event(str(expected))
    assert asked(text, context) == expected
    try:
        parse(text)
    except ConditionSyntaxError as error:
        place = error.position
    else:
        place = 0
    assert place is not None
    assert 0 <= place <= len(text)


@settings(max_examples=20)
@given(CONDITIONS.filter(reads), CONTEXTS)
def test_explain_agrees_with_holds(text: str, context: Mapping[str, object]) -> None:
    parts = parse(text).explain(context)
    whole = parts[0]
    outcome = asked(text, context)
    assert outcome == (whole.error.code if whole.error else whole.value)
    assert (whole.error is None) == (whole.value is not None)
    for part in parts:
        assert part.text == text[part.start : part.end]
        alone = parse(f"({part.text}) == ({part.text})")  # any value equals itself
        if part.error is not None and part is not whole:
            assert asked(alone.text, context) == part.error.code
        if part.value is not None:
            assert alone.holds(context)
