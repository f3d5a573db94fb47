"""The survey tells a guard that is missed from one that is not, and both from a broken change."""

from pathlib import Path

import pytest

from mutations.patching import MutationError, load
from mutations.pytest_runs import PytestRun, run_all
from mutations.survey import main
from tests.mutations.entries import GUARD, entry, mutation, written

pytestmark = pytest.mark.soak

HERE = "tests/mutations/cases/tests.py"
MISSES = f"{HERE}::test_short_r_is_refused"
SAME = GUARD.replace("len(r) != R_BYTES", "not len(r) == R_BYTES")
NOT_PYTHON = {"file": "engine/models.py", "find": "class Run(models.Model):", "replace": "class"}
# name → what differs in the entry, and what the survey says of it
ENTRIES: dict[str, tuple[dict[str, object], str]] = {
    "missed": ({}, "killed mutations/cases/tests.py::test_short_r_is_refused"),
    "changes-nothing": ({"replace": SAME}, "SURVIVED [passed]"),
    "no-such-name": ({"replace": "    raise NoError"}, "SURVIVED [broken] NameError"),
    "not-python": (dict(NOT_PYTHON), "SURVIVED [crashed]"),  # starting Django imports it
    "in-a-fixture": ({"tests": [f"{HERE}::test_has_a_failing_fixture"]}, "SURVIVED [broken]"),
}


def test_only_a_test_that_fails_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        entry(**{"tests": [MISSES], **change}, id=name) for name, (change, _) in ENTRIES.items()
    ]
    assert main([f"--lists={written(tmp_path, *entries)}"]) == 1
    *lines, sum_ = capsys.readouterr().out.splitlines()
    for name, (_, told) in ENTRIES.items():
        mark, _, said = told.partition(" ")
        [line] = [line for line in lines if name in line.split()]
        assert (line.split()[0], said in line) == (mark, True), line
    assert sum_ == "5 changes, one at a time; 4 not noticed."


@pytest.mark.parametrize("test", ["test_fails_anyway", "test_of_no_name"])
def test_a_test_that_fails_without_any_change_judges_nothing(test: str, tmp_path: Path) -> None:
    lists = written(tmp_path, entry(tests=[f"{HERE}::{test}"]))
    with pytest.raises(MutationError, match="fail without any change"):
        main([f"--lists={lists}"])


def test_a_test_that_does_not_end_is_ended() -> None:
    trial = PytestRun((f"{HERE}::test_does_not_end",), mutation(), seconds_max=5)
    assert [ran.end for _, ran in run_all([trial])] == ["timeout"]


def test_only_named_entries_are_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = written(tmp_path, entry(tests=[MISSES]), entry(id="another", tests=[MISSES]))
    assert len(load(lists)) == 2
    assert main([f"--lists={lists}", "another"]) == 0
    assert "1 changes" in capsys.readouterr().out
