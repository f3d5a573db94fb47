"""A value of any kind in any column is named, and hides no other damage."""

import json
import sqlite3
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import cycle, product
from pathlib import Path

import pytest
from django.db import connection, connections

from engine.clock import now_ms
from engine.damage import Damage
from engine.evidence import signer
from engine.evidence.fsck import audit as audits
from engine.evidence.fsck import column_audit
from engine.evidence.fsck.audit import AuditReport, audit
from engine.evidence.fsck.column_audit import tables
from engine.models import Run, Secret, Workspace
from engine.runtime import chains, links
from engine.store import turns
from gate import calls, identity
from pipeline.register import suppliers
from pipeline.register.details import Details
from tests.kit.databases import Database, on_sqlite_alone
from tests.kit.house import House

pytestmark = on_sqlite_alone  # the columns of a server keep their kinds themselves

LONGEST = 2**63 - 1
VALUES: Mapping[str, str] = {
    "text": "'x'",
    "blob": "x'00ff'",
    "null": "NULL",
    "negative": "-1",
    "huge": str(LONGEST),
    "float": "1.5",
    "not UTF-8": "CAST(x'ff41' AS TEXT)",
    "long": "CAST(replace(hex(zeroblob(601)), '0', 'f') AS TEXT)",  # than any column
}
# One row in each table of the register.
SUPPLIER = Details(name="Acme Tools Ltd", iban="AT611904300234573201")
SOME = ("blob", "huge")
MISSING = "The workspace's row is missing, and its log or its runs are there."
TABLES = [model._meta.db_table for model in tables()]
ROW: Mapping[str, str] = {  # the row that is hit: the first run's, or its log's
    "pipeline_workspace": "id = :log",
    "pipeline_run": "id = :run",
    "pipeline_terms": "digest = (SELECT terms_id FROM pipeline_run WHERE id = :run)",
    "pipeline_envelope": "run = :name AND n = 3",
    "pipeline_node": 'workspace_id = :log AND level = 0 AND "index" = 4',
    "pipeline_checkpoint": "workspace_id = :log",
    "pipeline_secret": "run_id = :run AND slot = 'seller'",
    "pipeline_served": "workspace_id = :log",
    "pipeline_link": "workspace_id = :log",
    "pipeline_register": "workspace_id = :log",
    "pipeline_supplier": "workspace_id = :log",
    "pipeline_supplierindex": "workspace_id = :log AND kind = 'name'",
    **dict.fromkeys(("pipeline_bill", "pipeline_listed"), "run_id = :run"),
    "gate_call": "run_id = (SELECT id FROM pipeline_run WHERE model = 'agent')",
    "pipeline_found": "word = (SELECT min(word) FROM pipeline_found WHERE run_id = :run)",
}
# Not found, as these columns are of no consequence to what is recomputed.
TEXTS = {"text", "negative", "huge", "float", "not UTF-8"}
SHORT = TEXTS - {"huge"}  # of so few characters as a server takes there
UNSEEN: Mapping[tuple[str, str], set[str]] = {
    ("pipeline_run", "model"): SHORT,  # sealed nowhere: CAVEATS.md
    ("pipeline_run", "ended_ms"): {"null"},  # a copy of when the end was sealed
    ("pipeline_run", "erased_ms"): {"null"},  # it is null there already
    ("pipeline_run", "deadline_ms"): {"null"},
    ("pipeline_run", "due_ms"): {"null"},
    ("pipeline_run", "begun_ms"): {"null"},
    ("pipeline_terms", "grants"): {"null"},
    ("pipeline_workspace", "successor_id"): {"null"},
    ("pipeline_secret", "erased_ms"): {"null"},
    **{("pipeline_link", name): {"null"} for name in ("revoked_ms", "used_ms", "spent_ms")},
    ("pipeline_bill", "duplicate_of_id"): {"null"},
    **{  # sealed nowhere: CAVEATS.md
        ("pipeline_supplier", column): texts
        for column, texts in {"code": SHORT, "registered_by": TEXTS}.items()
    },
    ("pipeline_served", "agent"): TEXTS,  # sealed nowhere: it orders turns alone
    ("pipeline_secret", "slot"): TEXTS,  # a copy of the name that its envelope seals
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Two paid runs of one log and one of another, one of each damaged; and a copy of it all."""

    house: House
    run: Run
    planted: frozenset[Damage]
    kept: Database

    def put(self, table: str, column: str, value: str) -> None:
        """Everything as it was, but for one value; SQLite refuses some."""
        connections.close_all()
        self.kept.copy_to(self.house.database)
        with closing(sqlite3.connect(self.house.database.name)) as file:
            for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
                file.execute(f"DROP TRIGGER {name}")
            run = self.run
            names = {"log": run.workspace_id.hex, "run": run.id.hex, "name": run.name}
            put = f'UPDATE {table} SET "{column}" = {value} WHERE {ROW[table]}'
            assert file.execute(put, names).rowcount == 1
            file.commit()


@pytest.fixture
def scene(house: House) -> Scene:
    """Signed logs, with damage in another run of the log that is hit, and in another log."""
    run, planted = house.once(damaged)
    kept = house.database.beside("kept.sqlite3")
    house.database.copy_to(kept)
    return Scene(house=house, run=run, planted=planted, kept=kept)


def damaged(house: House) -> tuple[Run, frozenset[Damage]]:
    """The run that is hit, and what is damaged beside it."""
    log = chains.create()
    suppliers.register(log.id, [SUPPLIER], actor="visitor")
    turns.serve(log.id)
    until_ms = now_ms() + links.DAY_MS
    links.make(log.id, links.AUDIT, "log", until_ms=until_ms, narrowed=True, actor="visitor")
    run = house.run(workspace=Workspace.objects.get(id=log.id))
    token = identity.issue(log.id, "teller", "help_desk", by="visitor")
    calls.ask(identity.holder(token), "1", b"{}")
    others = [house.new(workspace=each, knows=False) for each in (run.workspace, chains.create())]
    for found in {each.workspace_id for each in others}:
        signer.checkpoint(found)
    connections.close_all()
    with closing(sqlite3.connect(house.database.name)) as file:
        file.execute("DROP TRIGGER pipeline_envelope_no_update")
        change = "UPDATE pipeline_envelope SET bytes = x'7b7d' WHERE run = ? AND n = 0"
        file.executemany(change, [(str(each.id),) for each in others])
        file.commit()
    report = audit()
    assert {(each.run, each.at) for each in report.damage} == {(str(o.id), 0) for o in others}
    return run, frozenset(report.damage)


def places(damage: Iterable[Damage]) -> set[tuple[str, str, int]]:
    """What is damaged and where, whatever its log is called."""
    return {(each.code, each.run, each.at) for each in damage}


def columns(table: str) -> list[str]:
    """The columns of a table, as SQLite has them."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT name FROM pragma_table_info('{table}')")
        return [name for (name,) in cursor.fetchall()]


