"""A data folder of each release goes on under this one: rows, logs, runs, proofs."""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.migrations.loader import MigrationLoader

from engine.evidence.fsck.audit import audit
from engine.management import schema, upgrade
from engine.models import Run, Schema, Secret, Workspace
from engine.runtime import api
from engine.store import log_chain, records, state_file
from engine.vault import secret_store
from engine.vault.secret_store import TOMBSTONE
from nanovm_core import verify
from nanovm_core.core import lifecycle as life
from tests.engine.privacy.test_erasure import sightings
from tests.kept.conftest import at_both_ends, from_the_oldest
from tests.kept.folder import Kept, kept_folders, unpack
from tests.kept.story import at_work
from tests.kit.databases import Database, on_sqlite_alone
from tests.kit.house import House, reason, succeeded

pytestmark = on_sqlite_alone  # a folder has its file; the rest is in tests/engine/ops

OURS = {"pipeline", "invoices", "dashboard", "sabotage", "gate"}
# Of a log's row what grows with it, and the time of its last turn, which begins anew (schema 7).
GROWS = ("size", "log_length", "log_head", "edge", "accounts", "ledger", "served_ms")
Rows = Mapping[str, list[dict[str, Any]]]


def rows(folder: Path) -> Rows:
    """Every row of every table, by the names of its columns; without what grows with a log."""
    with closing(sqlite3.connect(folder / "app.sqlite3")) as database:
        database.row_factory = sqlite3.Row
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = {
            name: [dict(each) for each in database.execute(f'SELECT * FROM "{name}"')]
            for (name,) in tables.fetchall()
            if name != "sqlite_sequence"
        }
    terms = {each["digest"]: each for each in found["pipeline_terms"] if "digest" in each}
    if terms:  # since schema 10 runs name them
        runs = found["pipeline_run"]
        found["pipeline_terms"] = [
            {**terms[each["terms_id"]], "run_id": each["id"]} for each in runs
        ]
    for each in found["pipeline_workspace"]:
        for name in GROWS:
            each.pop(name, None)
    return found


def layout(folder: Path) -> list[tuple[str, str]]:
    """Every table, index and trigger, as the database has it."""
    with closing(sqlite3.connect(folder / "app.sqlite3")) as database:
        query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        return [*database.execute(query)]


def missing(before: Rows, after: Rows) -> list[str]:
    """Rows that are not there any more, or not as they were, but for columns that came."""
    return [
        f"{table}: {row}"
        for table, old in before.items()
        for row in old
        if not any(row.items() <= each.items() for each in after.get(table, []))
    ]


def notes(origin: str) -> list[dict[str, Any]]:
    """What the ``upgraded`` envelopes of a log say, by its own chain."""
    log = Workspace.objects.get(origin=origin)
    said = (records.body_of(each.data) for each in log_chain.read_chain(log.id))
    return [each["in"] for each in said if each["kind"] == "upgraded"]


def expected(kept: Kept) -> list[dict[str, Any]]:
    """What each log of a folder says after it was upgraded in one go."""
    said = {"from": kept.schema, "to": schema.SCHEMA, "release": schema.RELEASE}
    return [said] if kept.schema < schema.SCHEMA else []


def test_the_newest_folder_is_of_this_schema() -> None:
    """A release that adds a migration raises SCHEMA and makes its folder: see CONTRIBUTING.md."""
    newest = kept_folders()[-1]
    with tempfile.TemporaryDirectory() as name:
        assert unpack(newest, Path(name)).schema == schema.SCHEMA
        applied = rows(Path(name))["django_migrations"]
    there = {(each["app"], each["name"]) for each in applied}
    assert there == {each for each in MigrationLoader(None).disk_migrations if each[0] in OURS}


@at_both_ends
def test_a_folder_is_upgraded_to_the_layout_of_a_new_one_and_goes_on(
    kept: Kept, data: Path, tmp_path: Path, migrated: Database
) -> None:
    before = rows(data)
    known = {each: known_of(data, each, tmp_path) for each in kept.logs.values()}
    schema.migrate()
    assert missing(before, rows(data)) == []
    assert layout(data) == layout(Path(migrated.name).parent)
    for origin in kept.logs.values():
        assert notes(origin) == expected(kept)
    assert Schema.objects.latest("version").release == schema.RELEASE
    with at_work(data) as house:
        check_runs(kept, house)
        for origin, note in known.items():
            bundle = str(note.with_suffix(".zip"))
            done = house.command("export_bundle", "--log", "--workspace", origin, "-o", bundle)
            assert done.returncode == 0, done.stderr
            before_it = ("--key", kept.vkeys[origin], "--known", str(note))
            assert verify.main([bundle, *before_it]) == 0
    assert sightings(house) == []


def known_of(folder: Path, origin: str, to: Path) -> Path:
    """A checkpoint of a log that a reader kept from before."""
    name = state_file.file_name(origin)
    kept = to / name
    kept.write_bytes((folder / "signer" / "logs" / name).read_bytes())
    return kept


def check_runs(kept: Kept, house: House) -> None:
    """What waited is approved and paid, what ran runs on, what was erased stays so."""
    runs = {name: Run.objects.get(id=run_id) for name, run_id in kept.runs.items()}
    assert succeeded(runs["suspended"]) == succeeded(runs["running"]) == []
    api.approve(kept.runs["suspended"], "visitor", api.hold_now(kept.runs["suspended"]))
    for name in ("suspended", "running"):
        assert (house.drive(runs[name]).state, reason(runs[name])) == (life.COMPLETED, ""), name
    for name in ("completed", "suspended", "running"):
        assert len(succeeded(runs[name])) == 1
    refs = [*Secret.objects.filter(run=runs["erased"]).values_list("ref", flat=True)]
    assert set(secret_store.read_all(refs).values()) == {TOMBSTONE}
    other = Workspace.objects.get(origin=kept.logs["other"])
    assert kept.revoked in {tool for _, tool in log_chain.revocations(other.id)}
    assert audit().exit_status == 0


@from_the_oldest
def test_an_upgrade_that_is_killed_is_done_by_the_next_start(
    kept: Kept, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill is a copy of the folder, taken in the middle; a layout above this one is imagined."""
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + 1)
    wrecks: list[Path] = []

    def copied_after(do: Callable[..., Any]) -> Callable[..., Any]:
        def done(*args: Any, **options: Any) -> None:
            do(*args, **options)
            wrecks.append(data.with_name(f"wreck-{len(wrecks)}"))
            shutil.copytree(data, wrecks[-1])

        return done

    with monkeypatch.context() as patch:
        for name in ("call_command", "_seal_notes", "_record", "upgrade"):
            patch.setattr(upgrade, name, copied_after(getattr(upgrade, name)))
        schema.migrate()
    assert len(wrecks) == 4
    for folder in wrecks:
        monkeypatch.setattr(settings, "NANOVM_DATA", folder)
        with Database(name=str(folder / "app.sqlite3")).in_use():
            schema.migrate()
            assert [notes(each) for each in kept.logs.values()] == [expected(kept)] * 2, folder
            recorded = Schema.objects.order_by("version").values_list("version", flat=True)
            assert [*recorded] == [kept.schema, schema.SCHEMA], folder
            assert audit().exit_status == 0
