"""An upgrade that dies at any point is finished by the next start: each log gets its note once."""

import hashlib
import shutil
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, connections

from pipeline.evidence import signer
from pipeline.evidence.fsck.audit import audit
from pipeline.models import Run, Schema, Workspace
from pipeline.ops import schema
from pipeline.ops.processes import ProcessError
from tests.crash.points import hooked, watched
from tests.kept.conftest import Become
from tests.kept.folder import Kept
from tests.kept.next_release.apps import RELEASE
from tests.kept.story import at_work
from tests.kept.test_upgrade import expected, notes, rows
from tests.pipeline.databases import Database, on_sqlite_alone

pytestmark = on_sqlite_alone  # where the points are; a server has no other transactions

POINTS_MIN = 12


def state(folder: Path) -> bytes:
    """A digest of all that lasts; SQLite's index of its own log does not."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.endswith(("-shm", ".lock")):
            found.update(f"\0{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return found.digest()


def test_an_upgrade_that_dies_at_any_point_is_finished_by_the_next_start(
    kept: Kept, data: Path, become_next: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrecks: dict[bytes, tuple[str, Path]] = {}
    become_next()

    def keep(number: int, point: str) -> None:
        if (digest := state(data)) not in wrecks:
            folder = data.with_name(f"wreck-{number}")
            shutil.copytree(data, folder)
            wrecks[digest] = (f"point {number}, {point}", folder)

    with hooked(), watched(data, keep) as watch:
        schema.migrate()
    faults = []
    for point, folder in wrecks.values():
        monkeypatch.setattr(settings, "NANOVM_DATA", folder)
        with Database(name=str(folder / "app.sqlite3")).in_use():
            schema.migrate()
            faults += [f"{point}: {each}" for each in faults_of(kept, folder)]
    assert faults == []
    print(f"upgrade: {len(watch.names)} crash points, {len(wrecks)} states")
    assert len(watch.names) >= POINTS_MIN


def faults_of(kept: Kept, folder: Path) -> list[str]:
    """What does not hold after the upgrade was finished."""
    said = {
        f"the notes are {found}"
        for found in map(notes, kept.logs.values())
        if found != expected(kept, schema.SCHEMA, RELEASE)
    }
    if Schema.objects.latest("version").version != schema.SCHEMA:
        said.add("the version is not recorded")
    if left := [each.name for each in folder.glob("app.schema-*")]:
        said.add(f"a copy is left: {left}")
    if Run.objects.extra(where=["label IS NOT code"]).exists():
        said.add("rows are as they were")
    return sorted({*said, *(str(each) for each in audit().damage)})


def test_the_copy_is_the_database_from_before_and_a_torn_one_is_made_again(
    kept: Kept, data: Path, become_next: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(data)
    become_next()
    (data / f"app.schema-{kept.schema}.sqlite3.new").write_bytes(b"torn" * 2000)
    monkeypatch.setattr("pipeline.ops.upgrade.drop_copies", lambda: None)
    schema.migrate()
    [copy] = data.glob("app.schema-*")
    back = data.with_name("back")
    back.mkdir()
    assert rows(copy.replace(back / "app.sqlite3").parent) == before


def test_a_migration_that_fails_is_undone_and_leaves_the_copy(
    kept: Kept, data: Path, become_next: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(data)
    become_next()
    monkeypatch.setattr(settings, "NEXT_FAILS", True, raising=False)
    with pytest.raises(ProcessError) as caught:
        schema.migrate()
    [copy] = data.glob("app.schema-*")
    said = str(caught.value)
    assert f"could not be upgraded from schema {kept.schema} to {schema.SCHEMA}. ValueError" in said
    assert (
        f"Nothing is lost: the step that failed was undone. The database as it was before is {copy}"
        in said
    )
    assert rows(data) == before
    there = copy.read_bytes()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE half (done)")  # what a first migration of several leaves
    with pytest.raises(ProcessError, match="could not be upgraded"):
        schema.migrate()
    assert copy.read_bytes() == there
    monkeypatch.setattr(settings, "NEXT_FAILS", False)
    schema.migrate()
    assert faults_of(kept, data) == []


def test_an_old_copy_under_the_next_release_is_upgraded_and_restored(
    kept: Kept, data: Path, tmp_path: Path, become_next: Become
) -> None:
    become_next()
    before = (data / "app.sqlite3").read_bytes()
    with at_work(data) as house:
        schema.migrate()
        for each in Workspace.objects.all():
            signer.checkpoint(each.id)
        connections.close_all()
        (data / "app.sqlite3").write_bytes(before)  # a backup from before the upgrade
        assert house.command("fsck").returncode == 1
        done = house.command("restore")
        assert (done.returncode, done.stderr) == (0, "")
        assert {each.explained for each in audit().damage} == {True}
    assert Workspace.objects.exclude(successor=None).count() == len(kept.logs)