def cells(
    scene: Scene, table: str, wanted: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str, AuditReport]]:
    """Columns with a kind of value each, where SQLite takes it there, and the audit's report."""
    for column, kind in wanted:
        try:
            scene.put(table, column, VALUES[kind])
        except sqlite3.IntegrityError as error:
            if not str(error).startswith(("NOT NULL", "CHECK", "datatype mismatch")):
                pytest.fail(f"{column}, {kind}: {error}")
        else:
            yield column, kind, audit()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize("table", TABLES)
def test_a_value_of_any_kind_in_any_column_is_named_and_hides_nothing(
    scene: Scene, table: str, every: bool
) -> None:
    """Without ``every`` one column in four gets one of the two kinds that hid most."""
    names, wrong = columns(table), []
    wanted = product(names, VALUES) if every else zip(names[::4], cycle(SOME), strict=False)
    for column, kind, report in cells(scene, table, wanted):
        json.dumps(asdict(report))
        found = {*report.damage} - scene.planted
        hidden = places(scene.planted) - places(report.damage)
        unseen = kind in UNSEEN.get((table, column), ())
        if hidden or bool(found) == unseen or len(found) > 60:
            wrong.append((column, kind, len(found), hidden))
        assert report.exit_status == 1
    assert wrong == []


def test_a_value_of_any_kind_in_the_key_store_hides_nothing(scene: Scene) -> None:
    file = scene.house.folder / "keys.sqlite3"
    kept = sqlite3.connect(":memory:")
    with closing(sqlite3.connect(file)) as store:
        store.backup(kept)
    secret = Secret.objects.get(run=scene.run, slot="seller")
    rows = {"subject": f"id = '{scene.run.id}'", "secret": f"ref = '{secret.ref}'"}
    wrong = []
    for table, column in [(t, c) for t in rows for c in ("id", "ref", "subject", "wrapped")]:
        for kind in SOME:
            with closing(sqlite3.connect(file)) as store:
                kept.backup(store)  # its bytes alone would meet the write-ahead log of a reader
                if column not in {each[1] for each in store.execute(f"PRAGMA table_info({table})")}:
                    continue
                put = f"UPDATE {table} SET {column} = {VALUES[kind]} WHERE {rows[table]}"
                assert store.execute(put).rowcount == 1
                store.commit()
            report = audit()
            found = {each.code for each in {*report.damage} - scene.planted}
            if not found & {"PII-002", "PII-003"} or not scene.planted <= {*report.damage}:
                wrong.append((column, kind, found))
    assert wrong == []


def test_a_sealed_file_of_another_name_is_not_read(scene: Scene) -> None:
    secret = Secret.objects.exclude(file="").get(run=scene.run)
    for name in (f"../media/{secret.file}", "../kek", "x\0y", "x.sealed", ""):
        Secret.objects.filter(ref=secret.ref).update(file=name)
        found = {*audit().damage} - scene.planted
        assert [each.code for each in found] == ["PII-002"], name


