"""``make test``: the exit status of each part counts."""

import sys

import pytest

from tests.__main__ import Part, main

REPORT = (
    "import json, os; json.dump({'seconds': {'tests/a': 1.5}, 'failed': ['tests/a/b.py: no']},"
    " open(os.environ['NANOVM_TEST_REPORT'], 'w'))"
)


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
