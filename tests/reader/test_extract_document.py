"""What a document is refused for, and what an answer of the child has to be."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutations.readers import lack_guards_too
from reader import (
    PAGES_MAX,
    REASONS,
    SIZE_BYTES_MAX,
    Extraction,
    ExtractionError,
    Invoice,
    check_document,
    extract,
)
from reader.invoice import Evidence
from tests.kit.pdf_builder import empty_pages_pdf, encrypted_pdf, invoice_lines, text_pdf
from tests.kit.reading import read_here

lack_guards_too()  # in a trial that removes a guard of the reader


def code_of(data: bytes, read: Callable[[bytes], Extraction] = extract) -> str:
    with pytest.raises(ExtractionError) as caught:
        read(data)
    assert caught.value.text == REASONS[caught.value.code]
    return caught.value.code


def test_size_and_place_of_the_header_hold_at_the_limit_and_one_above() -> None:
    check_document(b"%PDF-".ljust(SIZE_BYTES_MAX, b" "))
    with pytest.raises(ExtractionError, match="DOC-002"):
        check_document(b"%PDF-".ljust(SIZE_BYTES_MAX + 1, b" "))
    check_document(b" " * 1019 + b"%PDF-")
    with pytest.raises(ExtractionError, match="DOC-003"):
        check_document(b" " * 1020 + b"%PDF-")


@pytest.mark.parametrize(("data", "code"), [
    (b"", "DOC-001"), (b"PK\x03\x04 a zip", "DOC-003"), (b"%PDF-1.7 and nothing else", "DOC-009"),
    (empty_pages_pdf(0), "DOC-005"), (encrypted_pdf("secret"), "DOC-004"),
    (text_pdf([]), "DOC-010"),
])  # fmt: skip
def test_bad_document_has_its_own_reason(data: bytes, code: str) -> None:
    assert code_of(data, read_here) == code


def test_page_limit_holds_at_the_limit_and_one_above() -> None:
    blank: list[list[str]] = [[]]
    assert extract(text_pdf(invoice_lines(), *blank * (PAGES_MAX - 1))).pages == PAGES_MAX
    assert code_of(text_pdf(invoice_lines(), *blank * PAGES_MAX)) == "DOC-006"


def test_empty_user_password_is_no_protection() -> None:
    assert read_here(encrypted_pdf("")).fields.pay_status == "open"


def test_answer_round_trips_and_rubbish_does_not() -> None:
    extraction = read_here(text_pdf(invoice_lines()))
    assert Extraction.from_json(extraction.to_json()) == extraction
    good = extraction.to_json()
    changed = [good.replace("12000", '"12000"'), good.replace("open", "o")]
    for bad in ("", "[]", "{}", "null", *changed):
        with pytest.raises(ValueError, match=r"\w"):
            Extraction.from_json(bad)


@settings(derandomize=True, max_examples=10)
@given(
    st.text(max_size=30), st.one_of(st.none(), st.text(max_size=30)), st.integers(-(10**15), 10**15)
)
def test_any_extraction_survives_its_json(text: str, maybe: str | None, amount: int) -> None:
    fields = Invoice(
        currency="EUR", total_due="1.00", amount_minor=amount, seller=maybe, pay_status="paid"
    )
    extraction = Extraction(
        fields=fields,
        evidence={"seller": Evidence(source="text", page=1, label="x")},
        notes=text,
        source="text",
        pages=1,
    )
    assert Extraction.from_json(extraction.to_json()) == extraction


def test_reasons_say_what_to_do_and_hold_nothing_of_a_document() -> None:
    for code, text in REASONS.items():
        assert code.startswith("DOC-")
        assert text.count(".") >= 2
        assert "{" not in text
