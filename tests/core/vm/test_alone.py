"""The kernel alone: with cryptography and the standard library, and nothing else in reach."""

import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.core.kit.builders import ROOT

KERNEL = ROOT / "nanovm_core"
# What is neither the standard library's, nor cryptography's or its C bindings', is not there.
ALONE = """
import sys

class Nothing:
    ours = {"cryptography", "cffi", "_cffi_backend", "pycparser", "nanovm_core", "examples"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.ours | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"there is no {name} here", name=name)

sys.meta_path.insert(0, Nothing())
"""
FOREIGN = ("django", "celery", "channels", "stripe", "lxml", "pypdf", "pytest", "hypothesis")


def alone(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own that can import next to nothing."""
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", ALONE + script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", FOREIGN)
def test_nothing_foreign_is_in_reach(name: str) -> None:
    """The tests below prove something: here these packages cannot be imported."""
    assert find_spec(name) is not None
    found = alone(f"import {name}")
    assert found.returncode == 1
    assert f"ModuleNotFoundError: there is no {name} here" in found.stderr


def test_every_module_of_the_kernel_is_imported_alone() -> None:
    """None of them needs anything else, not even one that nobody imports."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted(KERNEL.rglob("*.py"))
        if path.name != "__init__.py"
    ]
    assert len(names) > 30
    found = alone("".join(f"import {name}\n" for name in names) + "print('all')")
    assert (found.stdout, found.stderr) == ("all\n", "")


def test_the_refund_desk_runs_alone() -> None:
    """The example says the same with Django in reach and without."""
    found = alone("import examples.refund_desk.main as desk\ndesk.main()")
    main = ROOT / "examples/refund_desk/main.py"
    beside = subprocess.run(
        [sys.executable, "-X", "utf8", str(main)], capture_output=True, text=True, check=True
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == beside.stdout
    for said in (
        "BLOCKED CAP-001",
        "BLOCKED POL-010",
        "ada approves: terminated.completed at issue",
        "she signs once more: BLOCKED FSM-015",
        "terminated.completed at issue; receipt 'PENDING'",
        "cem: suspended.budget_exhausted at issue: BUD-001 7000 of workspace/EUR",
        "cem goes on: running.waiting at issue",
        "refund 7: suspended.awaiting_approval at judge: POL-020",
        "its events replayed: the same bytes: True",
        "run once more: the same bytes: True",
        "verify() finds nothing\n     LOG-001 Envelope n = 2 (event #3) was changed.\n     LOG-002",
    ):
        assert said in found.stdout, said
    assert found.stdout.count("the bank was asked 0 times") == 2


def test_the_refund_desk_is_judged_alone() -> None:
    """Proposals are judged, and a policy is tried by its examples, through the library."""
    found = alone(
        "from collections import Counter\n"
        "from examples.refund_desk.desk import FOLDER, desk\n"
        "from nanovm_core import run_examples\n"
        "from nanovm_core.judge import judge\n"
        "lines = (FOLDER / 'proposals.jsonl').read_bytes().splitlines()\n"
        "print(*sorted(Counter(v.verdict for v in judge(desk(), lines)).items()))\n"
        "print(Counter(each.good for each in run_examples(desk())))\n"
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "('ACCEPTED', 7) ('BLOCKED', 26)\nCounter({True: 8})\n"


def test_a_wheel_holds_the_whole_kernel_and_its_marker(tmp_path: Path) -> None:
    """Whoever installs it gets every module, the mark that it is typed, and nothing else."""
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not here: a wheel cannot be put together offline")
    here = tmp_path / "checkout"
    here.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, here)
    for name in ("nanovm_core", "pipeline", "examples"):
        shutil.copytree(ROOT / name, here / name, ignore=shutil.ignore_patterns("__pycache__"))
    built = tmp_path / "built"
    command = ("-q", "build_py", "--build-lib", str(built))  # what a wheel is zipped from
    script = "import setuptools; setuptools.setup()"
    subprocess.run(
        [sys.executable, "-c", script, *command], cwd=here, capture_output=True, check=True
    )
    held = {path.relative_to(built).as_posix() for path in built.rglob("*") if path.is_file()}
    whole = {path.relative_to(ROOT).as_posix() for path in KERNEL.rglob("*.py")}
    assert held == whole | {"nanovm_core/py.typed", "nanovm_core/rules.toml"}


def test_the_kernel_asks_for_cryptography_alone() -> None:
    """What a plain ``pip install`` brings along."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [each.split(">")[0] for each in project["dependencies"]] == ["cryptography"]
