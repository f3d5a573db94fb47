"""The list of runs: its search, filters, sorting, totals and pages, and the same as a CSV file."""

import csv
import io
import re
from typing import Any

import pytest

from engine.models import Run, Secret
from engine.queries.runs import RunHead
from pipeline.queries import named, run_list
from pipeline.queries.named import Named
from tests.dashboard.visitor import Visitor, words

pytestmark = pytest.mark.usefixtures("db", "three")


@pytest.fixture(scope="module")
def three(paid: RunHead, held: RunHead, ready: RunHead) -> list[RunHead]:
    """A paid run, one on hold, and one that did not start, the oldest first."""
    return [paid, held, ready]


def codes(page: str) -> list[str]:
    rows = page.partition('aria-label="Your runs"')[2]
    return re.findall(r'data-label="Run"><a class="cell-link" href="/runs/([^/]+)/"', rows)


def table(visitor: Visitor, query: str = "") -> list[list[str]]:
    response: Any = visitor.get(f"/runs.csv{query}")
    assert response.status_code == 200, query
    text = b"".join(response.streaming_content).decode()
    return [*csv.reader(io.StringIO(text))]


def called(run: RunHead) -> Named:
    return named.of_runs([run])[run.id]


def test_a_row_says_supplier_number_amount_state_and_age(owner: Visitor, paid: RunHead) -> None:
    page = words(owner.read(f"/runs/?q={paid.code}"))
    name = called(paid)
    assert f"{paid.code} {name.supplier} {name.number} {name.amount} SUCCESS" in page
    assert re.search(r"SUCCESS \d+ \w+ ago", page)


def test_filters_are_counted_and_totals_are_those_of_what_matches(
    owner: Visitor, three: list[RunHead], paid: RunHead, held: RunHead
) -> None:
    page = owner.read("/runs/")
    assert codes(page) == [each.code for each in reversed(three)]
    said = words(page)
    for choice in ("Any state (3)", "READY (1)", "SUSPENDED (1)", "SUCCESS (1)", "FAILED (0)"):
        assert choice in said
    assert f"3 runs; paid: {called(paid).amount}" in said
    narrowed = owner.read("/runs/?state=suspended")
    assert codes(narrowed) == [held.code]
    assert "SUCCESS (1)" in words(narrowed)
    assert "1 run CSV" in words(narrowed)


def test_every_view_is_an_address_that_pages_and_file_keep(
    owner: Visitor, three: list[RunHead], monkeypatch: pytest.MonkeyPatch
) -> None:
    supplier = called(three[0]).supplier_id
    for query in ("sort=oldest", "sort=amount", "sort=supplier", "sort=state", "q=eur",
                  f"supplier={supplier}", "state=ready&sort=oldest"):  # fmt: skip
        whole = codes(owner.read(f"/runs/?{query}"))
        assert [row[0] for row in table(owner, f"?{query}")[1:]] == whole
        with monkeypatch.context() as patch:
            patch.setattr(run_list.page, "__defaults__", (1,))
            first = owner.read(f"/runs/?{query}")
            assert f'href="/runs.csv?{query.replace("&", "&amp;")}"' in first
            pages = [codes(owner.read(f"/runs/?{query}&page={n + 1}")) for n in range(len(whole))]
            assert pages == [[code] for code in whole]
            linked = re.findall(r'href="\?([^"]*page=\d+)"', first)
            assert len(linked) == max(0, len(whole) - 1)
            assert all(query in each.replace("&amp;", "&") for each in linked)
    assert codes(owner.read("/runs/?sort=amount"))[0] == three[1].code
    assert codes(owner.read("/runs/?page=999999")) == codes(owner.read("/runs/"))


def test_a_supplier_lists_its_invoices(owner: Visitor, paid: RunHead) -> None:
    name = called(paid)
    page = owner.read(f"/suppliers/{name.supplier_id}/")
    assert f'href="/runs/?supplier={name.supplier_id}"' in page
    assert f"{paid.code} · {name.supplier} · {name.number} · {name.amount}" in words(page)
    assert paid.code in codes(owner.read(f"/runs/?supplier={name.supplier_id}"))
    assert f"supplier “{name.supplier}”" in words(owner.read(f"/runs/?supplier={name.supplier_id}"))


def test_nobody_finds_another_ones_runs(visitor: Visitor, paid: RunHead) -> None:
    mine = visitor.make(hold=True)
    name = called(paid)
    for query in (f"q={paid.code}", f"q={name.number}", f"q={name.supplier[:5]}", "sort=supplier"):
        assert paid.code not in codes(visitor.read(f"/runs/?{query}"))
        assert {row[0] for row in table(visitor, f"?{query}")[1:]} <= {mine.code}
    page = visitor.read(f"/runs/?supplier={name.supplier_id}")
    assert "You have no such supplier." in words(page)
    assert table(Visitor()) == [table(visitor)[0]]


@pytest.mark.parametrize(
    "q",
    ["' OR 1=1 --", "zzzz", "%25", "%F0%9F%98%80 x", "%E2%80%AEtdrauq", "%ED%A0%80", "\\x00", "1e9",
     "٣٤", "'", "[]", "pi_1", "EUR", "EUR 99999999999999999999.99", "a b c d e f g h i", "re-%2A"],
)  # fmt: skip
def test_a_search_without_a_hit_says_what_was_searched(owner: Visitor, q: str) -> None:
    page = words(owner.read(f"/runs/?q={q}"))
    is_none = "no letter and no digit" in page
    if q == "EUR":
        assert "2 runs" in page
        return
    says = ("run codes", "pi_…", "amounts", "invoice numbers", "suppliers")
    assert is_none or all(each in page for each in says)
    assert "Clear all" in page
    assert "\u202e" not in page


def test_a_search_of_ten_thousand_characters_is_refused_in_a_sentence(owner: Visitor) -> None:
    page = words(owner.read(f"/runs/?q={'x' * 10_000}"))
    assert "The search is too long: it may have 100 characters and 10 words." in page
    assert len(page) < 3_000


def test_no_cell_of_the_file_is_a_formula_and_a_filter_that_is_none_has_no_file(
    owner: Visitor, paid: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = Named(supplier="=1+1", supplier_id="", number="@x", amount="", file_name="")
    names = {str(each): evil for each in Run.objects.values_list("id", flat=True)}
    monkeypatch.setattr(named, "of_runs", lambda runs: names)
    (row,) = table(owner, f"?q={paid.code}")[1:]
    assert row[1:3] == ["'=1+1", "'@x"]
    assert row[3:6] == ["1284.50", "EUR", "SUCCESS"]
    for query in ("state=x", "sort=x", "supplier=x", f"q={'x' * 101}"):
        assert owner.get(f"/runs.csv?{query}").status_code == 404


def test_a_damaged_value_hides_no_row(owner: Visitor, paid: RunHead) -> None:
    secrets = Secret.objects.filter(run_id=paid.id, slot__in=("payee", "seller"))
    assert secrets.update(ciphertext=b"x" * 40) == 2
    assert paid.code in codes(owner.read("/runs/"))
