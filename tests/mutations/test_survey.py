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

ENTRIES = {
    "missed": entry(tests=[MISSES]),
    "changes-nothing": entry(tests=[MISSES], replace=SAME),
    "fails-anyway": entry(tests=[f"{HERE}/tests.py::test_fails_anyway"]),
    "no-such-test": entry(tests=[f"{HERE}/tests.py::test_of_no_such_name"]),
    "no-such-name": entry(tests=[MISSES], replace="    raise NoSuchError"),
    "not-python": entry(
        tests=[MISSES],
        file="pipeline/models.py",
        find="class Workspace(models.Model):",
        replace="class",
    ),
    "in-a-fixture": entry(tests=[f"{HERE}/tests.py::test_has_a_failing_fixture"]),
    "at-collection": entry(tests=[f"{HERE}/module.py"]),
    "at-collection-as-said": entry(tests=[f"{HERE}/module.py"], dies="collection"),
    "not-at-collection": entry(tests=[MISSES], dies="collection"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[str]]:
    """The exit status and the printed lines of a survey over all of them."""
    named = [{**fields, "id": name} for name, fields in ENTRIES.items()]
    lists = written(tmp_path_factory.mktemp("lists"), *named)
    with redirect_stdout(StringIO()) as out:
        status = main([f"--lists={lists}"])
    return status, out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("name", "mark", "said"),
    [
        ("missed", "killed", "tests.py::test_short_r_is_refused"),
        ("changes-nothing", "SURVIVED", "[passed]"),
        ("fails-anyway", "SURVIVED", "[unjudged] with every guard in place it ends as test"),
        ("no-such-test", "SURVIVED", "[unjudged] with every guard in place it ends as crashed"),
        ("no-such-name", "SURVIVED", "[broken] NameError"),
        ("not-python", "SURVIVED", "[crashed]"),  # starting Django imports it
        ("in-a-fixture", "SURVIVED", "[broken]"),
        ("at-collection", "SURVIVED", "[collection]"),
        ("at-collection-as-said", "killed", "module.py"),
        ("not-at-collection", "SURVIVED", "[test] Failed: DID NOT RAISE"),
    ],
)
def test_only_a_test_that_fails_as_the_entry_says_kills(
    name: str, mark: str, said: str, table: tuple[int, list[str]]
) -> None:
    [line] = [line for line in table[1] if name in line.split()]
    assert line.split()[0] == mark
    assert said in line


def test_the_exit_status_counts_the_survivors(table: tuple[int, list[str]]) -> None:
    assert table[0] == 8
    assert table[1][-1] == "10 guards removed, one at a time; 8 not missed."


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
