"""The schema's version: recorded once and last, refused where it is newer, noted in open logs."""

import fcntl
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from engine.evidence import restore
from engine.evidence.fsck.audit import audit
from engine.management import schema, upgrade
from engine.models import Envelope, Schema, Workspace
from engine.ops.processes import ROOT, ProcessError
from engine.queries import timeline
from engine.runtime import chains
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House, bodies, sql

NEXT = "9.9.9"


@pytest.fixture
def old(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A database of this release, with two logs, under the next one."""
    present = schema.SCHEMA
    schema.migrate()
    chains.create()
    chains.create()
    monkeypatch.setattr(schema, "SCHEMA", present + 1)
    monkeypatch.setattr(schema, "RELEASE", NEXT)
    yield house
    Schema.objects.filter(version__gt=present).delete()  # a server's is not made anew


def notes() -> list[dict[str, Any]]:
    """What the ``upgraded`` envelopes of all logs say."""
    return [each for each in bodies("log") if each["kind"] == "upgraded"]


def versions() -> list[int]:
    return [*Schema.objects.order_by("version").values_list("version", flat=True)]


def test_a_new_database_records_its_version_and_seals_nothing(house: House) -> None:
    Schema.objects.all().delete()  # as a crash leaves it that ends the first start
    schema.migrate()
    schema.migrate()
    assert versions() == [schema.SCHEMA]
    assert Schema.objects.get().release == schema.RELEASE
    assert not Envelope.objects.exists()


def test_the_release_is_that_of_the_package() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert said == schema.RELEASE


@pytest.mark.postgres
def test_each_open_log_says_once_that_it_was_upgraded(old: House) -> None:
    schema.migrate()
    schema.migrate()
    said = {"from": schema.SCHEMA - 1, "to": schema.SCHEMA, "release": NEXT}
    assert [(each["in"], each["actor"]) for each in notes()] == [(said, "runtime")] * 2
    assert len({each["log"] for each in notes()}) == 2
    for log in Workspace.objects.all():
        assert len(timeline.page(log.id, timeline.Filter(kind="upgraded")).rows) == 1
    assert versions() == [schema.SCHEMA - 1, schema.SCHEMA]
    assert audit().exit_status == 0


def test_a_log_that_a_restore_closed_gets_no_note(old: House) -> None:
    goes_on = {each.successor for each in restore.restore("operator").logs}
    schema.migrate()
    assert {each["log"] for each in notes()} == goes_on
    assert Workspace.objects.exclude(successor=None).count() == 2


def test_a_damaged_log_keeps_no_other_from_its_note(
    old: House, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = Workspace.objects.order_by("id")
    sql(("UPDATE pipeline_workspace SET log_length = 0 WHERE origin = %s", [bad.origin]))
    schema.migrate()
    assert {each["log"] for each in notes()} == {good.origin}
    assert f"The log of {bad.id} is damaged and got no note" in caplog.text
    assert versions()[-1] == schema.SCHEMA


@pytest.mark.postgres
def test_a_newer_schema_is_refused_and_nothing_changed(
    old: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.migrate()
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA - 1)
    before = Envelope.objects.count()
    with pytest.raises(ProcessError, match=rf"nothing was changed\. Start nanovm {NEXT}"):
        schema.migrate()
    assert (Envelope.objects.count(), len(versions())) == (before, 2)


@pytest.mark.parametrize("stage", ["call_command", "_seal_notes", "_record"])
def test_an_upgrade_that_fails_is_undone_and_says_where_the_data_is(
    old: House, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    real = getattr(upgrade, stage)

    def failing(*args: Any, **options: Any) -> None:
        real(*args, **options)
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE remark (id integer)")
        raise ValueError("an unexpected row")

    with monkeypatch.context() as patch:
        patch.setattr(upgrade, stage, failing)
        with pytest.raises(ProcessError) as caught:
            schema.migrate()
    text = str(caught.value)
    versioned = f"from schema {schema.SCHEMA - 1} to {schema.SCHEMA}"
    assert f"could not be upgraded {versioned}. ValueError: an unexpected row." in text
    assert "Nothing is lost: all of the upgrade was undone, and the database is as nanovm" in text
    assert text.endswith(f"the database is {schema._which()}.")
    assert (notes(), versions()) == ([], [schema.SCHEMA - 1])
    assert "remark" not in connection.introspection.table_names()
    schema.migrate()
    assert len(notes()) == 2


def locked(name: str, folder: Path, how: int) -> int:
    """Another process's lock on a file of the data folder."""
    handle = os.open(folder / name, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, how | fcntl.LOCK_NB)
    return handle


@pytest.mark.postgres
def test_a_folder_that_another_process_uses_is_not_upgraded(old: House) -> None:
    other = locked("use.lock", old.folder, fcntl.LOCK_SH)
    with pytest.raises(ProcessError, match="another process of nanovm still uses it"):
        schema.migrate()
    assert (notes(), len(versions())) == ([], 1)
    os.close(other)
    schema.migrate()
    assert len(notes()) == 2


@pytest.mark.postgres
def test_a_process_that_started_keeps_others_from_upgrading(house: House) -> None:
    schema.migrate()
    with pytest.raises(BlockingIOError):
        locked("use.lock", house.folder, fcntl.LOCK_EX)


@on_sqlite_alone
def test_processes_that_start_at_once_take_turns(
    old: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []

    def seen(look: Callable[[], object] = upgrade.recorded) -> object:
        with pytest.raises(BlockingIOError):
            locked("schema.lock", old.folder, fcntl.LOCK_EX)
        looked.append(connection.vendor)
        return look()

    monkeypatch.setattr(upgrade, "recorded", seen)
    schema.migrate()
    assert looked == ["sqlite"]
    os.close(locked("schema.lock", old.folder, fcntl.LOCK_EX))
