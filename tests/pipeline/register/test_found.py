"""What finds a run: its words and its row in lists, through erasure, restore and damage."""

from pathlib import Path

import pytest
from django.db import transaction

from engine.evidence.fsck.audit import audit
from engine.evidence.restore import restore
from engine.models import Run, Workspace
from engine.privacy import erasure
from engine.runtime import api
from engine.vault import secret_store
from pipeline.models import Found, Listed
from pipeline.queries import run_list, search
from pipeline.queries.run_list import Asked
from pipeline.register import erasure as supplier_erasure
from pipeline.register import found, suppliers
from pipeline.register.details import Details
from samples import path
from tests.engine.privacy.test_erasure import CANARIES, paid
from tests.kit.databases import Backup
from tests.kit.house import House, snapshot, sql
from tests.pipeline.register.test_duplicates import bill
from tests.pipeline.register.test_pointing import TURKISH, first_paid, pointed

REASON = "art17-1-a"
QUOKKA = "quokkabeam"


def hits(workspace: Workspace, q: str) -> list[str]:
    """The codes of the runs that a search finds."""
    typed = search.cleaned(q)
    assert search.fault(typed) == ""
    return [each.code for each in run_list.page(workspace, Asked(q=typed)).runs]


def acme(house: House) -> Run:
    """A run over EUR 1,284.50 of Acme Tools Ltd."""
    return house.run(bill("RE-2026/0842", total="1,284.50"))


@pytest.mark.parametrize(
    ("q", "is_hit"),
    [
        *((each, True) for each in ("acme", "ACM", "Tools acm", "ＡＣＭＥ", "ácme", "Acme-Tools")),
        *((each, True) for each in ("RE-2026/0842", "re 2026 842", "ｒｅ2026-842")),
        *((each, True) for each in ("1284.50", "1,284.50", "EUR 1,284.50", "1.284,50", "€1284.5")),
        *((each, True) for each in ("acme EUR 1,284.50", "acme re-2026/842 eur")),
        *((each, False) for each in ("ac", "cme", "acme zebra", "RE-2026/08", "RE-2026/0843")),
        *((each, False) for each in ("1284.51", "USD 1,284.50", "1,284", "pi_", "12.8450")),
        *((each, False) for each in ("' OR 1=1", "\u202eemca", "\ud800x", "%", "*", "acm_e")),
    ],
)
def test_a_run_is_found_by_what_people_call_it(house: House, q: str, is_hit: bool) -> None:
    run = house.once(acme)
    if search.fault(search.cleaned(q)):
        assert not is_hit
    else:
        assert hits(run.workspace, q) == [run.code] * is_hit


def test_codes_payments_and_no_other_workspace(house: House) -> None:
    run = house.once(acme)
    other = house.run(bill("X-1", total="10.00"), workspace=run.workspace)
    payment = secret_store.read_all([str(snapshot(run).slots["payment"])]).popitem()[1]
    assert payment.startswith("pi_")
    for q in (payment, run.code, run.code.lower(), f" {run.code[:4]} "):
        assert hits(run.workspace, q) == [run.code]
    assert hits(run.workspace, "acme") == [other.code, run.code]
    theirs = house.run(bill("RE-2026/0842", total="1,284.50")).workspace
    assert run.code not in hits(theirs, "acme") + hits(theirs, run.code) + hits(theirs, payment)


def test_words_are_hashes_and_go_with_the_run(house: House, tmp_path: Path) -> None:
    run = paid(house)
    log, other = run.workspace, house.run(workspace=run.workspace)
    assert hits(log, QUOKKA) == hits(log, CANARIES["number"]) == [run.code]
    raw = (house.folder / "app.sqlite3").read_bytes().lower() if not house.database.url else b""
    assert [each for each in (b"quokkab", b"zq9083", b"zq-9083", b"papyrus") if each in raw] == []
    backup = Backup(house.folder, tmp_path / "away") if raw else None
    assert erasure.erase_run(str(run.id), REASON, "visitor").state == "done"
    kept = Found.objects.filter(run=other).count()
    for again in (False, True):
        if again and backup:  # an older backup knows the words, and the journal that they went
            backup.put_back()
            assert hits(log, QUOKKA) == [run.code]
            assert restore("operator").left == ()
        assert not Found.objects.filter(run=run).exists()
        assert hits(log, QUOKKA) == hits(log, CANARIES["number"]) == []
        assert hits(log, "648.80") == [run.code]  # which stays in the clear
        assert Found.objects.filter(run=other).count() == kept > 0
        assert audit().exit_status in (0, 3)


def test_one_erased_value_takes_all_words_of_the_run(house: House) -> None:
    run = paid(house)
    erasure.erase_ref(str(snapshot(run).slots["iban"]), REASON, "visitor")
    assert hits(run.workspace, QUOKKA) == [run.code]  # which is not searched
    assert audit().damage == ()
    erasure.erase_ref(str(snapshot(run).slots["invoice_number"]), REASON, "visitor")
    assert hits(run.workspace, QUOKKA) == []
    assert audit().damage == ()


