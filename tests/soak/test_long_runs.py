"""The bounded, generated tests of the suite again, with many more examples of one seed.

``make soak SEED=7`` takes another seed than 1; the number of examples is printed at the end.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.conditions import test_conditions_check, test_conditions_model
from tests.core.delegation import test_delegation_model
from tests.core.fsm import test_fsm_model
from tests.core.gate import test_capabilities
from tests.core.loading import test_loading
from tests.core.proof import test_merkle
from tests.core.values import test_canonical
from tests.reader import test_extract_property

pytestmark = pytest.mark.soak
LONG = settings(max_examples=20_000, derandomize=False, deadline=None, database=None)
PROPERTIES: tuple[Callable[..., Any], ...] = (
    test_conditions_model.test_the_language_agrees_with_a_second_reading,
    test_conditions_model.test_any_text_means_the_same_to_both_readings_or_is_refused_with_its_place,
    test_conditions_model.test_explain_agrees_with_holds,
    test_conditions_check.test_what_checks_has_an_answer_unless_something_is_missing,
    test_loading.test_any_changed_byte_is_another_program_or_refused_with_a_place,
    test_loading.test_any_missing_line_is_another_program_or_refused_with_a_place,
    test_merkle.test_what_was_changed_in_a_proof_is_seen,
    test_merkle.test_a_proof_of_another_place_or_length_is_seen,
    test_canonical.test_a_value_has_one_form_and_is_read_back,
    test_canonical.test_any_bytes_give_a_value_or_the_one_error,
    test_delegation_model.test_chain_that_verifies_gives_a_part_of_its_root,
    test_capabilities.test_what_a_narrower_grant_accepts_the_wider_one_accepts,
    test_extract_property.test_no_random_invoice_is_open_with_a_wrong_amount,
)


def test_a_run_keeps_its_promises_over_long_histories() -> None:
    long = settings(LONG, max_examples=5_000, stateful_step_count=60)
    run_state_machine_as_test(test_fsm_model.Runs, settings=long)


@pytest.mark.parametrize("held", PROPERTIES, ids=lambda held: held.__name__)
def test_a_property_holds_for_many_more_examples(
    held: Any, record_property: Callable[[str, object], None]
) -> None:
    inner, arguments = held.hypothesis.inner_test, held.hypothesis._given_kwargs
    tried = 0

    @wraps(inner, updated=())  # without the settings that it was given there
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal tried
        tried += 1
        return inner(*args, **kwargs)

    LONG(given(**arguments)(counted))()
    record_property(f"examples of {held.__name__}", tried)
