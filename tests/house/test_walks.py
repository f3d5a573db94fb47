"""How far one reads to follow a call: the modules that it leads to, and back to ones already left.

The walk goes through every function of the entry's own folder, in the order of the code, and stops
at the first function of any other folder: that one is looked at and not read. A **place** is a stay
in one module, a **return** a stay in a module that the walk had left before. Calls of methods are
followed where the class is named; what Django, templates and the application's port call is not.
"""

import ast
from collections.abc import Iterator
from functools import cache
from itertools import groupby

import pytest

from tests.house.repository import ROOT, source_of, tree_of

Function = tuple[str, str]  # a module, and a function or Class.method of it

WALKS = {
    "dashboard.runs.frames.frames": (51, 16),
    "engine.privacy.erasure.erase_run": (30, 12),
    "engine.runtime.api.submit": (46, 24),
    "nanovm_core.core.fsm.transition": (42, 31),
}


@pytest.mark.parametrize("entry", WALKS)
def test_a_walk_is_short(entry: str) -> None:
    module, _, name = entry.rpartition(".")
    stays = [at for at, _ in groupby(where for where, _ in walk((module, name)))]
    places, returns = WALKS[entry]
    assert len(stays) <= places, stays
    assert len(stays) - len({*stays}) <= returns, stays


def walk(entry: Function, seen: set[Function] | None = None) -> Iterator[Function]:
    """The functions that a call passes, each once, in the order in which one reads them."""
    seen = {entry} if seen is None else seen
    yield entry
    for call in calls(*entry):
        if call not in seen:
            seen.add(call)
            same = folder(call[0]) == folder(entry[0])
            yield from walk(call, seen) if same else [call]


def calls(module: str, name: str) -> Iterator[Function]:
    """The functions that the text of a function names, in the order in which they are called."""
    own = names(module)
    holder = name.partition(".")[0]
    for node in in_order(defined(module)[name]):
        found: Function | None = None
        if isinstance(node, ast.Name):
            found = own.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            base = (module, holder) if node.value.id == "self" else own.get(node.value.id)
            found = (dotted(base), node.attr) if base else None
            if base and base[1] and not is_module(dotted(base)):
                found = (base[0], f"{base[1]}.{node.attr}")
        if found and is_module(found[0]) and found[1] in defined(found[0]):
            yield found


def in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function as they are evaluated: the arguments before the call."""
    for child in ast.iter_child_nodes(node):
        yield from in_order(child)
    yield node


@cache
def names(module: str) -> dict[str, Function]:
    """What the names of a module mean: of its own functions and classes, and of its imports."""
    found = {name: (module, name) for name in [*defined(module), *classes(module)]}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {each.asname or each.name: (node.module, each.name) for each in node.names}
    return found


def dotted(name: Function) -> str:
    return ".".join(filter(None, name))


@cache
def defined(module: str) -> dict[str, ast.AST]:
    """The functions of a module and the methods of its classes."""
    own = {node.name: node for node in tree(module).body if isinstance(node, ast.FunctionDef)}
    methods = {
        f"{name}.{node.name}": node
        for name, each in classes(module).items()
        for node in each.body
        if isinstance(node, ast.FunctionDef)
    }
    return {**own, **methods}


@cache
def classes(module: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree(module).body if isinstance(node, ast.ClassDef)}


def folder(module: str) -> str:
    package = (ROOT / module.replace(".", "/")).is_dir()
    return module if package else module.rpartition(".")[0]


@cache
def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@cache
def tree(module: str) -> ast.Module:
    path = ROOT / module.replace(".", "/")
    file = path.with_suffix(".py")
    return tree_of(source_of(file if file.is_file() else path / "__init__.py"))
