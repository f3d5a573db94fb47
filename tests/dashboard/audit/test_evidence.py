"""Verify, receipt, bundle and verify.py: what a visitor takes along holds without the server."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from dashboard.audit import evidence as evidence_pages
from engine.evidence import bundles, published, signer
from engine.models import Envelope, Run, Workspace
from engine.queries.runs import RunHead, body_of
from engine.runtime import api
from engine.store import tree
from nanovm_core import verify
from tests.dashboard.visitor import Visitor, by_code, words
from tests.kit.house import sql
from tests.kit.trees import exchange
from tests.sabotage.runs import rows_hash

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture(scope="module")
def signed(own_folder: None, paid: RunHead) -> RunHead:
    """A run that paid, and a checkpoint that covers it."""
    signer.checkpoint(log_of(paid).id)
    return paid


@pytest.fixture
def visitor(db: None, owner: Visitor) -> Visitor:
    """The owner: what a test changes is rolled back."""
    return owner


def log_of(run: RunHead) -> Workspace:
    return Workspace.objects.get(pk=run.workspace)


def vkey(run: RunHead) -> str:
    return signer.verifiers(log_of(run).origin)[0].vkey


def verified(visitor: Visitor, run: RunHead, status: int = 200, **form: str) -> str:
    """What the page of the verification says."""
    response = visitor.get(f"/runs/{run.code}/audit/verify/", form)
    assert response.status_code == status
    return words(response.content.decode())


def taken(visitor: Visitor, path: str, folder: Path) -> Path:
    """A download, in a file of the name that the server gives it."""
    response: Any = visitor.get(path)
    assert response.status_code == 200
    file = folder / str(response["Content-Disposition"].split('"')[1])
    file.write_bytes(response.getvalue())
    return file


def test_verify_without_a_key_is_unpinned_and_with_the_kept_one_signed(
    visitor: Visitor, signed: RunHead
) -> None:
    page = verified(visitor, signed)
    assert f"Verified {signed.length} of {signed.length}" in page
    assert "Grade Not verified against your own key (UNPINNED)" in page
    assert "missed" in page  # what it does not prove stands beside it
    assert "proves nothing against the operator" in page
    assert page.count("in the signed tree") == signed.length
    page = verified(visitor, signed, key=vkey(signed))
    assert "Grade SIGNED" in page
    assert "never WITNESSED" in page


def test_verify_under_another_key_is_invalid_and_nonsense_is_no_key(
    visitor: Visitor, signed: RunHead
) -> None:
    page = verified(visitor, signed, status=422, key="nonsense")
    assert "The key or the checkpoint is not valid." in page
    other = signer.verifiers("nanovm.localhost/other")[0].vkey
    page = verified(visitor, signed, key=other)
    assert "Grade INVALID" in page
    assert "is not signed by your key" in page


def test_verify_sees_what_the_chain_alone_misses(visitor: Visitor, signed: RunHead) -> None:
    [leaf] = exchange(Envelope.objects.filter(run=signed.id).order_by("-n")[:1], at_ms=1)
    sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", (leaf, signed.id.replace("-", ""))))
    assert api.check(signed.id) is None  # the chain holds in itself
    page = verified(visitor, signed)
    assert f"The first damaged event is #{signed.length}" in page
    assert "This event is not the one that was signed" in page
    assert "Grade INVALID" in page


def test_before_the_first_checkpoint_the_page_says_when_it_is_due(
    arrive: Callable[[], Visitor],
) -> None:
    visitor = arrive()
    run = visitor.make()
    published.report_alive()
    page = words(visitor.read(f"/runs/{run.code}/"))
    assert "The next checkpoint is due in a second." in page
    assert f"0 of {run.length} signed" in page
    assert "Grade UNSIGNED" in verified(visitor, run)
    for path in ("receipt.json", "bundle.zip"):
        response = visitor.get(f"/runs/{run.code}/{path}")
        assert (response.status_code, response["Retry-After"]) == (503, "1")
        page = response.content.decode()
        assert "Not signed yet" in words(page)
        assert "Next checkpoint in 1 s." in words(page)
        assert '<meta http-equiv="refresh" content="1">' in page
        assert f'href="/runs/{run.code}/export.ndjson"' in page


def test_a_waiting_run_is_signed_when_nothing_is_added_for_two_seconds(
    arrive: Callable[[], Visitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = arrive()
    signer.checkpoint(log_of(visitor.make()).id)  # so that nothing urgent is unsigned
    run = visitor.make(hold=True)
    published.report_alive()
    assert "The next checkpoint is due by" in words(visitor.read(f"/runs/{run.code}/"))
    sealed_ms = max(body_of(row.bytes)["at_ms"] for row in Envelope.objects.filter(run=run.id))
    monkeypatch.setattr(evidence_pages, "now_ms", lambda: sealed_ms + 500)
    page = visitor.read(f"/runs/{run.code}/bundle.zip", 503)
    assert '<meta http-equiv="refresh" content="3">' in page  # due in 1.5 s, and a second to do it
    assert signer.due(sealed_ms + 1_999) == []
    assert signer.due(sealed_ms + 2_000) == [log_of(run).id]


def test_what_is_not_signed_says_so_in_its_name(
    arrive: Callable[[], Visitor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    visitor = arrive()
    run = visitor.make("over_limit")
    file = taken(visitor, f"/runs/{run.code}/export.ndjson", tmp_path)
    assert file.name == f"run-{run.code}-unsigned.ndjson"
    assert verify.main([str(file)]) == 3
    assert "UNPROVEN: the export of a run has no proofs" in capsys.readouterr().out
    signer.checkpoint(log_of(run).id)
    visitor.command(run, "decline")
    after = by_code(run.code)
    file = taken(visitor, f"/runs/{run.code}/bundle.zip", tmp_path)
    assert file.name == f"run-{run.code}-first-{run.length}-of-{after.length}.zip"
    assert verify.main([str(file), "--key", vkey(run)]) == 0
    assert "it has not ended" in capsys.readouterr().out


def test_page_says_that_the_signer_is_silent_or_refuses(
    arrive: Callable[[], Visitor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    visitor = arrive()
    run = visitor.make(hold=True)
    assert "The signer is not running" in words(visitor.read(f"/runs/{run.code}/"))
    published.report_alive()
    published.report(log_of(run).origin, tree._broken(0, 4))
    assert "The signer does not sign this log." in words(visitor.read(f"/runs/{run.code}/"))
    for path in (f"/runs/{run.code}", f"/audit/{log_of(run).origin.rpartition('/')[2]}"):
        page = visitor.read(f"{path}/bundle.zip", 503)
        assert "The signer does not sign this log." in words(page)
        assert "refresh" not in page


DOWNLOADS = {
    "receipt.json": 0,
    "receipt.json?event=3": 0,
    "bundle.zip": 0,
    "export.ndjson": 3,  # a run's chain has no proofs that tie it to the log: UNPROVEN
}


@pytest.mark.parametrize("path", sorted(DOWNLOADS))
def test_what_is_taken_along_holds_for_a_stranger(
    visitor: Visitor, signed: RunHead, tmp_path: Path, path: str
) -> None:
    file = taken(visitor, f"/runs/{signed.code}/{path}", tmp_path)
    assert signed.code in file.name
    program = taken(visitor, "/verify.py", tmp_path)
    command = [sys.executable, "-I", str(program), str(file), "--key", vkey(signed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert done.returncode == DOWNLOADS[path], done.stdout + done.stderr
    assert "What this does not prove" in done.stdout


def test_receipt_names_its_event(visitor: Visitor, signed: RunHead) -> None:
    held = visitor.get(f"/runs/{signed.code}/receipt.json?event=2").json()
    assert (held["run"], held["n"]) == (signed.id, 1)
    assert {*held} == {"run", "n", "seq", "canonical_hash", "checkpoint", "proof"}
    newest = visitor.get(f"/runs/{signed.code}/receipt.json").json()
    assert newest["canonical_hash"] == signed.head
    for event in ("0", str(signed.length + 1), "9" * 15):
        visitor.read(f"/runs/{signed.code}/receipt.json?event={event}", 404)


def test_a_tree_that_proves_nothing_any_more_is_said(visitor: Visitor, signed: RunHead) -> None:
    log = log_of(signed).id.hex
    for table in ("node", "envelope"):
        sql((f"UPDATE pipeline_{table} SET hash = '' WHERE workspace_id = %s", (log,)))
    sql(("UPDATE pipeline_envelope SET bytes = '' WHERE workspace_id = %s", (log,)))
    for path in ("receipt.json", "bundle.zip"):
        page = words(visitor.read(f"/runs/{signed.code}/{path}", 409))
        assert "The stored proof is damaged" in page
        assert "LOG-008" in page


def test_a_get_of_the_verification_changes_nothing_and_its_form_seals_the_damage(
    visitor: Visitor, signed: RunHead
) -> None:
    sql(("UPDATE pipeline_run SET snapshot = '{}' WHERE id = %s", (signed.id.replace("-", ""),)))
    before = rows_hash(log_of(signed))
    path = f"/runs/{signed.code}/audit/verify/"
    page = visitor.read(path)
    assert ("DETECTED" in page, "nothing is recorded yet" in page) == (True, True)
    assert visitor.head(path).status_code == 200
    assert rows_hash(log_of(signed)) == before
    assert not by_code(signed.code).quarantined
    page = visitor.post(path).content.decode()
    assert "LOG-" in words(page)
    assert "nothing is recorded yet" not in page
    assert by_code(signed.code).quarantined


def test_quarantined_run_is_never_verified_again(visitor: Visitor, signed: RunHead) -> None:
    sql(("UPDATE pipeline_run SET snapshot = '{}' WHERE id = %s", (signed.id.replace("-", ""),)))
    visitor.post(f"/runs/{signed.code}/audit/verify/")
    assert by_code(signed.code).quarantined
    assert "DETECTED" in verified(visitor, signed)
    assert "Its bundle stays INVALID." in verified(visitor, signed)


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "paid": ({"sample": "plain"}, "decided by rule within-limit (triggered by model)"),
    "approved": ({"sample": "over_limit"}, "approved\n    decided by visitor"),
    "declined": ({"sample": "over_limit"}, "declined\n    decided by visitor"),
    "attacked": (
        {"sample": "injected", "model": "gullible"},
        "refused\n    decided by rule CAP-001 (triggered by model)\n    proposal ",
    ),
    "erased": ({"sample": "plain"}, "to erased"),
}


@pytest.mark.parametrize("end", ENDS)
def test_explain_says_who_decided_what_a_bundle_proves(
    arrive: Callable[[], Visitor], end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    visitor, (form, said) = arrive(), ENDS[end]
    run = visitor.make(**form)
    if end in ("approved", "declined"):
        visitor.command(run, end[:-1])
        run = visitor.driven(run.code)
    if end == "erased":
        visitor.erase(run)
    checkpoint, file = signer.checkpoint(log_of(run).id), tmp_path / "run.zip"
    stored = Run.objects.get(id=run.id)
    bundles.write_bundle(log_of(run), stored, file, checkpoint, disclosures=True)
    assert verify.main([str(file), "--key", vkey(run), "--explain"]) == 0
    text = capsys.readouterr().out
    assert said in text
    assert ("payment succeeded" in text) == (end in ("paid", "approved", "erased"))
    if end == "approved":
        assert 'EUR 18,400.00 (1840000 minor units)\n    to "' in text
        assert re.search('payment id "pi_[A-Za-z0-9_]+"\n', text)
    assert ("not disclosed" in text, "payment id erased" in text) == (False, end == "erased")


def test_report_answers_who_decided_in_the_words_of_the_runs_page(
    visitor: Visitor, signed: RunHead
) -> None:
    decided = "Decided by rule within-limit (Triggered by model)"
    page = visitor.read(f"/runs/{signed.code}/report/")
    said = words(page)
    assert "decided by rule within-limit" in words(visitor.read(f"/runs/{signed.code}/"))
    assert (decided in said, decided in verified(visitor, signed)) == (True, True)
    assert re.findall(r'data-label="#">(\d+)<', page) == [str(n + 1) for n in range(signed.length)]
    first = Envelope.objects.get(run=signed.id, n=0).hash
    for fact in (first, signed.head, vkey(signed), f"run-{signed.code}.zip --explain"):
        assert fact in said
