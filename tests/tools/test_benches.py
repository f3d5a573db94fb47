"""The benches run, and an audit finds their logs undamaged; no figures."""

from importlib import import_module

import pytest

from bench import __main__ as runner
from bench import paired, seven
from tests.house.demo import ROOT

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
@pytest.mark.parametrize("conc", [1, 4])
def test_the_contestant_drives_runs_that_an_audit_finds_whole(conc: int) -> None:
    done = paired.turn(ROOT, conc, secs=0.05)
    runs = done["runs"]
    assert runs >= 2 * conc  # one each to warm up; on a busy machine no more are begun in the time
    assert done["effects"] == runs * seven.STEPS
    assert done["rows"] == runs * seven.ENVELOPES + 1
    assert done["per_s"] > 0
