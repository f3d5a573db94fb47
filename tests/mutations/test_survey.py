"""The survey tells a guard that is missed from one that is not, and both from a broken change."""

from pathlib import Path

import pytest

from mutations import survey
from mutations.patching import load
from mutations.survey import Verdict, judge, main
from mutations.trials import Ran
from tests.mutations.entries import GUARD, entry, mutation, written

HERE = "tests/mutations/cases"


def verdict(folder: Path, case: str, **change: object) -> Verdict:
    """What the survey says of a mutation whose test is a function of ``cases``."""
    lists = written(folder, entry(tests=[f"{HERE}/{case}"], **change))
    return judge(load(lists)[0])


def test_a_guard_whose_test_fails_is_killed(tmp_path: Path) -> None:
    seen = verdict(tmp_path, "short_r.py::test_short_r_is_refused")
    assert seen.killed
    assert seen.ran.test == f"{HERE}/short_r.py::test_short_r_is_refused"
    assert seen.ran.text.startswith("Failed: DID NOT RAISE")


def test_a_change_that_removes_nothing_survives(tmp_path: Path) -> None:
    same = GUARD.replace("len(r) != R_BYTES", "not len(r) == R_BYTES")
    seen = verdict(tmp_path, "short_r.py::test_short_r_is_refused", replace=same)
    assert not seen.killed
    assert seen.ran.end == "passed"
    assert "SURVIVED" in survey.line(seen)


@pytest.mark.parametrize(
    ("case", "change", "end"),
    [
        ("short_r.py", {"replace": "    raise NoSuchError"}, "broken"),
        ("short_r.py", {"replace": "    from nanovm_core import nothing"}, "broken"),
        ("short_r.py", {"replace": "    if"}, "crashed"),  # Django's own start imports it
        ("fixture.py", {}, "broken"),
        ("module.py", {}, "collection"),
        ("short_r.py::test_of_no_such_name", {}, "crashed"),
    ],
)
def test_tests_that_fail_for_another_reason_kill_nothing(
    case: str, change: dict[str, object], end: str, tmp_path: Path
) -> None:
    seen = verdict(tmp_path, case, **change)
    assert (seen.killed, seen.ran.end) == (False, end)


def test_an_entry_may_say_that_its_tests_cannot_be_collected(tmp_path: Path) -> None:
    assert verdict(tmp_path, "module.py", dies="collection").killed
    assert not verdict(tmp_path, "short_r.py", dies="collection").killed


def test_a_test_that_does_not_end_is_ended_and_kills_only_where_the_entry_says_so(
    tmp_path: Path,
) -> None:
    lists = written(tmp_path, entry(tests=[f"{HERE}/endless.py"]))
    endless = load(lists)[0]
    seen = judge(endless, seconds_max=5)
    assert (seen.killed, seen.ran.end) == (False, "timeout")


def test_the_command_tells_the_number_of_survivors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = [f"{HERE}/short_r.py"]
    same = GUARD.replace("len(r) != R_BYTES", "not len(r) == R_BYTES")
    failing = [f"{HERE}/failing.py"]
    lists = written(
        tmp_path,
        entry(id="real", tests=test),
        entry(id="nothing", replace=same, tests=test),
        entry(id="unjudged", tests=failing),
    )
    assert main([f"--lists={lists}"]) == 2
    *lines, last = capsys.readouterr().out.splitlines()
    told = {words[3]: (words[0], text) for text in lines if (words := text.split())}
    assert {name: mark for name, (mark, _) in told.items()} == {
        "real": "killed",
        "nothing": "SURVIVED",
        "unjudged": "SURVIVED",
    }
    assert "with every guard in place it ends as test" in told["unjudged"][1]
    assert last == "3 guards removed, one at a time; 2 not missed."
    assert main([f"--lists={lists}", "real"]) == 0


def test_the_exit_status_does_not_wrap_to_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    survivors = (Verdict(mutation(), False, Ran("passed")),) * 256
    monkeypatch.setattr(survey, "survey", lambda _: survivors)
    assert main([f"--lists={written(tmp_path, entry())}"]) == survey.STATUS_MAX
