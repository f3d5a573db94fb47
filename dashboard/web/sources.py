"""Where in the source a rule is decided: read from the code that runs, not from a list."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import nanovm_core
import pipeline

SKIPPED = frozenset({"rules", "reasons.py"})  # they name the codes; they decide nothing


@functools.cache
def places(code: str) -> tuple[str, ...]:
    """Every ``file.py:line function`` that names this rule."""
    return tuple(sorted({place for found, place in _all() if found == code}))


@functools.cache
def _all() -> tuple[tuple[str, str], ...]:
    roots = [Path(str(package.__file__)).parent for package in (nanovm_core, pipeline)]
    files = (path for root in roots for path in sorted(root.rglob("*.py")))
    return tuple(
        found for path in files if SKIPPED.isdisjoint(path.parts) for found in _in_file(path)
    )


def _in_file(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = dict(_named(tree))
    yield from ((code, f"{_shown(path)}:{line} {name}") for name, (code, line) in named.items())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value, f"{_shown(path)}:{node.lineno} {function.name}"
                elif isinstance(node, ast.Name) and node.id in named:
                    yield named[node.id][0], f"{_shown(path)}:{node.lineno} {function.name}"


def _shown(path: Path) -> str:
    """A file as it is named from the project's root."""
    return path.relative_to(Path(__file__).resolve().parents[2]).as_posix()


def _named(tree: ast.Module) -> Iterator[tuple[str, tuple[str, int]]]:
    """The texts that a module's own names stand for, and those in its tables, with their lines."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = target.id if isinstance(target, ast.Name) else ""
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield name, (node.value.value, node.lineno)
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield f"{name}[{part.value}]", (part.value, part.lineno)
