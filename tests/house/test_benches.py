"""The benches of the shell run, and an audit finds their logs undamaged; no figures."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pypdfium2 import PdfDocument

from bench import growth, paired, queue, real_run, seven, strangers
from bench.kit import fill
from pipeline.evidence.fsck.audit import audit
from pipeline.models import Envelope, Run
from pipeline.queries import runs
from tests.house.demo import ROOT, ran

MANY = 100


@pytest.mark.django_db
def test_a_filled_log_is_one_that_an_audit_finds_whole() -> None:
    workspace = fill.filled(MANY)
    fill.driven(workspace)
    report = audit()
    own = [each for each in report.damage if each.log == workspace.origin]  # others left memories
    assert (own, report.envelopes) == ([], Envelope.objects.count())
    assert report.envelopes >= MANY + seven.ENVELOPES
    assert len({*Run.objects.values_list("head", flat=True)}) == Run.objects.count()


@pytest.mark.django_db
def test_everything_that_the_bench_of_growth_times_is_there_to_be_timed() -> None:
    calls = growth.actions(fill.filled(MANY))
    assert {*calls} == {*growth.APPENDS.values(), *growth.PAGES.values()}
    assert all(call() > 0 for call in calls.values())


@pytest.mark.django_db
def test_a_page_looks_its_runs_up_by_their_ids_and_knows_no_others() -> None:
    mine, other = fill.filled(MANY), fill.filled(1)
    found = dict(Run.objects.filter(workspace=mine).values_list("id", "code"))
    ids = [str(each) for each in Run.objects.values_list("id", flat=True)]
    with CaptureQueriesContext(connection) as asked:
        assert runs.codes_of(mine.pk, ids) == {str(pk): code for pk, code in found.items()}
    assert len(runs.codes_of(other.pk, ids)) == 1
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked.captured_queries[0]['sql']}")
        plan = [row[3] for row in cursor.fetchall()]
    assert [step for step in plan if "pipeline_run USING" in step and "(id=?)" in step], plan


def test_two_databases_take_turns() -> None:
    with growth.holders((20, MANY)) as held:
        assert all(held[size].took("newest") > 0 for size in held)


@pytest.mark.soak  # most of it is the start of the servers
def test_seven_steps_go_through_the_queue(tmp_path: Path) -> None:
    done = ran(tmp_path, "-m", "bench.queue", "1")
    assert done.returncode in (0, 1), done.stderr
    assert re.search(rf"\| {queue.STEPS} \| [0-9.]+ ", done.stdout), done.stderr


@pytest.mark.soak  # it pays ten invoices in three processes
def test_a_real_run_is_timed_by_part(tmp_path: Path) -> None:
    kept = tmp_path / "kept.md"
    done = ran(tmp_path, "-m", "bench.real_run", "1", str(kept))
    assert done.returncode == 0, done.stderr
    assert kept.read_text().endswith(f"\n\n{done.stdout}")
    named = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert named[2 : 2 + len(real_run.ROWS)] == [*real_run.ROWS]
    assert real_run.NOT_COUNTED in done.stdout or re.search(
        r"\| fdatasync \(calls\) \| \d", done.stdout
    )


def test_the_slow_documents_have_text_and_are_small_and_different() -> None:
    first, second = strangers.slow_document(1), strangers.slow_document(2)
    assert 20_000 < len(first) < 24_000
    for number, data in enumerate((first, second), 1):
        with closing(PdfDocument(data)) as document, closing(document[0]) as page:
            assert f"S-{number}" in page.get_textpage().get_text_bounded()


@pytest.mark.soak  # with fewer strangers, so the figures are of no use
def test_strangers_do_what_they_do_to_a_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, few in {"DOCUMENTS": 1, "SOCKETS": 3, "HALVES": 5, "BODIES": 1}.items():
        monkeypatch.setattr(strangers, name, few)
    monkeypatch.setattr(strangers, "WATCHED_SECONDS", 1)
    strangers.main(["1"])
    said = capsys.readouterr().out
    assert len(re.findall(r"^.*: [0-9.e-]+ [(]bar [0-9.]+[)]", said, re.MULTILINE)) == 4, said
    assert "3 open;" in said
    assert "1 of 1 uploads held" in said


@pytest.mark.parametrize("conc", [1, 4])
def test_the_contestant_drives_runs_that_an_audit_finds_whole(conc: int) -> None:
    done = paired.turn(ROOT, conc, secs=0.05)
    runs = done["runs"]
    assert runs >= 2 * conc  # one each to warm up; on a busy machine no more are begun in the time
    assert done["effects"] == runs * seven.STEPS
    assert done["rows"] == runs * seven.ENVELOPES + 1
    assert done["per_s"] > 0
