"""The workspace's audit list: its filters, its pages and its exports."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from nanovm_core import verify
from nanovm_core.core.canonical import decode, encode
from pipeline.evidence import signer
from pipeline.models import Envelope, Workspace
from pipeline.queries import timeline
from pipeline.queries.runs import RunHead
from pipeline.queries.timeline import Filter
from pipeline.store import workspaces
from tests.dashboard.visitor import TRANSFER, Visitor, words
from tests.pipeline.house import sql
from tests.pipeline.trees import grown


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and memory of the signer for one test alone."""
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)


@pytest.fixture
def run(visitor: Visitor) -> RunHead:
    """A run that paid, before another one at which a tool was refused."""
    first = visitor.make()
    visitor.fire(visitor.make(hold=True), "tool_injection", proposal=TRANSFER)
    return first


def log_of(run: RunHead) -> Workspace:
    return Workspace.objects.get(pk=run.workspace)


def name_of(run: RunHead) -> str:
    return log_of(run).origin.rpartition("/")[2]


def seqs(page: str) -> list[int]:
    return [int(n) for n in re.findall(r'data-label="Seq">(\d+)<', page)]


def content(visitor: Visitor, path: str) -> tuple[str, bytes]:
    """A download: its file's name, and what is in it."""
    response: Any = visitor.get(path)
    assert response.status_code == 200
    return response["Content-Disposition"].split('"')[1], b"".join(response.streaming_content)


def said(head: RunHead, **wanted: str) -> list[int]:
    """The seqs of the envelopes of the workspace that say this, newest first, read naively."""
    found = []
    for row in Envelope.objects.filter(workspace_id=head.workspace).order_by("-seq"):
        body: Any = decode(bytes(row.bytes))
        if all(body.get(name) == value for name, value in wanted.items()):
            found.append(row.seq)
    return found


def test_list_has_an_address_of_its_own(visitor: Visitor, run: RunHead) -> None:
    page = visitor.read("/audit/")
    assert f'href="/audit/{name_of(run)}/"' in page
    assert seqs(visitor.read(f"/audit/{name_of(run)}/")) == seqs(page)
    for other in ("0" * 12, "log", "x-y"):
        visitor.read(f"/audit/{other}/", 404)


FILTERS: tuple[dict[str, str], ...] = (
    {"kind": "refused"},
    {"step": "charge"},
    {"actor": "model"},
    {"actor": "visitor"},
    {"rule": "CAP-001"},
    {"kind": "intent", "step": "extract"},
    {"run": "log"},
)


def test_each_filter_shows_what_matches_and_no_more(visitor: Visitor, run: RunHead) -> None:
    for filters in FILTERS:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        page = visitor.read(f"/audit/?{query}")
        assert seqs(page) == said(run, **filters)
        for name, value in filters.items():
            assert f"{name}: {value}" in words(page)
        assert "Clear all" in page


def test_a_run_is_filtered_by_its_code(visitor: Visitor, run: RunHead) -> None:
    assert seqs(visitor.read(f"/audit/?run={run.code.lower()}")) == said(run, run=run.id)


