"""The kernel alone: without Django or the shell in reach, and through its public names."""

import ast
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import nanovm_core
from examples.refund_desk.main import main
from nanovm_core import public
from tests.core.kit.builders import ROOT

NAMES = {name for name in vars(public) if not name.startswith("__")}
FOREIGN = ("django", "celery", "channels", "stripe", "lxml", "pypdf", "pytest", "hypothesis")
# A process in which nothing is found but the standard library, cryptography with its C bindings,
# orjson, the kernel and the examples.
ALONE = """
import sys
from importlib import import_module

class Nothing:
    ours = {"cryptography", "cffi", "_cffi_backend", "pycparser", "orjson", "nanovm_core"}
    ours |= {"examples"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.ours | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"there is no {name} here", name=name)

sys.meta_path.insert(0, Nothing())
import nanovm_core
print(*[name for name in sys.modules if name.startswith("nanovm_core.")], end="---")
for name in sys.argv[1:]:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        print(error)
print(end="---")
import_module("examples.refund_desk.main").main()
print(end="---")
from collections import Counter
from examples.refund_desk.desk import FOLDER, desk
from nanovm_core.judge import judge
lines = (FOLDER / "proposals.jsonl").read_bytes().splitlines()
print(*sorted(Counter(verdict.verdict for verdict in judge(desk(), lines)).items()))
print(Counter(each.good for each in nanovm_core.run_examples(desk())))
"""


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What the process says: imported modules, errors, the refund desk, verdicts."""
    found = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", ALONE, *FOREIGN],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout.split("---")


def test_importing_the_package_imports_no_module_of_it(said: list[str]) -> None:
    assert said[0] == ""


def test_nothing_foreign_is_in_reach(said: list[str]) -> None:
    assert all(find_spec(name) is not None for name in FOREIGN)
    assert said[1].splitlines() == [f"there is no {name} here" for name in FOREIGN]


def test_the_refund_desk_runs_alone_and_says_the_same(
    said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main()
    assert said[2] == capsys.readouterr().out
    for line in (
        "BLOCKED CAP-001",
        "BLOCKED POL-010",
        "ada approves: terminated.completed at issue",
        "she signs once more: BLOCKED FSM-015",
        "terminated.completed at issue; receipt 'PENDING'",
        "cem: suspended.budget_exhausted at issue: BUD-001 The call needs more than the 7000",
        "cem goes on: running.waiting at issue",
        "refund 7: suspended.awaiting_approval at judge: POL-020",
        "its events replayed: the same bytes: True",
        "run once more: the same bytes: True",
        "verify() finds nothing\n     LOG-001 Envelope n = 2 (event #3) was changed.\n     LOG-002",
    ):
        assert line in said[2], line
    assert said[2].count("the bank was asked 0 times") == 2


def test_proposals_are_judged_and_a_policy_is_tried_alone(said: list[str]) -> None:
    assert said[3] == "('ACCEPTED', 7) ('BLOCKED', 26)\nCounter({True: 8})\n"


def test_the_kernel_asks_for_two_libraries_and_brings_its_data() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [each.split(">")[0] for each in settings["project"]["dependencies"]]
    assert needed == ["cryptography", "orjson"]
    data = settings["tool"]["setuptools"]["package-data"]
    assert data == {"nanovm_core": ["py.typed", "rules.toml"]}


def test_every_public_name_is_the_one_that_the_package_hands_on() -> None:
    assert all(getattr(nanovm_core, name) is getattr(public, name) for name in NAMES)
    assert {"ExecutionVM", "ASTEngine", "DeterministicSanitizer"} <= NAMES
    with pytest.raises(AttributeError, match="nothing"):
        _ = nanovm_core.nothing


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.py")), ids=lambda p: p.name)
def test_examples_import_the_facade_alone(path: Path) -> None:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not [name for name in modules if name and name.startswith("nanovm_core.")]
