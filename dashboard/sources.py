"""Where in the source a rule is decided: read from the code that runs, not from a list."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import nanovm_core
import pipeline

SKIPPED = frozenset({"rules.py", "reasons.py"})  # they name the codes; they decide nothing


@functools.cache
def places(code: str) -> tuple[str, ...]:
    """Every ``file.py:line function`` that names this rule."""
    return tuple(sorted({place for found, place in _all() if found == code}))


@functools.cache
def _all() -> tuple[tuple[str, str], ...]:
    roots = [Path(str(package.__file__)).parent for package in (nanovm_core, pipeline)]
    files = (path for root in roots for path in sorted(root.rglob("*.py")))
    return tuple(found for path in files if path.name not in SKIPPED for found in _in_file(path))


def _in_file(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value, f"{path.name}:{node.lineno} {function.name}"
