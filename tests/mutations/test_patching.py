"""The list fits the source, and a mutation lives in the one process that was started for it."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mutations.patching import (
    LISTS,
    ROOT,
    MutationError,
    apply,
    install,
    line_of,
    load,
    named,
)
from tests.mutations.entries import entry, mutation, written

ALL = load()
PRODUCT = (
    *("config", "dashboard", "sabotage", "pipeline", "nanovm_core", "stripe_sandbox", "samples"),
    "manage.py",
)
SHORT_R = "from nanovm_core.core.vault import commit; print(len(commit(b'r', 'ref', b'value')))"


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What ``python`` did with these arguments."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", sorted({each.file for each in ALL}))
def test_each_mutation_fits_its_source_and_changes_it(file: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    whole = ast.dump(ast.parse(source))
    for each in [each for each in ALL if each.file == file]:
        mutated = apply(source, each)
        tree = ast.parse(mutated)
        compile(tree, file, "exec", dont_inherit=True)
        assert ast.dump(tree) != whole, f"{each.id} changes nothing"
        assert mutated.count("\n") == source.count("\n"), f"{each.id} moves other lines"


def test_every_entry_of_every_list_is_loaded() -> None:
    lists = [tomllib.loads(path.read_text(encoding="utf-8")) for path in LISTS.glob("*.toml")]
    assert len(ALL) == sum(len(each["mutation"]) for each in lists) > 0
    assert (named(ALL[0].id), named(ALL[-1].id)) == (ALL[0], ALL[-1])


def test_apply_keeps_the_numbers_of_all_other_lines() -> None:
    source = (ROOT / "nanovm_core/core/vault.py").read_text(encoding="utf-8")
    mutated = apply(source, mutation()).splitlines()
    differing = [
        n for n, (a, b) in enumerate(zip(source.splitlines(), mutated, strict=True)) if a != b
    ]
    assert len(differing) == 2
    assert [line for n, line in enumerate(mutated) if n in differing] == ["    pass", ""]


@pytest.mark.parametrize(("find", "count"), [("nowhere in it", 0), ("return", 7)])
def test_apply_takes_one_place_only(find: str, count: int) -> None:
    source = "return\n" * 7
    with pytest.raises(MutationError, match=f"occurs {count} times in nanovm_core/core/vault.py"):
        apply(source, mutation(find=find))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guard": None}, "missing or unknown: guard"),
        ({"note": "x"}, "missing or unknown: note"),
        ({"tests": "tests/core/values/test_vault.py"}, "list of strings"),
        ({"code": 7}, "the rest are strings"),
        ({"id": "Short_r"}, "lower-case words"),
        ({"code": "CAP-1"}, "looks like CAP-001"),
        ({"guard": "A short r"}, "in a sentence"),
        ({"tests": []}, "name the tests"),
        ({"file": "nanovm_core/nothing.py"}, "no such Python files"),
        ({"file": "README.md"}, "no such Python files"),
        ({"tests": ["tests/core/test_nothing.py::test_x"]}, "no such Python files"),
        ({"dies": "somehow"}, "`dies` is one of"),
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


@pytest.mark.parametrize("text", ["mutation =", "", "[mutations]"])
def test_a_file_that_is_no_list_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(text)
    with pytest.raises(MutationError, match=r"some\.toml is no list"):
        load(tmp_path)


def test_a_module_that_is_imported_already_is_not_mutated() -> None:
    before = [*sys.meta_path]
    with pytest.raises(MutationError, match="fresh process"):
        install(mutation(file="mutations/patching.py"))
    assert sys.meta_path == before


def test_the_guard_is_gone_in_the_one_process_and_no_file_is_touched(tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text(SHORT_R)
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "nanovm_core").rglob("vault*")}
    without = ran("-m", "mutations", "vault-r-size", "--", str(script))
    assert (without.returncode, without.stdout) == (0, "64\n")
    assert without.stderr == "Without the guard vault-r-size (nanovm_core/core/vault.py).\n"
    whole = ran("-c", SHORT_R)
    assert whole.returncode == 1
    assert "ValueError: r must be 32 random bytes" in whole.stderr
    after = {path: path.stat().st_mtime_ns for path in (ROOT / "nanovm_core").rglob("vault*")}
    assert {path: after[path] for path in before} == before


def test_processes_that_it_starts_have_all_their_guards(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        "import subprocess, sys\n"
        f"raise SystemExit(subprocess.call([sys.executable, '-c', {SHORT_R!r}]))\n"
    )
    child = ran("-m", "mutations", "vault-r-size", "--", str(script))
    assert child.returncode == 1
    assert "ValueError: r must be 32 random bytes" in child.stderr


def test_several_guards_go_at_once_from_one_file_and_from_others(tmp_path: Path) -> None:
    script = tmp_path / "several.py"
    script.write_text(
        "from nanovm_core.core.fsm import results\n"
        "from nanovm_core.core.vault import commit\n"
        "source = results.__loader__.get_source(results.__name__)\n"
        "print(source.count('if False:'), len(commit(b'r', 'ref', b'value')))\n"
    )
    ids = ("owed-by-holder", "step-fills-its-own-slots", "vault-r-size")
    without = ran("-m", "mutations", *ids, "--", str(script))
    assert (without.returncode, without.stdout) == (0, "2 64\n")
    assert without.stderr.splitlines() == [
        f"Without the guard {each} ({named(each).file})." for each in ids
    ]


def test_a_guard_is_told_by_its_line() -> None:
    found = named("owed-by-holder")
    lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
    assert lines[line_of(found) - 1] == "    if not event.by_holder:"
    with pytest.raises(MutationError, match="occurs 0 times"):
        line_of(mutation(find="nowhere in it"))


def test_a_module_runs_with_its_own_arguments(tmp_path: Path) -> None:
    shown = ran("-m", "mutations", "vault-r-size", "--", "json.tool", "--version-of-nothing", "-h")
    assert shown.stdout.startswith("usage: ")
    lists = written(tmp_path, entry(id="of-another-list"))
    listed = ran("-m", "mutations", f"--lists={lists}")
    assert listed.stdout == "of-another-list\tnanovm_core/core/vault.py\t\tA short r.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no-such-guard", "--", "pytest"), "mutations: No mutation is called 'no-such-guard'"),
        (("vault-r-size",), "name what to run after --"),
    ],
)
def test_wrong_use_is_told(arguments: tuple[str, ...], said: str) -> None:
    shown = ran("-m", "mutations", *arguments)
    assert shown.returncode != 0
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr


def test_nothing_of_the_product_imports_it() -> None:
    sources = [path for name in PRODUCT for path in [ROOT / name, *(ROOT / name).rglob("*.py")]]
    importers = [path for path in sources if path.is_file() and _imports_mutations(path)]
    assert len(sources) > 100
    assert importers == []
    assert _imports_mutations(ROOT / "mutations" / "survey.py")


def _imports_mutations(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.partition(".")[0] == "mutations" for name in names):
            return True
    return False