def test_a_number_beyond_all_trees_takes_no_memory(scene: Scene) -> None:
    for column in ("level", "index", "position"):
        scene.put("pipeline_node", column, VALUES["huge"])
        tracemalloc.start()
        try:
            audit()
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()


def test_a_run_is_audited_past_the_damaged_index_of_its_table(scene: Scene) -> None:
    scene.put("pipeline_run", "created_ms", "created_ms")
    path, index = Path(scene.house.database.name), "name = 'sqlite_autoindex_pipeline_run_1'"
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = DELETE")
        [(root,)] = file.execute(f"SELECT rootpage FROM sqlite_master WHERE {index}")
    data = bytearray(path.read_bytes())
    data[data.index(scene.run.id.hex.encode(), (root - 1) * 4096) + 31] ^= 1
    path.write_bytes(data)
    assert scene.planted <= {*audit().damage}


@pytest.mark.parametrize(
    ("table", "column", "value", "code", "at"),
    [
        ("pipeline_link", "id", "id || char(0) || 'x'", "LOG-010", 0),  # SQLite counts to the NUL
        ("pipeline_run", "state", VALUES["not UTF-8"], "LOG-003", None),  # read with marks in it
        ("pipeline_node", "index", "0", "LOG-008", 4),  # it hides no leaf behind it
        ("pipeline_run", "code", "'123456789'", "LOG-010", 0),  # a server takes eight characters
        ("pipeline_run", "tries", str(2**31), "LOG-010", 0),
        ("pipeline_run", "owed_key", "'x'", "LOG-003", 0),
        ("pipeline_run", "owed_tool", "'x'", "LOG-003", 0),
        ("pipeline_run", "due_ms", "0", "LOG-003", 0),
        ("pipeline_run", "holder", "'x'", "LOG-003", 0),
        ("pipeline_workspace", "ledger", "x'7b'", "LOG-011", 0),
    ],
)
def test_a_value_is_named_where_it_is(
    scene: Scene, table: str, column: str, value: str, code: str, at: int | None
) -> None:
    scene.put(table, column, value)
    found = {*audit().damage} - scene.planted
    beside = {("PII-002", True)} if column == "code" else set()  # the row in lists has it too
    assert {(each.code, at is None or each.at == at) for each in found} == {(code, True)} | beside


def test_a_workspace_without_a_row_hides_nothing_that_it_owns(scene: Scene) -> None:
    scene.put("pipeline_workspace", "created_ms", "1")
    with closing(sqlite3.connect(scene.house.database.name)) as file:
        file.execute("DELETE FROM pipeline_workspace WHERE id = ?", [scene.run.workspace_id.hex])
        file.commit()
    report = audit()
    assert places(scene.planted) <= places(report.damage)
    assert MISSING in {each.text for each in report.damage}
    of_runs = ("pipeline_run", "pipeline_listed", "pipeline_found", "gate_call")
    for table in ("pipeline_envelope", "pipeline_supplier", *of_runs):  # it alone names a log
        scene.put(table, "workspace_id", f"'{0:032x}'")
        texts = " ".join(each.text for each in audit().damage)
        assert MISSING in texts
        assert ("which is not of this log" in texts) == (table in of_runs)


def test_text_for_bytes_is_no_accident(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    node, envelope = f"node SET hash = '{'x' * 32}'", "envelope SET kind = 'key',"
    scene.put("pipeline_checkpoint", "note", "'x'")
    assert "LOG-005" in {each.code for each in audit().damage}
    with closing(sqlite3.connect(scene.house.database.name)) as file:
        for change in (node, f"{envelope} hash = x'00'", f"{envelope} bytes = 'x'"):
            file.execute(f"UPDATE pipeline_{change}")
            file.commit()
            json.dumps(asdict(audit()))
        file.executescript("DELETE FROM pipeline_workspace; DELETE FROM pipeline_run")
    monkeypatch.setattr(audits, "PLACES_MAX", 1)  # what is behind is not known to be bad already
    assert MISSING in {each.text for each in audit().damage}


def test_where_a_whole_table_is_bad_the_first_rows_say_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_audit, "PLACES_MAX", 5)
    scene.put("pipeline_node", "level", "-1")
    with closing(sqlite3.connect(scene.house.database.name)) as file:
        file.execute("UPDATE pipeline_node SET level = 'x'")
        file.commit()
    report = audit()
    named = [each.text for each in report.damage if each.code == "LOG-010"]
    assert len(named) == 5
    assert all(each.startswith("pipeline_node (") and "of level " in each for each in named)
    assert places(scene.planted) <= places(report.damage)


def test_an_audit_leaves_the_tables_as_they_are_to_whoever_comes_next(scene: Scene) -> None:
    scene.put("pipeline_run", "ended_ms", "'x'")
    audit()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_temp_master")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT max(typeof(ended_ms)) FROM pipeline_run")
        assert cursor.fetchone() == ("text",)
        with pytest.raises(sqlite3.OperationalError, match="UTF-8"):
            cursor.execute("SELECT CAST(x'ff' AS TEXT)").fetchone()
