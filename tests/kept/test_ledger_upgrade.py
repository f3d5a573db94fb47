"""Accounts of releases without ledgers: an upgrade seals them, shared ones in a house log."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.evidence.fsck.audit import audit
from engine.management import schema
from engine.models import Workspace
from engine.store import ledgers, log_chain, records
from nanovm_core.ledger.value import Ledger, Used, json_of
from tests.kept.folder import Kept
from tests.kit.databases import on_sqlite_alone

pytestmark = on_sqlite_alone


def change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "app.sqlite3")) as database, database:
        database.execute(statement, values)


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
