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

from dashboard.audit import views as audit_views
from engine.evidence import signer
from engine.models import Envelope, Workspace
from engine.queries import timeline
from engine.queries.runs import RunHead
from engine.queries.timeline import Filter
from nanovm_core import verify
from nanovm_core.core.canonical import decode
from pipeline.queries import named
from pipeline.register import sample_register
from tests.dashboard.visitor import TRANSFER, Visitor, words
from tests.kit.house import sql
from tests.kit.trees import exchange, grown

pytestmark = pytest.mark.usefixtures("db", "own_folder")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and memory of the signer for one test alone."""
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)


@pytest.fixture(scope="module")
def run(owner: Visitor, paid: RunHead) -> RunHead:
    """A run that paid, before another one at which a tool was refused."""
    owner.fire(owner.make(hold=True), "tool_injection", proposal=TRANSFER)
    return paid


@pytest.fixture
def log(run: RunHead) -> Workspace:
    return Workspace.objects.get(pk=run.workspace)


@pytest.fixture
def signed(log: Workspace) -> Workspace:
    """The log, with a checkpoint that covers it."""
    signer.checkpoint(log.id)
    return log


def path_of(log: Workspace) -> str:
    return f"/audit/{log.origin.rpartition('/')[2]}/"


def seqs(page: str) -> list[int]:
    """The numbers of the events on a page, newest first; it shows them by run."""
    return sorted(map(int, re.findall(r'data-label="#">(\d+)<', page)), reverse=True)


def content(visitor: Visitor, path: str) -> tuple[str, bytes]:
    """A download: its file's name, and what is in it."""
    response: Any = visitor.get(path)
    assert response.status_code == 200
    return response["Content-Disposition"].split('"')[1], b"".join(response.streaming_content)


def said(log: Workspace, **wanted: str) -> list[int]:
    """The seqs of the envelopes of the workspace that say this, newest first, read naively."""
    found = []
    for row in log.envelopes.order_by("-seq"):
        body: Any = decode(bytes(row.bytes))
        if all(body.get(name) == value for name, value in wanted.items()):
            found.append(row.seq)
    return found


def test_list_has_an_address_of_its_own(owner: Visitor, log: Workspace) -> None:
    page = owner.read("/audit/")
    assert f'href="{path_of(log)}"' in page
    assert seqs(owner.read(path_of(log))) == seqs(page)
    for other in ("0" * 12, "log", "x-y"):
        owner.read(f"/audit/{other}/", 404)


