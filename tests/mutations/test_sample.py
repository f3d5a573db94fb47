"""A fixed sample of the list, run for real; ``make mutate`` runs all of it."""

from hashlib import sha256

import pytest

from mutations.patching import Mutation, load
from mutations.survey import judge, line
from mutations.trials import Trial, run

SEED = "nanovm"
SIZE = 6


def sample() -> list[Mutation]:
    """Some mutations of the kernel: the same ones as long as the list is the same."""
    kernel = [each for each in load() if each.file.startswith("nanovm_core/")]
    return sorted(kernel, key=lambda each: sha256(f"{SEED}:{each.id}".encode()).digest())[:SIZE]


@pytest.mark.parametrize("mutation", sample(), ids=[each.id for each in sample()])
def test_the_guard_is_missed(mutation: Mutation) -> None:
    verdict = judge(mutation)
    assert verdict.killed, line(verdict)


def test_with_every_guard_in_place_the_same_tests_pass() -> None:
    tests = sorted({test for mutation in sample() for test in mutation.tests})
    assert run(Trial(tuple(tests))).end == "passed"
