"""Every entry of the lists fits its file and changes it."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

from mutations.patching import LISTS, ROOT, apply, by_file, load


def test_each_mutation_fits_its_source_and_changes_it() -> None:
    for file, entries in by_file(load()).items():
        source = (ROOT / file).read_text(encoding="utf-8")
        whole = ast.parse(source)
        for each in entries:
            mutated = apply(source, each)
            pairs = enumerate(zip(source.splitlines(), mutated.splitlines(), strict=True), 1)
            lines = [number for number, (before, after) in pairs if before != after]
            tree = touched(ast.parse(mutated), lines[0], lines[-1])
            compile(tree, file, "exec", dont_inherit=True)
            before = touched(whole, lines[0], lines[-1])
            assert ast.dump(tree) != ast.dump(before), f"{each.id} changes nothing"


def test_each_mutation_reads_names_that_its_source_has(tmp_path: Path) -> None:
    for each in load():
        source = (ROOT / each.file).read_text(encoding="utf-8")
        (tmp_path / f"{each.id}.py").write_text(apply(source, each), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", str(tmp_path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def touched(tree: ast.Module, first: int, last: int) -> ast.Module:
    """The module's statements that have a part in these lines: the others are the same."""

    def begins(top: ast.stmt) -> int:
        decorators: list[ast.expr] = getattr(top, "decorator_list", [])
        return min([top.lineno, *(each.lineno for each in decorators)])

    after = [top for top in tree.body if (top.end_lineno or 0) >= first]
    return ast.Module(body=[top for top in after if begins(top) <= last], type_ignores=[])


def test_every_entry_of_every_list_is_loaded() -> None:
    lists = [tomllib.loads(path.read_text(encoding="utf-8")) for path in LISTS.glob("*.toml")]
    assert len(load()) == sum(len(each["mutation"]) for each in lists) > 0
