"""The generic operators change what they say, in any file of the shell, and draw by a seed."""

import ast

from mutations import generic
from mutations.patching import ROOT, apply

SOURCE = """def f(a: int, é: int) -> int:
    if a < é or (
        a == 1
    ):
        raise ValueError("é")
    print(a)
    return 1 if a not in (é,) else 2
"""


def changed() -> set[str]:
    """The source after each change of it."""
    return {SOURCE[:start] + text + SOURCE[end:] for start, end, text, _ in generic.changes(SOURCE)}


def test_each_operator_changes_its_kind_of_statement() -> None:
    assert changed() == {
        SOURCE.replace(
            "a < é or (\n        a == 1\n    )", "(not (a < é or (\n        a == 1\n    )))"
        ),
        SOURCE.replace("a < é", "a <= é"),
        SOURCE.replace("a == 1", "a != 1"),
        SOURCE.replace('raise ValueError("é")', "pass"),
        SOURCE.replace("print(a)", "pass"),
        SOURCE.replace("a not in (é,)", "(not (a not in (é,)))"),
        SOURCE.replace("a not in (é,)", "a in (é,)"),
    }


def test_a_sample_fits_its_files_and_follows_from_its_seed() -> None:
    files = generic.shell()
    drawn = generic.sample(files, seed=1, size=20)
    assert drawn == generic.sample(files, seed=1, size=20) != generic.sample(files, 2, 20)
    for each in drawn:
        source = (ROOT / each.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(apply(source, each))) != ast.dump(ast.parse(source)), each.id
        assert (ROOT / each.tests[0]).is_dir()
    assert generic.room("pipeline/steps/charge/gateway.py") == "tests/pipeline/steps"
