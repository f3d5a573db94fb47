"""The benches run, and an audit finds their logs undamaged; no figures."""

import re
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from pypdfium2 import PdfDocument

from bench import __main__ as runner
from bench import growth, paired, queue, real_run, seven, strangers
from bench.kit import fill, report
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run
from tests.house.demo import ROOT, ran

MANY = 100
WITH_PEERS = {"cedar", "conditions"}  # they import packages of the benches' own environment


def test_a_run_of_all_has_every_bench() -> None:
    files = (ROOT / "bench").glob("*.py")
    benches = {each.stem for each in files if "\ndef main(" in each.read_text()} - {"__main__"}
    for commands in (runner.SHORT, runner.LONG):
        names = {command.split()[0] for command in commands}
        assert {runner.MODULES.get(name, name) for name in names} == benches
    for name in benches - WITH_PEERS:
        assert callable(import_module(f"bench.{name}").main)


@pytest.mark.soak
@pytest.mark.django_db
def test_a_filled_log_is_one_that_an_audit_finds_whole() -> None:
    workspace = fill.filled(MANY)
    fill.driven(workspace)
    report = audit()
    own = [each for each in report.damage if each.log == workspace.origin]  # others left memories
    assert (own, report.envelopes) == ([], Envelope.objects.count())
    assert report.envelopes >= MANY + seven.ENVELOPES
    assert len({*Run.objects.values_list("head", flat=True)}) == Run.objects.count()


@pytest.mark.soak
@pytest.mark.django_db
def test_everything_that_the_bench_of_growth_times_is_there_to_be_timed() -> None:
    calls = growth.actions(fill.filled(MANY))
    assert {*calls} == {*growth.APPENDS.values(), *growth.PAGES.values()}
    assert all(call() > 0 for call in calls.values())


@pytest.mark.soak
def test_two_databases_take_turns() -> None:
    with growth.holders((20, MANY)) as held:
        assert all(held[size].took("newest") > 0 for size in held)


@pytest.mark.soak
def test_seven_steps_go_through_the_queue(tmp_path: Path) -> None:
    done = ran(tmp_path, "-m", "bench.queue", "1")
    assert done.returncode in (0, report.SHORT), done.stderr
    assert re.search(rf"\| {queue.STEPS} \| [0-9.]+ ", done.stdout), done.stderr


@pytest.mark.soak
def test_a_real_run_is_timed_by_part(tmp_path: Path) -> None:
    done = ran(tmp_path, "-m", "bench.real_run", "1")
    assert done.returncode == 0, done.stderr
    named = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert named[2 : 2 + len(real_run.ROWS)] == [*real_run.ROWS]
    assert real_run.NOT_COUNTED in done.stdout or re.search(
        r"\| fdatasync \(calls\) \| \d", done.stdout
    )


@pytest.mark.soak
def test_the_pages_of_a_filled_workspace_are_timed(tmp_path: Path) -> None:
    done = ran(tmp_path, "-m", "bench.page", "50", "40", "1")
    assert done.returncode in (0, report.SHORT), done.stderr
    assert len(re.findall(r"^- .* ms .* kB: ", done.stdout, re.MULTILINE)) == 4, done.stdout


@pytest.mark.soak
def test_a_bench_that_stops_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "SHORT", ("verification none", "verification 1000"))
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results.md")
    assert runner.main([]) == 1
    written = runner.RESULTS.read_text()
    assert "it stopped, with exit status 1" in written
    assert "rate in full : naive loop" in written
    assert written.endswith(capsys.readouterr().out.rstrip() + "\n")


@pytest.mark.soak
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


@pytest.mark.soak
@pytest.mark.parametrize("conc", [1, 4])
def test_the_contestant_drives_runs_that_an_audit_finds_whole(conc: int) -> None:
    done = paired.turn(ROOT, conc, secs=0.05)
    runs = done["runs"]
    assert runs >= 2 * conc  # one each to warm up; on a busy machine no more are begun in the time
    assert done["effects"] == runs * seven.STEPS
    assert done["rows"] == runs * seven.ENVELOPES + 1
    assert done["per_s"] > 0
