"""``make test``: each part's exit status counts, and children's CPU seconds are counted once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.kit.processor import spent
from tests import report
from tests.__main__ import Part, main
from tests.house.demo import ROOT

REPORT = (
    "import json, os; json.dump({'seconds': {'tests/a': 1.5}, 'failed': ['tests/a/b.py: no']},"
    " open(os.environ['NANOVM_TEST_REPORT'], 'w'))"
)
BURN = "import time\nwhile time.process_time() < 0.4: pass\nprint('burnt', flush=True); input()"


def part(name: str, script: str) -> Part:
    """A part that runs a script."""
    return Part(name, (sys.executable, "-c", script), {})


@pytest.mark.parametrize("failing", [None, 0, 2])
def test_the_status_of_each_part_counts(
    failing: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    scripts = [f"print('part {i}'); raise SystemExit({int(i == failing)})" for i in range(3)]
    one, two, three = [part(f"p{i}", f"{REPORT}; {each}") for i, each in enumerate(scripts)]
    assert main([one, two, three]) == (failing is not None)
    said = capfd.readouterr().out
    assert [f"part {i}" in said for i in range(3)] == [True] * 3
    assert "     4.5 s  tests/a\n" in said
    assert said.endswith(3 * "tests/a/b.py: no\n")
    bad = failing is not None
    assert said.count("passed") == 2 * (3 - bad) + (not bad)  # at its end, in the sum, and of all
    assert said.count("FAILED with status 1") == 3 * bad


@pytest.mark.soak
def test_a_session_reports_what_failed_and_why(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_good(): pass\ndef test_bad(): raise KeyError('why')\n"
        "@pytest.fixture\ndef none(): raise OSError('no such thing')\ndef test_none(none): pass\n"
    )
    found = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.report", str(tmp_path)],
        env={**os.environ, report.TO: str(found)},
        capture_output=True,
        cwd=ROOT,
    )
    assert done.returncode == 1, done.stderr
    said = [each.rpartition("::")[2] for each in json.loads(found.read_text())["failed"]]
    assert sorted(said) == ["test_bad: KeyError: 'why'", "test_none: OSError: no such thing"]


@pytest.mark.soak
def test_a_child_counts_while_it_lives_and_not_twice_afterwards() -> None:
    before = spent()
    child = subprocess.Popen([sys.executable, "-c", BURN], stdin=-1, stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    living = spent() - before
    child.communicate(b"\n")
    ended = spent() - before
    assert living > 0.3
    assert 0.3 < ended < 2 * living
