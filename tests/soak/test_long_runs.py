"""The bounded, seeded tests of the suite again, for a long while and with fresh seeds."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.conditions import test_conditions_model
from tests.core.fsm import test_fsm_model
from tests.pipeline.steps import test_extract_property

pytestmark = pytest.mark.soak
LONG = settings(max_examples=20_000, derandomize=False, deadline=None, database=None)
PROPERTIES: tuple[Callable[..., Any], ...] = (
    test_conditions_model.test_the_language_agrees_with_a_second_reading,
    test_extract_property.test_no_random_invoice_is_open_with_a_wrong_amount,
)


def test_a_run_keeps_its_promises_over_long_histories() -> None:
    long = settings(LONG, max_examples=5_000, stateful_step_count=60)
    run_state_machine_as_test(test_fsm_model.Runs, settings=long)


@pytest.mark.parametrize("held", PROPERTIES, ids=lambda held: held.__name__)
def test_a_property_holds_for_many_more_examples(held: Any) -> None:
    inner, arguments = held.hypothesis.inner_test, held.hypothesis._given_kwargs
    LONG(given(**arguments)(inner))()
