"""Verify, receipt, bundle and verify.py: what a visitor takes along holds without the server."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from engine.evidence import liveness, signer, unsigned
from engine.evidence.signer import rounds
from engine.models import Envelope, Workspace
from engine.queries import evidence
from engine.queries.runs import RunHead
from engine.runtime import api
from engine.store import tree
from tests.dashboard.visitor import Visitor, by_code, words
from tests.kit.house import sql
from tests.kit.trees import exchange

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
    """What the page says to *Verify*."""
    response = visitor.post(f"/runs/{run.code}/audit/verify/", form)
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
    liveness.report_alive()
    page = words(visitor.read(f"/runs/{run.code}/"))
    assert "The next checkpoint is due in a second." in page
    assert f"0 of {run.length} signed" in page
    assert "Grade UNSIGNED" in verified(visitor, run)
    for path in ("receipt.json", "bundle.zip"):
        response = visitor.get(f"/runs/{run.code}/{path}")
        assert (response.status_code, response["Retry-After"]) == (503, "2")
        assert "Not signed yet" in words(response.content.decode())


def test_a_waiting_run_is_signed_within_a_minute(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    liveness.report_alive()
    assert "The next checkpoint is due by" in words(visitor.read(f"/runs/{run.code}/"))
    assert evidence.UNSIGNED_MS_MAX == rounds.UNSIGNED_MS_MAX
    assert evidence.URGENT == rounds.URGENT


def test_page_says_that_the_signer_is_silent_or_refuses(
    arrive: Callable[[], Visitor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    visitor = arrive()
    run = visitor.make(hold=True)
    assert "The signer is not running" in words(visitor.read(f"/runs/{run.code}/"))
    liveness.report_alive()
    unsigned.report(log_of(run).origin, tree._broken(0, 4))
    assert "The signer does not sign this log." in words(visitor.read(f"/runs/{run.code}/"))


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


def test_quarantined_run_is_never_verified_again(visitor: Visitor, signed: RunHead) -> None:
    sql(("UPDATE pipeline_run SET snapshot = '{}' WHERE id = %s", (signed.id.replace("-", ""),)))
    assert "DETECTED" in verified(visitor, signed)
    assert by_code(signed.code).quarantined
    assert "Its bundle stays INVALID." in verified(visitor, signed)
