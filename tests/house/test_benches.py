"""A run of all benches has each of them, and each can be started."""

from importlib import import_module

from bench import __main__ as runner
from tests.house.demo import ROOT

WITH_PEERS = {"conditions"}  # it imports packages of the benches' own environment


def test_a_run_of_all_has_every_bench() -> None:
    files = (ROOT / "bench").glob("*.py")
    benches = {each.stem for each in files if "\ndef main(" in each.read_text()} - {"__main__"}
    assert {command.split()[0] for command in runner.COMMANDS} == benches
    for name in benches - WITH_PEERS:
        assert callable(import_module(f"bench.{name}").main)
