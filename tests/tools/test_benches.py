"""The benches run, and an audit finds their logs undamaged; no figures."""

from importlib import import_module
from pathlib import Path

import pytest

from bench import __main__ as runner
from bench import growth, paired, seven
from bench.kit import fill
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run
from tests.house.demo import ROOT

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
@pytest.mark.parametrize("conc", [1, 4])
def test_the_contestant_drives_runs_that_an_audit_finds_whole(conc: int) -> None:
    done = paired.turn(ROOT, conc, secs=0.05)
    runs = done["runs"]
    assert runs >= 2 * conc  # one each to warm up; on a busy machine no more are begun in the time
    assert done["effects"] == runs * seven.STEPS
    assert done["rows"] == runs * seven.ENVELOPES + 1
    assert done["per_s"] > 0
