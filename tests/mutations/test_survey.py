"""The survey tells a guard that is missed from one that is not, and both from a broken change."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from mutations import survey
from mutations.patching import Mutation, load
from mutations.pytest_runs import PytestOutcome
from mutations.survey import Result, main, try_out
from tests.mutations.entries import GUARD, entry, mutation, written

HERE = "tests/mutations/cases"
MISSES = f"{HERE}/tests.py::test_short_r_is_refused"
SAME = GUARD.replace("len(r) != R_BYTES", "not len(r) == R_BYTES")
NOT_PYTHON = {"file": "pipeline/models.py", "find": "class Run(models.Model):", "replace": "class"}
UNJUDGED = "[unjudged] with every guard in place it ends as"
# name → what differs in the entry, its test where it is another, and what the survey says of it
ENTRIES: dict[str, tuple[dict[str, str], str, str]] = {
    "missed": ({}, MISSES, "killed tests.py::test_short_r_is_refused"),
    "changes-nothing": ({"replace": SAME}, MISSES, "SURVIVED [passed]"),
    "fails-anyway": ({}, f"{HERE}/tests.py::test_fails_anyway", f"SURVIVED {UNJUDGED} test"),
    "no-such-test": ({}, f"{HERE}/tests.py::test_of_no_name", f"SURVIVED {UNJUDGED} crashed"),
    "no-such-name": ({"replace": "    raise NoError"}, MISSES, "SURVIVED [broken] NameError"),
    "not-python": (NOT_PYTHON, MISSES, "SURVIVED [crashed]"),  # starting Django imports it
    "in-a-fixture": ({}, f"{HERE}/tests.py::test_has_a_failing_fixture", "SURVIVED [broken]"),
    "at-collection": ({}, f"{HERE}/module.py", "SURVIVED [collection]"),
    "at-collection-as-said": ({"dies": "collection"}, f"{HERE}/module.py", "killed module.py"),
    "not-at-collection": ({"dies": "collection"}, MISSES, "SURVIVED [test] Failed: DID NOT RAISE"),
}


def test_only_a_test_that_fails_as_the_entry_says_kills(tmp_path: Path) -> None:
    entries = [
        entry(**change, id=name, tests=[test]) for name, (change, test, _) in ENTRIES.items()
    ]
    with redirect_stdout(StringIO()) as out:
        status = main([f"--lists={written(tmp_path, *entries)}"])
    *lines, sum_ = out.getvalue().splitlines()
    for name, (_, _, told) in ENTRIES.items():
        mark, _, said = told.partition(" ")
        [line] = [line for line in lines if name in line.split()]
        assert (line.split()[0], said in line) == (mark, True), line
    assert (status, sum_) == (8, "10 guards removed, one at a time; 8 not missed.")


def test_a_test_that_does_not_end_is_ended(tmp_path: Path) -> None:
    lists = written(tmp_path, entry(tests=[f"{HERE}/tests.py::test_does_not_end"]))
    found = try_out(load(lists)[0], seconds_max=5)
    assert (found.killed, found.ran.end) == (False, "timeout")


def test_only_the_named_entries_are_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried: list[str] = []

    def note(chosen: tuple[Mutation, ...]) -> tuple[Result, ...]:
        tried.extend(each.id for each in chosen)
        return ()

    monkeypatch.setattr(survey, "survey", note)
    lists = written(tmp_path, entry(), entry(id="another"))
    assert main([f"--lists={lists}", "another"]) == 0
    assert tried == ["another"]


def test_the_exit_status_does_not_wrap_to_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    survivors = (Result(mutation(), False, PytestOutcome("passed")),) * 256
    monkeypatch.setattr(survey, "survey", lambda _: survivors)
    assert main([f"--lists={written(tmp_path, entry())}"]) == survey.STATUS_MAX
