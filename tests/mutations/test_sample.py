"""A fixed sample of the list, run for real; ``make mutate`` runs all of it."""

from hashlib import sha256

import pytest

from mutations.patching import Mutation, load
from mutations.survey import line, survey

SEED = "nanovm"
SIZE, SOAK_SIZE = 2, 40


def sample() -> list[Mutation]:
    """Some mutations, those of the kernel first: the same for as long as the list is the same."""

    def order(each: Mutation) -> tuple[bool, bytes]:
        outside = not each.file.startswith("nanovm_core/")
        return outside, sha256(f"{SEED}:{each.id}".encode()).digest()

    kernel_first = sorted(load(), key=order)
    return [*kernel_first[:SIZE], *kernel_first[SIZE :: len(kernel_first) // SOAK_SIZE]]


@pytest.mark.parametrize(
    "chosen", [sample()[:SIZE], pytest.param(sample()[SIZE:], marks=pytest.mark.soak)]
)
def test_every_guard_of_the_sample_is_missed(chosen: list[Mutation]) -> None:
    survivors = [line(each) for each in survey(chosen) if not each.killed]
    assert survivors == []
