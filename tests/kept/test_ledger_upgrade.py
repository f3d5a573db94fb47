"""Accounts of releases without ledgers: an upgrade seals them, shared ones in a house log."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.evidence import bundles, signer
from engine.evidence.fsck.audit import audit
from engine.management import schema
from engine.models import Workspace
from engine.runtime.group_commit import Job, committed
from engine.runtime.transaction import Commit
from engine.store import ledgers, log_chain, records
from nanovm_core import verify
from nanovm_core.ledger.value import Ledger, Used, json_of
from tests.kept.conftest import at_both_ends
from tests.kept.folder import Kept
from tests.kit.databases import on_sqlite_alone

pytestmark = on_sqlite_alone


def change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "app.sqlite3")) as database, database:
        database.execute(statement, values)


@at_both_ends
def test_accounts_of_before_are_sealed_with_the_note(kept: Kept, data: Path) -> None:
    if kept.schema >= 5:
        pytest.skip("its ledgers are sealed already")
    add = 'INSERT INTO pipeline_budget (account, "limit", reserved, spent) VALUES (?, ?, ?, ?)'
    change(data, add, "global/EUR", 900, 20, 100)
    bad = kept.logs["other"]
    change(data, "UPDATE pipeline_workspace SET accounts = ? WHERE origin = ?", b"{", bad)
    schema.migrate()
    house, main = ledgers.house(), Workspace.objects.get(origin=kept.logs["main"])
    assert house is not None
    shared = Ledger(limits={"global/EUR": 900}, accounts={"global/EUR": Used(20, 100)})
    assert ledgers.stored(house) == shared
    found = ledgers.stored(main)
    assert found is not None
    assert found.accounts["workspace/EUR"].spent > 0
    assert found.limits["workspace/EUR"] > 0
    for log, value in ((house, shared), (main, found)):
        note = records.body_of(log_chain.read_chain(log.id)[-1].data)
        assert (note["kind"], note["ledger"]) == ("upgraded", json_of(value))
    assert ledgers.stored(Workspace.objects.get(origin=bad)) is not None
    assert audit().exit_status == 0


@at_both_ends
def test_a_settlement_above_its_reservation_folds_and_verifies_as_before(
    kept: Kept, data: Path, tmp_path: Path
) -> None:
    """As other releases said it: less is released than nothing."""
    schema.migrate()
    main = Workspace.objects.get(origin=kept.logs["main"])
    before, name = ledgers.fold_of(main).value, "agent/tokens@payer"
    said = (
        {"reserved": {name: 100}},
        {"spent": {name: 250}, "released": {name: -150}},
        {"reserved": {name: 7}},
    )

    def on_log(commit: Commit) -> None:
        [found] = commit.logs.values()
        for budget in said:
            commit.seal(found, "budget", {"budget": budget}, actor="runtime")

    committed(Job(on_log, logs=(main.id,)))
    main.refresh_from_db()
    fold = ledgers.fold_of(main)
    assert (fold.sure, fold.value) == (True, ledgers.stored(main))
    assert fold.value.accounts == {**before.accounts, name: Used(7, 250)}
    file = tmp_path / "log.zip"
    bundles.write_bundle(main, None, file, signer.checkpoint(main.id))
    assert verify.main([str(file), "--key", kept.vkeys[main.origin]]) in (0, 3)
    assert audit().exit_status == 0
