"""The index of deciding lines: a refusal's own sentence, or the function that names its rule."""

import gc
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nanovm_core.core.proposals import read_proposal
from nanovm_core.errors import RefusedError
from sabotage.kit import code_locations
from sabotage.kit.code_locations import DECIDERS, ROOT, decided_in, where
from tests.core.kit.builders import Play, proposal


def line_of(place: str) -> str:
    """The line of the source that a place names."""
    file, line, _ = re.split("[: ]", place, maxsplit=2)
    return (ROOT / file).read_text().splitlines()[int(line) - 1]


def test_a_refusal_is_found_by_the_sentence_that_wrote_it() -> None:
    decision = Play().to_propose().propose(proposal(amount_minor=499))
    found = where("POL-010", decision)
    assert found.startswith("nanovm_core/core/gate/tool_guard.py:")
    assert found.endswith(" _provenance")
    assert "differs from" in line_of(found)


def test_one_rule_has_a_place_for_each_of_its_sentences() -> None:
    found = {
        where("CAP-006", text=f"The {says}.")
        for says in (
            "grant does not allow this value of 'memo'",
            "argument 'memo' must be in 1…9",
            "argument 'memo' exceeds 20 characters",
        )
    }
    assert len(found) == 3
    assert all(" " in each for each in found)


def test_an_error_is_found_by_the_refusal_that_it_repeats() -> None:
    with pytest.raises(RefusedError) as caught:
        read_proposal(b"{")
    assert decided_in(caught.value).startswith("nanovm_core/core/proposals.py:")
    outer = RefusedError(caught.value.code, "It went wrong.")
    outer.__cause__ = caught.value
    assert decided_in(outer) == decided_in(caught.value)


def test_a_rule_without_a_text_is_placed_in_its_deciding_function() -> None:
    for rule, decider in DECIDERS.items():
        found = where(rule)
        assert found.endswith(f" {decider.__name__}")
        assert line_of(found).strip()


def test_two_visitors_who_attack_at_once_each_get_the_deciding_line() -> None:
    paths = sorted((ROOT / "nanovm_core" / "core").rglob("*.py"))
    code_locations._mentions.cache_clear()

    def give_way(phase: str, info: object) -> None:
        """Let the other thread run in the middle of a syntax tree."""
        time.sleep(0)

    gc.callbacks.append(give_way)
    try:
        with ThreadPoolExecutor(2) as threads:
            both = [
                threads.submit(lambda: [code_locations._in_file(path) for path in paths])
                for _ in range(2)
            ]
            assert both[0].result() == both[1].result()
    finally:
        gc.callbacks.remove(give_way)
