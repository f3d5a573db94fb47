"""The list fits the source, and a mutation lives in the one process that was started for it."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mutations.__main__ import main
from mutations.patching import LISTS, ROOT, MutationError, apply, install, line_of, load, named
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
    whole = ast.parse(source)
    for each in [each for each in ALL if each.file == file]:
        mutated = apply(source, each)
        lines = changed_lines(source, mutated)  # the others keep their numbers
        tree = statements(ast.parse(mutated), *lines)
        compile(tree, file, "exec", dont_inherit=True)
        before = statements(whole, *lines)
        assert ast.dump(tree) != ast.dump(before), f"{each.id} changes nothing"


def changed_lines(source: str, mutated: str) -> tuple[int, int]:
    """The first and the last line in which they differ."""
    pairs = enumerate(zip(source.splitlines(), mutated.splitlines(), strict=True), start=1)
    differing = [number for number, (before, after) in pairs if before != after]
    return differing[0], differing[-1]


def statements(tree: ast.Module, first: int, last: int) -> ast.Module:
    """The module's statements that have a part in these lines: the others are the same."""

    def begins(top: ast.stmt) -> int:
        decorators: list[ast.expr] = getattr(top, "decorator_list", [])
        return min([top.lineno, *(each.lineno for each in decorators)])

    after = [top for top in tree.body if (top.end_lineno or 0) >= first]
    return ast.Module(body=[top for top in after if begins(top) <= last], type_ignores=[])


def test_every_entry_of_every_list_is_loaded() -> None:
    lists = [tomllib.loads(path.read_text(encoding="utf-8")) for path in LISTS.glob("*.toml")]
    assert len(ALL) == sum(len(each["mutation"]) for each in lists) > 0
    assert (named(ALL[0].id), named(ALL[-1].id)) == (ALL[0], ALL[-1])


def test_apply_keeps_the_numbers_of_all_other_lines() -> None:
    source = (ROOT / "nanovm_core/core/vault.py").read_text(encoding="utf-8")
    mutated = apply(source, mutation())
    first, last = changed_lines(source, mutated)
    assert mutated.splitlines()[first - 1 : last] == ["    pass", ""]


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
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "nanovm_core").rglob("vault*")}
    ids = ("owed-by-holder", "step-fills-its-own-slots", "vault-r-size")
    without = ran("-m", "mutations", *ids, "--", str(script), "--version-of-nothing", "-h")
    assert without.stdout == "2 64 ['--version-of-nothing', '-h']\n"
    said = [f"Without the guard {each} ({named(each).file})." for each in ids]
    assert without.stderr.splitlines()[:3] == said
    assert without.returncode == 1  # of the child, which has its guards
    assert "ValueError: r must be 32 random bytes" in without.stderr
    after = {path: path.stat().st_mtime_ns for path in (ROOT / "nanovm_core").rglob("vault*")}
    assert {path: after[path] for path in before} == before


def test_a_guard_is_told_by_its_line() -> None:
    found = named("owed-by-holder")
    lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
    assert lines[line_of(found) - 1] == "    if not cause.context.by_holder:"
    with pytest.raises(MutationError, match="occurs 0 times"):
        line_of(mutation(find="nowhere in it"))


def test_without_an_id_the_mutations_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([f"--lists={written(tmp_path, entry(id='of-another-list'))}"])
    assert capsys.readouterr().out == "of-another-list\tnanovm_core/core/vault.py\t\tA short r.\n"


def test_an_unknown_id_is_refused_in_one_sentence() -> None:
    shown = ran("-m", "mutations", "no-such-guard", "--", "pytest")
    assert shown.returncode != 0
    assert shown.stderr.startswith("mutations: No mutation is called 'no-such-guard'")
    assert "Traceback" not in shown.stderr


def test_a_command_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["vault-r-size"])
    assert "name what to run after --" in capsys.readouterr().err


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