def test_erasing_a_supplier_leads_its_words_nowhere_for_good(house: House) -> None:
    run = paid(house)
    log = run.workspace
    later = house.paused("charge", workspace=log)
    mine = {each: snapshot(each).slots["supplier"] for each in (run, later)}
    for each in mine:
        row = suppliers.by_id(log, str(mine[each])).row
        assert Found.objects.filter(run=each).exists()
        supplier_erasure.erase_supplier(row, REASON, "visitor")
        assert not Found.objects.filter(run=each).exists()
        assert hits(log, "acme") == [later.code] * (each == run)  # the other one is found as before
    api.kill(str(later.id), "visitor")
    found.fill()
    assert not Found.objects.exists()
    assert audit().damage == ()


def test_what_a_person_points_at_is_found_in_place_of_what_was_read(house: House) -> None:
    run = first_paid(house)
    for q in ("F-2026/17", TURKISH, "1234", "ana mak"):
        assert hits(run.workspace, q) == [run.code]
    held = house.run(bill(""), workspace=run.workspace)
    pointed(held, value_invoice_number="N-77")
    assert hits(run.workspace, "N-77") == [held.code]
    assert audit().damage == ()
    now = snapshot(run)
    number = snapshot(held).slots["invoice_number"]
    with transaction.atomic():
        found.record(run, now, now._replace(slots={**now.slots, "invoice_number": number}))
    assert (hits(run.workspace, "F-2026/17"), len(hits(run.workspace, "N-77"))) == ([], 2)


DAMAGE = {
    "a word went": (
        "DELETE FROM pipeline_found WHERE word = (SELECT min(word) FROM pipeline_found)"
    ),
    "a word came": (
        "INSERT INTO pipeline_found SELECT workspace_id, 'x', run_id FROM pipeline_listed"
    ),
    "another amount": "UPDATE pipeline_listed SET amount_minor = 1",
    "another state": "UPDATE pipeline_listed SET state = 'failed'",
    "not paid": "UPDATE pipeline_listed SET paid = false",
    "no row": "DELETE FROM pipeline_listed",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_the_audit_names_rows_that_are_not_the_runs(house: House, what: str) -> None:
    run = house.once(acme)
    assert audit().damage == ()
    sql((DAMAGE[what], ()))
    (damage,) = audit().damage
    assert (damage.code, damage.run) == ("PII-002", str(run.id))
    assert ("words" if "word" in what else "row in lists") in damage.text


def test_an_upgrade_finds_the_runs_that_are_there(house: House) -> None:
    run = house.once(acme)
    before = {*Found.objects.values_list("word")}, {*Listed.objects.values_list()}
    sql(("DELETE FROM pipeline_found", ()), ("DELETE FROM pipeline_listed", ()))
    assert hits(run.workspace, "acme") == []
    found.fill()
    assert ({*Found.objects.values_list("word")}, {*Listed.objects.values_list()}) == before
    assert hits(run.workspace, "acme") == [run.code]


def test_a_list_is_sorted_by_the_register_and_summed_by_currency(house: House) -> None:
    first = house.once(acme)
    log = first.workspace
    others = {  # by what they are sorted after
        "Zebra Works": house.run(bill("Z-1", total="20.00", seller="Zebra Works"), workspace=log),
        "Äpfel und mehr": house.run(path("plain").read_bytes(), workspace=log),
    }
    entry = suppliers.by_id(log, str(snapshot(others["Äpfel und mehr"]).slots["supplier"]))
    suppliers.change(entry, Details.of({**entry.details.texts(), "name": "Äpfel"}), actor="v")
    codes = {name: run.code for name, run in others.items()} | {"Acme": first.code}
    due = [codes["Acme"], codes["Äpfel und mehr"], codes["Zebra Works"]]
    pages = [run_list.page(log, Asked(sort="supplier", page=n), size=1) for n in (1, 2, 3)]
    assert [each.code for page in pages for each in page.runs] == due
    whole = run_list.page(log, Asked(sort="supplier"))
    assert [each.code for each in whole.runs] == due
    assert [
        each.code for some in run_list.every(log, Asked(sort="supplier")) for each in some
    ] == due
    assert (whole.total, whole.states["success"]) == (3, 2)
    assert len(whole.paid) == 1
    assert run_list.page(log, Asked(state="suspended")).paid == ()
    by_amount = [
        each.slots["amount_minor"] for each in run_list.page(log, Asked(sort="amount")).runs
    ]
    assert by_amount == [128_450, 128_450, 2_000]


def test_a_search_that_is_none_says_so() -> None:
    for typed, says in (("x" * 101, "too long"), ("a " * 11, "too long"), ("' = '", "no letter")):
        assert says in search.fault(search.cleaned(typed))
    assert search.cleaned("a\u202eb\x00\ud800\nc") == "ab c"
