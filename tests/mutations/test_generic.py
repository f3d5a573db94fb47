"""The generic operators change what they say, spare what nothing shows, and draw by a seed."""

import ast

import pytest

from mutations import generic
from mutations.patching import ROOT, apply

pytestmark = pytest.mark.soak

SOURCE = """def f(a: int, é: int) -> int | bool:
    if a < é or (
        a == 1
    ):
        raise ValueError("é")
    print(a)
    return a not in (é,)
"""
IDLE = """LIMIT = 2**20
if TYPE_CHECKING:
    import a
def __repr__(self) -> Annotated[str, 1]:
    return f"{self.x + 1}"
assert_never(x)
logger.info(1)
"""


def changed(source: str) -> set[str]:
    """The source after each change of it."""
    return {source[:start] + text + source[end:] for start, end, text, _ in generic.changes(source)}


def test_each_operator_changes_its_kind_of_statement() -> None:
    test = "a < é or (\n        a == 1\n    )"
    assert changed(SOURCE) == {
        SOURCE.replace(test, f"(not ({test}))"),
        SOURCE.replace(test, "((a < é) and (a == 1))"),
        SOURCE.replace("a < é", "a <= é"),
        SOURCE.replace("a == 1", "a != 1"),
        SOURCE.replace("a == 1", "a == 2"),
        SOURCE.replace('raise ValueError("é")', "pass"),
        SOURCE.replace("print(a)", "pass"),
        SOURCE.replace("a not in (é,)", "not (a not in (é,))"),
        SOURCE.replace("a not in (é,)", "a in (é,)"),
    }


def test_what_changes_nothing_is_left_alone() -> None:
    assert changed(IDLE) == set()


@pytest.mark.parametrize("half", generic.HALVES)
def test_a_sample_fits_its_files_and_follows_from_its_seed(half: str) -> None:
    files = generic.files_of(half)
    drawn = generic.sample(files, seed=1, size=20)
    assert drawn == generic.sample(files, seed=1, size=20) != generic.sample(files, 2, 20)
    for each in drawn:
        source = (ROOT / each.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(apply(source, each))) != ast.dump(ast.parse(source)), each.id


def test_the_nearest_tests_judge_first() -> None:
    folder = "tests/core/gate"
    assert generic.rounds("nanovm_core/core/gate/why.py") == [
        (f"{folder}/test_gate.py", f"{folder}/test_why.py"),
        (folder,),
        ("tests/core",),
    ]
    assert generic.rounds("pipeline/steps/charge/gateway.py") == [
        ("tests/pipeline/steps/test_charge.py",),
        ("tests/pipeline/steps",),
    ]
