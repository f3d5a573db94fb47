"""The generator of invoices: the same bytes each time, and every kind of paper."""

import io
from collections import Counter

import pytest
from pypdf import PdfReader

from samples.generated import CONTRARY, HONEST, KINDS, TRICKS, batch, generate

pytestmark = pytest.mark.reader  # make test reads what it generates in tests/pipeline/steps


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_invoice_each_time(kind: str) -> None:
    once = generate(7, kind)
    assert once == generate(7, kind)
    assert once.pdf != generate(8, kind).pdf
    assert once.kind == kind
    assert once.truth.payable == (kind in HONEST) == (not once.truth.reason)
    assert bool(once.truth.forged) == (kind in TRICKS)
    assert PdfReader(io.BytesIO(once.pdf)).pages


def test_a_batch_has_so_many_of_each_kind() -> None:
    made = Counter(each.kind for each in batch(2, ("honest", *CONTRARY[:3])))
    assert set(made.values()) == {2}
    assert len(made) == 4


def test_seeds_reach_every_layout_and_language() -> None:
    made = list(batch(90, ("honest",)))
    assert len({each.layout for each in made}) == 13
    assert len({each.language for each in made}) == 11
    assert len({each.truth.currency for each in made}) >= 8
    assert all(each.truth.payable and each.truth.amount_minor > 0 for each in made)


def test_without_a_kind_half_of_the_invoices_are_payable() -> None:
    made = [generate(seed).truth.payable for seed in range(1, 41)]
    assert 10 <= sum(made) <= 30
