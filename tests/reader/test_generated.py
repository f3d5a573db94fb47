"""Invoices that a generator made apart from the reader: what is open has exactly its value."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pytest

from reader import ExtractionError
from samples import generated
from tests.kit.reading import read_here

HONEST_SHARE_MIN: Final = 0.97
BOUNDED_FLOOR: Final = 11  # of 12 honest documents
# What a document only says against its payment: no reader judges that, a person accepts it.
SAID: Final = frozenset(
    {*generated.CONTRARY}
    - {"negative_amount", "zero_balance", "net_only", "two_amounts"}
    - {"two_ibans", "iban_check_digits", "no_currency", "no_seller"}
)
FIELDS: Final = ("invoice_number", "seller", "due_date")


@dataclass(slots=True)
class Judged:
    """How many of each status there are, and what should not be open."""

    statuses: Counter[str] = field(default_factory=Counter)
    exact: int = 0
    wrong: list[str] = field(default_factory=list)
    unpayable: list[str] = field(default_factory=list)


def judged(each: int, kinds: Iterable[str], first_seed: int) -> Judged:
    result = Judged()
    for item in generated.batch(each, kinds, first_seed):
        try:
            fields = read_here(item.pdf).fields
        except ExtractionError as error:
            result.statuses[error.code] += 1
            continue
        result.statuses[fields.pay_status] += 1
        if fields.pay_status != "open" or fields.iban_valid is False:  # the policy holds that
            continue
        truth = item.truth
        same = (fields.amount_minor, fields.currency) == (truth.amount_minor, truth.currency)
        if not truth.payable and truth.reason not in SAID:
            result.unpayable.append(item.name)
        result.wrong += [] if same and fields.iban in (None, truth.iban) else [item.name]
        result.exact += same and all(getattr(fields, n) == getattr(truth, n) for n in FIELDS)
    return result


@lru_cache(maxsize=1)
def bounded() -> tuple[Judged, Judged]:
    others = generated.KINDS[len(generated.HONEST) :]
    return judged(6, generated.HONEST, 9_000), judged(1, others, 9_000)


@pytest.mark.reader
def test_what_is_open_has_the_value_that_the_document_shows() -> None:
    honest, others = bounded()
    assert honest.wrong + others.wrong + others.unpayable == []


@pytest.mark.reader
def test_honest_documents_are_read() -> None:
    honest, others = bounded()
    assert honest.statuses["open"] >= BOUNDED_FLOOR
    assert sum(others.statuses.values()) == len(generated.KINDS) - len(generated.HONEST)


@pytest.mark.parametrize(("seed", "kind", "hold"), [
    (980_017, "no_seller", "no_seller"), (990_011, "honest", None),
    (987_034, "honest", "unclear_amount"),  # its total is on its payment part alone
    (7_100_096, "honest_xml", None), (6_000_164, "honest", None),
])  # fmt: skip
def test_documents_are_held_for_their_own_reason_alone(
    seed: int, kind: str, hold: str | None
) -> None:
    assert read_here(generated.generate(seed, kind).pdf).fields.hold == hold


@pytest.mark.soak
def test_a_thousand_documents_are_read_exactly_or_held() -> None:
    honest = judged(300, ("honest",), 30_000)
    kinds = [kind for kind in generated.KINDS if kind not in generated.HONEST]
    others = judged(20, kinds, 31_000)
    print(honest, others)
    assert honest.wrong + others.wrong + others.unpayable == []
    assert not {"hidden_text", "unverified"} & {*honest.statuses}  # pixels and text agree
    assert honest.exact >= HONEST_SHARE_MIN * 300
