"""An upgrade is whole or was never begun, wherever it dies; the next start does all of it."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from pipeline.evidence import signer
from pipeline.evidence.fsck.audit import audit
from pipeline.models import Run, Schema, Workspace
from pipeline.ops import schema, upgrade
from pipeline.ops.processes import ProcessError
from pipeline.store import workspaces
from tests.crash.points import hooked, said, watched
from tests.kept.conftest import Become
from tests.kept.folder import Kept
from tests.kept.next_release.apps import RELEASE
from tests.kept.story import at_work
from tests.kept.test_upgrade import expected, notes, rows
from tests.pipeline.databases import Database, on_sqlite_alone

pytestmark = on_sqlite_alone  # where a folder can be copied as a kill leaves it

STAGES = (  # of an upgrade: each is a place to die before and after
    *((MigrationExecutor, name) for name in ("apply_migration", "record_migration")),
    *((upgrade, name) for name in ("call_command", "_seal_notes", "_record", "upgrade")),
    (workspaces, "seal"),
)


def told(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, between two points."""

    def done(*args: Any, **options: Any) -> Any:
        said(f"before {name}")
        answer = do(*args, **options)
        said(f"after {name}")
        return answer

    return done


def state(folder: Path) -> bytes:
    """A digest of all that lasts; SQLite's index of its own log does not."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.endswith(("-shm", ".lock")):
            found.update(f"\0{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return found.digest()


def test_an_upgrade_that_dies_at_any_point_is_done_by_the_next_start(
    kept: Kept, data: Path, become_next: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrecks: dict[bytes, tuple[str, Path]] = {}
    become_next()
    for place, name in STAGES:
        monkeypatch.setattr(place, name, told(name, getattr(place, name)))

    def keep(number: int, point: str) -> None:
        if (digest := state(data)) not in wrecks:
            folder = data.with_name(f"wreck-{number}")
            shutil.copytree(data, folder)
            wrecks[digest] = (f"point {number}, {point}", folder)

    with hooked(), watched(data, keep) as watch:
        schema.migrate()
    sealed = watch.names.count("after seal")
    assert (sealed, watch.names[-1]) == (len(kept.logs), "after upgrade")
    faults = []
    for point, folder in wrecks.values():
        monkeypatch.setattr(settings, "NANOVM_DATA", folder)
        with Database(name=str(folder / "app.sqlite3")).in_use():
            schema.migrate()
            faults += [f"{point}: {each}" for each in faults_of(kept)]
    assert faults == []
    assert len(wrecks) > 1  # as it was before, and as it is after the commit


def faults_of(kept: Kept) -> list[str]:
    """What does not hold after the upgrade was finished."""
    found = {
        f"the notes are {found}"
        for found in map(notes, kept.logs.values())
        if found != expected(kept, schema.SCHEMA, RELEASE)
    }
    recorded = [*Schema.objects.order_by("version").values_list("version", flat=True)]
    if recorded != [kept.schema, schema.SCHEMA]:
        found.add(f"the recorded versions are {recorded}")
    if Run.objects.extra(where=["label IS NOT code"]).exists():
        found.add("rows are as they were")
    return sorted({*found, *(str(each) for each in audit().damage)})


def test_a_migration_that_fails_is_undone_and_says_where_the_data_is(
    kept: Kept, data: Path, become_next: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(data)
    become_next()
    monkeypatch.setattr(settings, "NEXT_FAILS", True, raising=False)
    with pytest.raises(ProcessError) as caught:
        schema.migrate()
    text = str(caught.value)
    assert f"could not be upgraded from schema {kept.schema} to {schema.SCHEMA}. ValueError" in text
    assert "Nothing is lost: all of the upgrade was undone, and the database is as nanovm" in text
    assert text.endswith(f"the database is {data}.")
    assert rows(data) == before
    monkeypatch.setattr(settings, "NEXT_FAILS", False)
    schema.migrate()
    assert faults_of(kept) == []


def test_a_backup_from_before_the_upgrade_is_upgraded_and_restored(
    kept: Kept, data: Path, become_next: Become
) -> None:
    become_next()
    before = (data / "app.sqlite3").read_bytes()
    with at_work(data) as house:
        schema.migrate()
        for each in Workspace.objects.all():
            signer.checkpoint(each.id)
        connections.close_all()
        (data / "app.sqlite3").write_bytes(before)
        assert house.command("fsck").returncode == 1
        done = house.command("restore")
        assert (done.returncode, done.stderr) == (0, "")
        assert {each.explained for each in audit().damage} == {True}
    assert Workspace.objects.exclude(successor=None).count() == len(kept.logs)
