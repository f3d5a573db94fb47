"""A list says what is wrong with it, and a mutation lives in the one process started for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from mutations.patching import ROOT, MutationError, apply, install, line_of, load, named
from tests.mutations.entries import entry, mutation, written

pytestmark = pytest.mark.soak
SHORT_R = "from nanovm_core.core.vault import commit; print(len(commit(b'r', 'ref', b'value')))"


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What ``python`` did with these arguments."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("find", "count"), [("nowhere in it", 0), ("return", 7)])
def test_apply_takes_one_place_only(find: str, count: int) -> None:
    with pytest.raises(MutationError, match=f"occurs {count} times in nanovm_core/core/vault.py"):
        apply("return\n" * 7, mutation(find=find))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guard": None}, "missing or unknown: guard"),
        ({"note": "x"}, "missing or unknown: note"),
        ({"tests": "tests/core/values/test_vault.py"}, "list of strings"),
        ({"id": "Short_r"}, "lower-case words"),
        ({"guard": "A short r"}, "in a sentence"),
        ({"tests": []}, "name the tests"),
        ({"tests": ["tests/core/test_nothing.py::test_x"]}, "no such Python files"),
        ({"find": "x", "replace": "x"}, "must differ"),
        ({"find": "x", "replace": "x\ny"}, "more lines"),
    ],
)
def test_a_bad_entry_is_told(change: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(MutationError, match=said):
        load(written(tmp_path, entry(**change)))


def test_an_id_is_there_once_in_all_lists(tmp_path: Path) -> None:
    written(tmp_path, entry(), entry(id="another"), name="one.toml")
    assert [each.id for each in load(tmp_path)] == ["short-r", "another"]
    written(tmp_path, entry(), name="two.toml")
    with pytest.raises(MutationError, match=r"two\.toml: short-r is listed twice"):
        load(tmp_path)


def test_a_module_that_is_imported_already_is_not_mutated() -> None:
    before = [*sys.meta_path]
    with pytest.raises(MutationError, match="fresh process"):
        install(mutation(file="mutations/patching.py"))
    assert sys.meta_path == before


def test_guards_are_gone_in_the_one_process_and_no_file_is_touched(tmp_path: Path) -> None:
    script = tmp_path / "several.py"
    script.write_text(
        "import subprocess, sys\n"
        "from nanovm_core.core.fsm import results\n"
        "from nanovm_core.core.vault import commit\n"
        "source = results.__loader__.get_source(results.__name__)\n"
        "print(source.count('if False:'), len(commit(b'r', 'ref', b'value')), sys.argv[1:])\n"
        f"raise SystemExit(subprocess.call([sys.executable, '-c', {SHORT_R!r}]))\n"
    )
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "nanovm_core").rglob("*.py")}
    ids = ("owed-by-holder", "step-fills-its-own-slots", "vault-r-size")
    without = ran("-m", "mutations", *ids, "--", str(script), "--version-of-nothing", "-h")
    assert without.stdout == "2 64 ['--version-of-nothing', '-h']\n"
    said = [f"Without the guard {each} ({named(each).file})." for each in ids]
    assert without.stderr.splitlines()[:3] == said
    assert without.returncode == 1  # of the child, which has its guards
    assert "ValueError: r must be 32 random bytes" in without.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_guard_is_told_by_its_line() -> None:
    found = named("owed-by-holder")
    lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
    assert lines[line_of(found) - 1] == "    if not cause.context.by_holder:"


def test_an_unknown_id_is_refused_in_one_sentence() -> None:
    shown = ran("-m", "mutations", "no-such-guard", "--", "pytest")
    assert shown.stderr.startswith("mutations: No mutation is called 'no-such-guard'")
    assert (shown.returncode, "Traceback" in shown.stderr) == (1, False)
