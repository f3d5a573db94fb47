"""A database, a disk or a file that gives up under a command: one sentence, and status 2."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, IntegrityError, OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from engine.evidence import signer
from engine.management import schema
from engine.management.prepared import one_sentence
from engine.models import Run, Secret
from engine.ops import error_messages
from engine.ops.processes import ProcessError
from engine.work import Answer, Work
from nanovm_core.core import lifecycle as life
from pipeline.steps import adapters
from samples import path
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House, succeeded

LOCKED = "The database cannot be used: database is locked. Another process holds it"
FULL = "The database cannot be used: database or disk is full. Its disk is full: make room"


@contextmanager
def held(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody else holds the database, and nobody is patient."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.1)
    connection.close()
    with closing(sqlite3.connect(house.database.name, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
    connection.close()


def filled() -> None:
    """From now on this connection's database finds no room for another page."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count = 1")


def said_by(*words: str) -> str:
    """The one sentence with which a command ends, with status 2."""
    with pytest.raises(CommandError) as caught:
        call_command(*words)
    assert caught.value.returncode == 2
    assert "\n" not in str(caught.value)
    assert "Errno" not in str(caught.value)
    return str(caught.value)


@on_sqlite_alone
def test_locked_database_is_one_sentence_that_says_what_stands(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.once(House.run)
    words = {
        ("run_invoice", str(path("plain"))): f"{path('plain')} was not begun: give it again",
        ("erase", "--run", run.code, "--reason", "art17-1-a"): "given again erases the rest",
        ("keys", "rotate"): "takes the change up where it was left",
        ("revoke", "notify.send_email"): "Then give the command again.",
    }
    with held(house, monkeypatch):
        for each, stands in words.items():
            said = said_by(*each)
            assert said.startswith(LOCKED)
            assert stands in said
    assert Run.objects.count() == 1
    assert not Secret.objects.filter(run=run, slot="seller").exclude(erased_ms=None).exists()
    call_command("erase", "--run", run.code, "--reason", "art17-1-a")
    assert not Secret.objects.filter(run=run, erased_ms=None).exists()


@on_sqlite_alone
def test_disk_that_fills_during_a_run_says_that_the_run_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def filling(work: Work) -> Answer:
        answer = real(work)
        filled()
        return answer

    real = adapters.ADAPTERS["vault.split"]
    with monkeypatch.context() as patch:
        patch.setattr(adapters, "ADAPTERS", {**adapters.ADAPTERS, "vault.split": filling})
        said = said_by("run_invoice", str(path("plain")))
    run = Run.objects.get()
    assert said.startswith(FULL)
    assert f"The run {run.code} of {path('plain')} stands where it was and goes on" in said
    connection.close()
    assert house.drive(run).state == life.COMPLETED
    assert succeeded(run) == [(128_450, "eur")]


@on_sqlite_alone
def test_disk_that_is_full_after_the_payment_hides_no_payment(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unsigned(_: object) -> None:
        filled()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE more (text)")

    monkeypatch.setattr(signer, "checkpoint", unsigned)
    said = said_by("run_invoice", str(path("plain")), "--json")
    assert said.startswith(FULL)
    assert f"The run {Run.objects.get().code} is as was said" in said
    assert '"decision": "paid"' in capsys.readouterr().out


@on_sqlite_alone
@pytest.mark.parametrize("pages", [1, 8])  # not even the first table, of which Django tells
def test_disk_that_is_full_at_the_start_is_told_from_a_database_that_is_held(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pages: int
) -> None:
    connection.close()
    small = f"PRAGMA journal_mode=WAL; PRAGMA max_page_count = {pages};"
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "new.sqlite3"))
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "init_command", small)
    with pytest.raises(ProcessError, match="database or disk is full") as caught:
        schema.migrate()
    connection.close()
    advice = f". Its disk is full: make room on the disk of {tmp_path}. Then start again."
    assert str(caught.value).endswith(advice)


@pytest.mark.postgres
def test_a_database_of_a_different_schema_version_is_refused(house: House) -> None:
    other = ("pipeline", "0099_of_another_version")
    MigrationRecorder(connection).record_applied(*other)
    try:
        with pytest.raises(ProcessError, match=rf"{'.'.join(other)}.*nothing was changed"):
            schema.migrate()
    finally:  # a server's database is not made anew for the next test
        MigrationRecorder(connection).record_unapplied(*other)


def test_fault_of_the_code_is_no_sentence() -> None:
    with pytest.raises(IntegrityError), one_sentence():
        raise IntegrityError("UNIQUE constraint failed")


def damaged(folder: Path) -> str:
    (folder / "a").write_bytes(b"no database " * 1000)
    return str(folder / "a")


FILES: dict[str, Callable[[Path], str]] = {
    "that this user may read and write in it": lambda folder: str(folder / "none" / "a"),
    "It may only be read: let this user write": lambda folder: f"file:{folder}/app.sqlite3?mode=ro",
    "It is damaged: put it back from a backup": damaged,
}


@on_sqlite_alone
@pytest.mark.parametrize("advice", FILES)
def test_each_fault_of_a_file_has_its_own_advice(house: House, advice: str) -> None:
    place = FILES[advice](house.folder)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        sqlite3.connect(place, uri=True).execute("CREATE TABLE x (y)")
    wrapped = DatabaseError(*caught.value.args)
    wrapped.__cause__ = caught.value
    assert advice in error_messages.of_database(wrapped, "")


SERVER: dict[str, type[psycopg.Error]] = {
    "Another process holds it": psycopg.errors.LockNotAvailable,
    "Its disk is full: make room on the disk of the server": psycopg.errors.DiskFull,
    "It may only be read": psycopg.errors.ReadOnlySqlTransaction,
    "See that the server that DATABASE_URL names runs": psycopg.OperationalError,
}


@pytest.mark.postgres
@pytest.mark.parametrize("advice", SERVER)
def test_each_fault_of_a_server_has_its_own_advice(
    advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "vendor", "postgresql")
    error = OperationalError("it said no\nand more")
    error.__cause__ = SERVER[advice]("it said no")
    said = error_messages.of_database(error, "")
    assert advice in said
    assert "and more" not in said


@pytest.mark.parametrize(
    "words",
    [
        "judge --program {} --proposals -",
        "judge --program examples/refund_desk/program.toml --proposals {}",
        "policy test {}",
        "policy test pipeline/policies/default.toml --program {}",
    ],
)
def test_file_that_is_not_there_is_named_with_what_to_do(words: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    advice = "Give the path of one that is there, and give the command again."
    assert said_by(*words.format(missing).split()) == (
        f"{missing}: No such file or directory. {advice}"
    )
    said = said_by(*words.format(tmp_path).split())
    assert said.startswith(f"{tmp_path}: Is a directory. Give the path of a file in it")
