"""``manage.py sabotage`` with the real queue server, worker and Stripe counterpart."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.house.demo import ROOT, environment, processes_of, wait_for_none

SECONDS_MAX = 120
UNGUARDED = """
import sys
from django.core.management import execute_from_command_line
import django
django.setup()
from pipeline.store import records
records.check_chain = lambda *args, **kwargs: None
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


def command(data: Path, *arguments: str, unguarded: bool = False) -> subprocess.Popen[str]:
    """Start the command on a data folder of its own; unguarded, this process checks no chain."""
    program = ["-c", UNGUARDED] if unguarded else ["manage.py"]
    return subprocess.Popen(
        [sys.executable, *program, "sabotage", *arguments],
        cwd=ROOT,
        env=environment(data, DJANGO_SETTINGS_MODULE="config.settings"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hears_ctrl_c,
    )


def _hears_ctrl_c() -> None:
    """Whoever started the tests in the background may have had them ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(data: Path, *arguments: str, unguarded: bool = False) -> tuple[int, str, str]:
    """Run the command to its end: exit status, what it said, what it complained about."""
    process = command(data, *arguments, unguarded=unguarded)
    said, complained = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, said, complained


def test_each_injector_is_held_and_nothing_is_left_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    status, said, complained = run(data, "double_exec", "reorder_steps", "--json")
    assert status == 0, complained
    lines: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines()]
    assert [list(line) for line in lines] == [
        ["injector", "verdict", "rule", "integrity", "evidence", "control"]
    ] * 2
    told = [(line["injector"], line["verdict"], line["integrity"]) for line in lines]
    assert told == [("double_exec", "IGNORED", "HELD"), ("reorder_steps", "BLOCKED", "HELD")]
    assert lines[0]["rule"] in ("FSM-008", "FSM-011")  # held, or between two steps
    assert lines[1]["rule"] == "PRG-011"
    for line in lines:
        assert line["control"]["ran"]
        assert line["evidence"]["end"] == "paid"
        assert line["evidence"]["far_side"]["succeeded"] == 1
    costs = [line["control"]["cost"]["in_words"] for line in lines]
    assert costs == ["25,690.00 EUR", "1,284.50 EUR"]
    late = lines[0]["evidence"]["after_the_end"]
    assert (late["rule"], late["absorbed_after_the_end"], late["door"]) == ("FSM-003", 50, "queue")
    assert wait_for_none(data) == []


def test_the_exit_status_counts_what_got_through(tmp_path: Path) -> None:
    status, said, complained = run(tmp_path, "corrupt_hash", "tool_injection", unguarded=True)
    assert status == 1, complained
    assert [line.split()[0] for line in said.splitlines()] == ["ACCEPTED", "BLOCKED"]


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    process = command(tmp_path, "double_exec")
    try:
        while not any("celery" in line for _, line in processes_of(tmp_path)):
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert process.returncode != 0
    assert wait_for_none(tmp_path) == []


def test_an_unknown_name_is_wrong_use(tmp_path: Path) -> None:
    status, said, complained = run(tmp_path, "nonsense")
    assert (status, said) == (2, "")
    assert complained.startswith("CommandError: There is no injector 'nonsense'; there are")
    assert len(complained.splitlines()) == 1
