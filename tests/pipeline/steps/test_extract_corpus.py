"""Extraction measured on invoices and hostile files that others made (../shared/data)."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.steps.extract import Extraction, ExtractionError, extract
from tests.pipeline.reading import read_here

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no shared data beside the repository: {DATA}"),
]
Result = Extraction | ExtractionError


def outcome(path: Path, read: Callable[[bytes], Extraction]) -> Result:
    try:
        return read(path.read_bytes())
    except ExtractionError as error:
        return error


def outcomes(
    folder: str, listing: str, read: Callable[[bytes], Extraction]
) -> Sequence[tuple[dict[str, Any], Result]]:
    lines = (DATA / folder / listing).read_text().splitlines()
    items = [json.loads(line) for line in lines]
    return [(item, outcome(DATA / folder / item["file"], read)) for item in items]


@cache
def invoices() -> Sequence[tuple[dict[str, Any], Result]]:
    return outcomes("invoices", "truth.jsonl", read_here)


def payable(truth: dict[str, Any]) -> bool:
    known = truth["currency"] is not None and truth["total_due"] is not None
    clear = truth["pay_status"] == "open" and not truth["hybrid_mismatch"]
    return known and clear and Decimal(truth["total_due"]) > 0


def is_open(result: Result) -> bool:
    return isinstance(result, Extraction) and result.fields.pay_status == "open"


def test_every_payable_invoice_with_embedded_xml_is_open_with_exactly_its_amount() -> None:
    wanted = [item for item in invoices() if item[0]["embedded_xml"] and payable(item[0])]
    assert len(wanted) == 28
    for truth, result in wanted:
        assert isinstance(result, Extraction), truth["file"]
        found = (result.fields.pay_status, result.fields.total_due, result.fields.currency)
        assert found == ("open", truth["total_due"], truth["currency"]), truth["file"]


def test_nothing_that_must_be_held_is_open_and_no_open_amount_is_wrong() -> None:
    for truth, result in invoices():
        if isinstance(result, Extraction) and result.fields.pay_status == "open":
            assert payable(truth), truth["file"]
            assert result.fields.total_due == truth["total_due"], truth["file"]
            assert result.fields.currency == truth["currency"], truth["file"]


def test_every_text_only_invoice_that_is_payable_is_open() -> None:
    wanted = [item for item in invoices() if not item[0]["embedded_xml"] and payable(item[0])]
    assert len(wanted) == 13
    assert [truth["file"] for truth, result in wanted if not is_open(result)] == []


def test_held_invoices_say_why() -> None:
    for truth, result in invoices():
        if truth["pay_status"] != "open":
            assert isinstance(result, Extraction), truth["file"]
            assert result.fields.pay_status == truth["pay_status"], truth["file"]
        elif truth["hybrid_mismatch"]:
            assert isinstance(result, Extraction)
            assert result.fields.pay_status == "hybrid_mismatch"


@pytest.mark.parametrize(
    ("field", "missed_max"),
    [("invoice_number", 0), ("seller", 1), ("due_date", 0), ("iban", 1), ("iban_valid", 1)],
)
def test_fields_agree_with_the_truth(field: str, missed_max: int) -> None:
    """The misses allowed are one document whose seller and account stand in a picture."""
    missed = [
        truth["file"]
        for truth, result in invoices()
        if isinstance(result, Extraction)
        and truth[field] is not None
        and getattr(result.fields, field) != truth[field]
    ]
    assert len(missed) <= missed_max, missed


@pytest.mark.soak  # the same files go through whole runs in test_corpus
def test_bad_files_end_in_a_result_or_a_reason() -> None:
    bad = outcomes("bad_pdfs", "manifest.jsonl", extract)
    assert len(bad) == 80
    for item, result in bad:
        assert isinstance(result, Extraction | ExtractionError), item["file"]
    assert not [item["file"] for item, result in bad if is_open(result)]
