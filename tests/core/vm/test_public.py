"""The public façade: every name resolves, and importing the package imports nothing else."""

import ast
from pathlib import Path

import pytest

import nanovm_core
from nanovm_core import ASTEngine, ConditionError, DeterministicSanitizer, public
from tests.core.kit.builders import ROOT
from tests.core.vm.test_alone import alone

NAMES = {name for name in vars(public) if not name.startswith("__")}


def test_every_public_name_is_the_one_that_the_package_hands_on() -> None:
    assert all(getattr(nanovm_core, name) is getattr(public, name) for name in NAMES)
    assert {"ExecutionVM", "ASTEngine", "DeterministicSanitizer"} <= NAMES


@pytest.mark.parametrize("name", ["nothing", "__path_of_nothing__"])
def test_a_name_that_is_not_public_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(nanovm_core, name)


def test_importing_the_package_imports_no_module_of_it() -> None:
    script = "import nanovm_core\nprint([n for n in sys.modules if n.startswith('nanovm_core.')])"
    found = alone(script)
    assert (found.stdout, found.stderr) == ("[]\n", "")


def test_a_condition_and_a_projection_are_used_through_the_facade() -> None:
    condition = ASTEngine.parse("$slots.days > 0")
    assert condition.holds({"slots": {"days": 1}})
    with pytest.raises(ConditionError):
        ASTEngine.parse("$slots.days >")
    sanitizer = DeterministicSanitizer(modes={"days": "clear"})
    assert sanitizer.for_model({"days": 1, "name": "Ada"}, {}) == {"days": 1}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.py")), ids=lambda p: p.name)
def test_examples_import_the_facade_alone(path: Path) -> None:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not [name for name in modules if name and name.startswith("nanovm_core.")]