def test_since_and_until_are_moments_in_utc(visitor: Visitor, run: RunHead) -> None:
    rows = Envelope.objects.filter(workspace_id=run.workspace).order_by("-seq")
    bodies: dict[int, Any] = {row.seq: decode(bytes(row.bytes)) for row in rows}
    times: dict[int, int] = {seq: body["at_ms"] for seq, body in bodies.items()}
    middle = sorted(times.values())[len(times) // 2]
    for since, until in ((middle, None), (None, middle), (middle, middle + 5)):
        asked = Filter(since_ms=since, until_ms=until)
        page = timeline.page(log_of(run).id, asked)
        wanted = [s for s, at in times.items() if (since or 0) <= at <= (until or at)]
        assert [row.seq for row in page.rows] == wanted
    assert seqs(visitor.read("/audit/?since=2020-01-01T00:00")) == [*times]
    assert seqs(visitor.read("/audit/?until=2020-01-01")) == []
    assert "is no date and time" in words(visitor.read("/audit/?since=yesterday"))
    assert timeline.moment_ms("1970-01-01T00:00:01") == 1_000


def test_filters_survive_paging(visitor: Visitor, run: RunHead) -> None:
    log = grown(log_of(run), 120)
    path, found = "/audit/?kind=budget&actor=operator", []
    while path:
        page = visitor.read(path)
        found += seqs(page)
        older = re.search(r'href="(\?[^"]*cursor=\d+)"', page)
        path = f"/audit/{older[1].replace('&amp;', '&')}" if older else ""
        assert len(seqs(page)) <= 50
    assert found == list(range(log.size - 1, log.size - 121, -1))


def test_an_empty_selection_names_its_filters(visitor: Visitor, run: RunHead) -> None:
    page = visitor.read("/audit/?kind=restore&rule=zzz-999")
    assert "No envelope matches kind “restore”, rule “zzz-999”" in words(page)
    assert "No more envelopes" in page
    assert "You have no run “ZZZZ-99”" in words(visitor.read("/audit/?run=ZZZZ-99"))


def test_a_page_looks_through_so_many_and_says_where_it_stopped(
    visitor: Visitor, run: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grown(log_of(run), 30)
    monkeypatch.setattr(timeline, "LOOKED_AT_MAX", 20)
    asked, cursor, found, pages = Filter(kind="genesis"), "", [], 0
    while True:
        page = timeline.page(log.id, asked, cursor)
        found += [row.seq for row in page.rows]
        pages += 1
        if not page.cursor:
            break
        assert page.looked_back_to == int(page.cursor)
        cursor = page.cursor
    assert found == said(run, kind="genesis")
    assert pages == -(-log.size // 20)
    assert "Looked through" in visitor.read("/audit/?kind=genesis")


@pytest.mark.parametrize("asked", [Filter(), Filter(run="log"), Filter(kind="budget")])
def test_a_page_asks_the_database_as_much_however_far_back_it_is(db: None, asked: Filter) -> None:
    log = grown(workspaces.create(), 300)
    costs = set()
    for cursor in ("", "250", "120"):
        with CaptureQueriesContext(connection) as queries:
            page = timeline.page(log.id, asked, cursor)
        costs.add(len(queries) - (bool(cursor) and bool(asked.run)))
        plan = explained(queries.captured_queries[-1]["sql"])
        assert "SCAN" not in plan, plan
        assert "TEMP B-TREE" not in plan, plan
        assert len(page.rows) == 50
    assert costs == {1}


def explained(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return "\n".join(str(row[3]) for row in cursor.fetchall())


def judged(run: RunHead, data: bytes, folder: Path, key: str = "", *more: str) -> int:
    (folder / "export").write_bytes(data)
    key = key or signer.verifiers(log_of(run).origin)[0].vkey
    return verify.main([str(folder / "export"), "--key", key, *more])


def test_export_of_the_log_is_what_the_verifier_reads(
    visitor: Visitor, run: RunHead, tmp_path: Path
) -> None:
    signer.checkpoint(log_of(run).id)
    name, data = content(visitor, f"/audit/{name_of(run)}/export.ndjson")
    assert (name, judged(run, data, tmp_path)) == (f"log-{name_of(run)}.ndjson", 0)
    assert len(data.splitlines()) == log_of(run).size + 1
    name, data = content(visitor, f"/audit/{name_of(run)}/bundle.zip")
    assert (name, judged(run, data, tmp_path)) == (f"log-{name_of(run)}.zip", 0)
    name, data = content(visitor, f"/audit/{name_of(run)}/export.ndjson?run={run.code}")
    assert (name, judged(run, data, tmp_path)) == (f"run-{run.code}.ndjson", 3)


def test_export_of_what_is_new_goes_on_from_the_one_before(
    visitor: Visitor, run: RunHead, tmp_path: Path
) -> None:
    signer.checkpoint(log_of(run).id)
    at, known = log_of(run).size, str(tmp_path / "known")
    there = f"/audit/{name_of(run)}/export"
    form = f'action="{there}.ndjson"><div class="field"><label for="first">'
    assert visitor.read("/audit/").count(form) == 1
    _, data = content(visitor, f"{there}.ndjson?first=0")
    assert judged(run, data, tmp_path, "", "--known", known) == 0
    grown(log_of(run), 3)
    signer.checkpoint(log_of(run).id)
    name, data = content(visitor, f"{there}.ndjson?first={at}")
    assert name == f"log-{name_of(run)}-from-{at}.ndjson"
    assert len(data.splitlines()) == 3 + 1
    assert judged(run, data, tmp_path, "", "--known", known) == 0
    for query in ("-1", "x", "1.5", "１", "9" * 16, f"1&run={run.code}", "1&kind=intent"):
        visitor.read(f"{there}.ndjson?first={query}", 404)
    visitor.read(f"{there}.csv?first=1", 404)


def test_selection_and_csv_say_that_they_are_not_verifiable(
    visitor: Visitor, run: RunHead, tmp_path: Path
) -> None:
    signer.checkpoint(log_of(run).id)
    there = f"/audit/{name_of(run)}/export"
    for query in ("kind=intent", "run=log", f"run={run.code}&step=charge"):
        name, data = content(visitor, f"{there}.ndjson?{query}")
        assert "not-verifiable" in name
        assert judged(run, data, tmp_path) == 2
        trailer: Any = decode(data.splitlines()[-1])
        assert trailer["count"] == len(data.splitlines()) - 1 > 0
        assert "not verifiable" in trailer["warning"]
        assert len(seqs(visitor.read(f"/audit/?{query}"))) == trailer["count"]
    name, data = content(visitor, f"{there}.csv")
    assert "not-verifiable" in name
    assert judged(run, data, tmp_path) == 2
    rows = [*csv.reader(io.StringIO(data.decode()))]
    assert "not verifiable" in rows[0][0]
    assert len(rows) == log_of(run).size + 2
    visitor.read(f"{there}.ndjson?run=ZZZZ-99", 404)


def test_no_cell_of_a_csv_is_a_formula(visitor: Visitor, run: RunHead) -> None:
    texts = ("=1+1", "+1", "-1", "@x", "\tx")
    for n, text in enumerate(texts):
        row = Envelope.objects.get(run=run.id, n=n)
        body: Any = decode(bytes(row.bytes))
        data = encode({**body, "tool": text})
        change = "UPDATE pipeline_envelope SET bytes = %s WHERE workspace_id = %s AND seq = %s"
        sql((change, (data, row.workspace_id.hex, row.seq)))
    _, table = content(visitor, f"/audit/{name_of(run)}/export.csv?run={run.code}")
    cells = {each for row in csv.reader(io.StringIO(table.decode())) for each in row}
    assert {f"'{text}" for text in texts} <= cells
    assert not cells & set(texts)


def test_junk_in_the_log_breaks_neither_list_nor_export(visitor: Visitor, run: RunHead) -> None:
    for junk in (b"", b"\xff", b"[]", b'{"at_ms":"x"}'):
        sql(("UPDATE pipeline_envelope SET bytes = %s WHERE run = %s", (junk, run.id)))
        for query in ("", "?since=2020-01-01", "?until=2999-01-01", "?step=charge", "?cursor=99"):
            visitor.read(f"/audit/{query}")
            content(visitor, f"/audit/{name_of(run)}/export.csv{query}")
            content(visitor, f"/audit/{name_of(run)}/export.ndjson{query}")