def test_events_are_folded_by_run_the_newest_run_first(
    owner: Visitor, run: RunHead, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = owner.read("/audit/")
    groups = re.findall(r"<h2 class=\"row\">(.*?)</details>", page, re.DOTALL)
    tops = []
    for group in groups:
        numbers = [int(n) for n in re.findall(r'data-label="#">(\d+)<', group)]
        assert numbers == sorted(numbers, reverse=True)
        assert log.envelopes.filter(seq__in=numbers).values("run").distinct().count() == 1
        tops.append(numbers[0])
    assert tops == sorted(tops, reverse=True)
    assert len(tops) > 2  # two runs and the log's own chain
    mine = next(each for each in groups if f"/runs/{run.code}/" in each.partition("</h2>")[0])
    name = named.of_runs([run])[run.id]
    head = words(mine.partition("</h2>")[0])
    assert f"{run.code} · {name.supplier} · {name.number} · {name.amount} · " in head
    assert words(mine.partition("</h2>")[2]).count(name.amount) >= 1
    assert "Log created" in words(page) or "log created" in words(page)
    monkeypatch.setattr(audit_views, "CHAINS_MAX", 1)
    path, found, pages = "/audit/", list[int](), 0
    while path:
        page = owner.read(path)
        assert len(re.findall(r"<h2 class=\"row\">", page)) == 1
        found, pages = found + seqs(page), pages + 1
        older = re.search(r'href="(\?cursor=\d+)"', page)
        path = f"/audit/{older[1]}" if older else ""
    assert (found, pages > 1) == (said(log), True)


FILTERS: tuple[dict[str, str], ...] = (
    {"kind": "refused"},
    {"step": "charge"},
    {"actor": "model"},
    {"rule": "CAP-001"},
    {"kind": "intent", "step": "extract"},
    {"run": "log"},
)


def test_each_filter_shows_what_matches_and_no_more(
    owner: Visitor, run: RunHead, log: Workspace
) -> None:
    for filters in FILTERS:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        page = owner.read(f"/audit/?{query}")
        assert seqs(page) == said(log, **filters)
        for name, value in filters.items():
            assert f"{audit_views.SAID.get(name, name)}: {value}" in words(page)
        assert "Clear all" in page
    assert seqs(owner.read(f"/audit/?run={run.code.lower()}")) == said(log, run=run.id)


def test_the_list_knows_each_kind_of_the_format() -> None:
    assert (set(timeline.KINDS), len(timeline.KINDS)) == (verify.KINDS, len(verify.KINDS))


def test_since_and_until_are_moments_in_utc(owner: Visitor, log: Workspace) -> None:
    bodies: dict[int, Any] = {
        row.seq: decode(bytes(row.bytes)) for row in log.envelopes.order_by("-seq")
    }
    times: dict[int, int] = {seq: body["at_ms"] for seq, body in bodies.items()}
    middle = sorted(times.values())[len(times) // 2]
    for since, until in ((middle, None), (None, middle), (middle, middle + 5)):
        page = timeline.page(log.id, Filter(since_ms=since, until_ms=until))
        wanted = [s for s, at in times.items() if (since or 0) <= at <= (until or at)]
        assert [row.seq for row in page.rows] == wanted
    assert seqs(owner.read("/audit/?since=2020-01-01T00:00")) == [*times]
    assert seqs(owner.read("/audit/?until=2020-01-01")) == []
    assert "is not a date and time" in words(owner.read("/audit/?since=yesterday"))
    assert timeline.moment_ms("1970-01-01T00:00:01") == 1_000


def test_an_empty_selection_names_its_filters(owner: Visitor, run: RunHead) -> None:
    page = owner.read("/audit/?kind=restore&rule=cap-001")
    assert "No event matches event “restore”, rule “cap-001”" in words(page)
    assert "No more events" in page
    assert "You have no run “ZZZZ-99”" in words(owner.read("/audit/?run=ZZZZ-99"))


def test_a_page_looks_through_so_many_and_says_where_it_stopped(
    owner: Visitor, log: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = grown(log, 30)
    monkeypatch.setattr(timeline, "LOOKED_AT_MAX", 20)
    page = timeline.page(log.id, Filter(kind="genesis"))
    found, pages = [row.seq for row in page.rows], 1
    while page.cursor:
        assert page.looked_back_to == int(page.cursor)
        page = timeline.page(log.id, Filter(kind="genesis"), page.cursor)
        found += [row.seq for row in page.rows]
        pages += 1
    assert found == said(log, kind="genesis")
    assert pages == -(-log.size // 20)
    assert "Searched 20 events" in owner.read("/audit/?kind=genesis")


@pytest.mark.parametrize("asked", [Filter(), Filter(run="log"), Filter(kind="budget")])
def test_a_page_asks_the_database_as_much_however_far_back_it_is(asked: Filter) -> None:
    log = grown(sample_register.new_workspace(), 300)
    costs = set()
    for cursor in ("", "250", "120"):
        with CaptureQueriesContext(connection) as queries:
            page = timeline.page(log.id, asked, cursor)
        costs.add(len(queries) - (bool(cursor) and bool(asked.run)))
        with connection.cursor() as explained:
            explained.execute(f"EXPLAIN QUERY PLAN {queries.captured_queries[-1]['sql']}")
            plan = "\n".join(str(row[3]) for row in explained.fetchall())
        assert "SCAN" not in plan, plan
        assert "TEMP B-TREE" not in plan, plan
        assert len(page.rows) == 50
    assert costs == {1}


def judged(log: Workspace, data: bytes, folder: Path, *more: str) -> int:
    """The verifier's exit status on an export."""
    (folder / "export").write_bytes(data)
    key = signer.verifiers(log.origin)[0].vkey
    return verify.main([str(folder / "export"), "--key", key, *more])


def test_export_of_the_log_is_what_the_verifier_reads(
    owner: Visitor, run: RunHead, signed: Workspace, tmp_path: Path
) -> None:
    own = path_of(signed).split("/")[2]
    for query, name, status in (
        ("export.ndjson", f"log-{own}.ndjson", 0),
        ("bundle.zip", f"log-{own}.zip", 0),
        (f"export.ndjson?run={run.code}", f"run-{run.code}.ndjson", 3),
    ):
        told, data = content(owner, path_of(signed) + query)
        assert (told, judged(signed, data, tmp_path)) == (name, status)
        if query == "export.ndjson":
            assert len(data.splitlines()) == signed.size + 1


def test_export_of_what_is_new_goes_on_from_the_one_before(
    owner: Visitor, run: RunHead, signed: Workspace, tmp_path: Path
) -> None:
    at, known = signed.size, str(tmp_path / "known")
    there = f"{path_of(signed)}export"
    form = f'action="{there}.ndjson"><div class="field"><label for="first">'
    assert owner.read("/audit/").count(form) == 1
    _, data = content(owner, f"{there}.ndjson?first=0")
    assert judged(signed, data, tmp_path, "--known", known) == 0
    signer.checkpoint(grown(signed, 3).id)
    name, data = content(owner, f"{there}.ndjson?first={at}")
    assert name == f"log-{path_of(signed).split('/')[2]}-from-{at}.ndjson"
    assert len(data.splitlines()) == 3 + 1
    assert judged(signed, data, tmp_path, "--known", known) == 0
    for query in ("-1", "x", "1.5", "１", "9" * 16, f"1&run={run.code}", "1&kind=intent"):
        owner.read(f"{there}.ndjson?first={query}", 404)
    owner.read(f"{there}.csv?first=1", 404)


def test_selection_and_csv_say_that_they_are_not_verifiable(
    owner: Visitor, run: RunHead, signed: Workspace, tmp_path: Path
) -> None:
    there = f"{path_of(signed)}export"
    for query in ("kind=intent", "run=log", f"run={run.code}&step=charge"):
        name, data = content(owner, f"{there}.ndjson?{query}")
        assert "not-verifiable" in name
        assert judged(signed, data, tmp_path) == 2
        trailer: Any = decode(data.splitlines()[-1])
        assert trailer["count"] == len(data.splitlines()) - 1 > 0
        assert "not verifiable" in trailer["warning"]
        assert len(seqs(owner.read(f"/audit/?{query}"))) == trailer["count"]
    name, data = content(owner, f"{there}.csv")
    assert "not-verifiable" in name
    assert judged(signed, data, tmp_path) == 2
    rows = [*csv.reader(io.StringIO(data.decode()))]
    assert "not verifiable" in rows[0][0]
    assert len(rows) == signed.size + 2
    owner.read(f"{there}.ndjson?run=ZZZZ-99", 404)


def test_no_cell_of_a_csv_is_a_formula(owner: Visitor, run: RunHead, log: Workspace) -> None:
    texts = ("=1+1", "+1", "-1", "@x", "\tx", "a;=1+1")
    for n, text in enumerate(texts):
        exchange(Envelope.objects.filter(run=run.id, n=n), tool=text)
    _, table = content(owner, f"{path_of(log)}export.csv?run={run.code}")
    cells = {each for row in csv.reader(io.StringIO(table.decode())) for each in row}
    assert {*(f"'{text}" for text in texts[:-1]), "a;'=1+1"} <= cells
    assert not cells & set(texts)


def test_junk_in_the_log_breaks_neither_list_nor_export(
    owner: Visitor, run: RunHead, log: Workspace
) -> None:
    for junk in (b"", b"\xff", b"[]", b'{"at_ms":"x"}'):
        sql(("UPDATE pipeline_envelope SET bytes = %s WHERE run = %s", (junk, run.id)))
        for query in ("", "?since=2020-01-01", "?until=2999-01-01", "?step=charge", "?cursor=99"):
            owner.read(f"/audit/{query}")
            content(owner, f"{path_of(log)}export.csv{query}")
            content(owner, f"{path_of(log)}export.ndjson{query}")
