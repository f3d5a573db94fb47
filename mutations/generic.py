"""Change statements by generic operators, one in each process, and report the kill rate.

``python -m mutations.generic [--seed 1] [--kernel 150] [--shell 60]``, or with files: conditions
are negated, comparisons and constants moved by one, ``and`` swapped for ``or``, calls and raises
dropped, answers taken away. The tests named after a file or its folder run first, then those of its
room and, for the kernel, all of the kernel's. Exit status: 1 if a rate is below its minimum.
"""

import argparse
import ast
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mutations.patching import ROOT, Mutation, MutationError
from mutations.survey import survivors


class Half(NamedTuple):
    """A part of the product, how many of its changes are drawn, and the kill rate it must have."""

    packages: tuple[str, ...]
    size: int
    killed_min: float


HALVES = {
    "kernel": Half(("nanovm_core",), 150, 0.9),
    "shell": Half(("engine", "pipeline", "reader", "sabotage", "dashboard"), 60, 0.7),
}
APART = {"migrations", "management", "models.py", "apps.py"}
SWAPPED = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SWAPPED |= {"in": "not in", "not in": "in", "is not": "is", "is": "is not"}
OPPOSED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)  # swapped is negated
UNSEEN = {"annotation", "returns", "decorator_list", "msg"}  # types, caches, messages
SHOWN_ONLY = {"__repr__", "__str__"}
IDLE_CALLS = {"assert_never", "cast"}
LOGS = {"log", "logger", "logging"}


def candidates(file: str) -> Iterator[Mutation]:
    """Every change of a file that an operator makes."""
    source = (ROOT / file).read_text(encoding="utf-8")
    for start, end, text, operator in changes(source):
        line = source.count("\n", 0, start) + 1
        yield Mutation(
            id=f"{file}:{line}:{operator}",
            file=file,
            guard=source[start:end].splitlines()[0],
            find=source[:end],  # it begins the file, so it occurs once
            replace=source[:start] + text,
            tests=(),
        )


def changes(source: str) -> Iterator[tuple[int, int, str, str]]:
    """Where each operator applies: start, end, the text in its place, and its name."""
    lengths = [len(line.encode()) for line in source.splitlines(keepends=True)]
    begins = [sum(lengths[:i]) for i in range(len(lengths))]
    encoded = source.encode()

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        ends = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        start = begins[node.lineno - 1] + node.col_offset
        return len(encoded[:start].decode()), len(encoded[:ends].decode())

    def text(node: ast.expr) -> str:
        start, end = place(node)
        return source[start:end]

    for node in _seen(ast.parse(source)):
        for other, replace, operator in _replaced(node, text):
            yield *place(other), replace, operator
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            start, end = place(node.left)[1], place(node.comparators[0])[0]
            if swapped := SWAPPED.get(source[start:end].strip()):
                yield start, end, f" {swapped} ", "swapped"


def _replaced(
    node: ast.AST, text: Callable[[ast.expr], str]
) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """What an operator replaces of a node, the text in its place, and the operator's name."""
    for test in _conditions(node):
        yield test, f"(not ({text(test)}))", "negated"
    match node:
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield node, "pass", "dropped"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(f'({text(each)})' for each in values)})", "joined"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield node, str(value + 1), "off-by-one"
        case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.Constant(value=bool()) as answer):
            yield answer, f"not ({text(answer)})", "returned"
        case ast.Return(value=ast.expr() as answer) if text(answer) != "None":
            yield answer, "None", "returned"


def _conditions(node: ast.AST) -> Iterator[ast.expr]:
    """What a node decides by, but for comparisons that have their own opposite."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            tests = [test]
        case ast.comprehension(ifs=tests):
            pass
        case ast.match_case(guard=ast.expr() as test):
            tests = [test]
        case _:
            return
    for test in tests:
        if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], OPPOSED)):
            yield test


def _seen(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, without what changes nothing that a test may look at."""
    match node:
        case ast.FunctionDef(name=name) if name in SHOWN_ONLY:
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Compare(left=ast.Name(id="__name__"))):
            return
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in IDLE_CALLS:
            return
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in LOGS:
            return
        case ast.JoinedStr():
            return
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.BinOp()) if (
            name.isupper()
        ):
            return  # a named limit: its tests read it by its name, and move with it
    yield node
    for field, value in ast.iter_fields(node):
        for below in value if isinstance(value, list) else [value]:
            if isinstance(below, ast.AST) and field not in UNSEEN:
                yield from _seen(below)


def room(file: str) -> str:
    """The nearest folder of tests that mirrors a file's."""
    if file.startswith("nanovm_core/"):
        names = [each for each in Path(file).parts if (ROOT / "tests/core" / each).is_dir()]
        return "/".join(["tests/core", *names[-1:]])
    for folder in Path(file).parents:
        if folder.name and (ROOT / "tests" / folder).is_dir():
            return f"tests/{folder}"
    raise MutationError(f"{file} has no tests of its room.")


def rounds(file: str) -> list[tuple[str, ...]]:
    """The tests that judge a change of a file: the nearest first, all of them last."""
    path, kernel = Path(file), file.startswith("nanovm_core/")
    named = {path.stem, path.parent.name} - {"__init__", "core", "steps"}
    below = sorted((ROOT / ("tests/core" if kernel else room(file))).rglob("test_*.py"))
    near = [str(each.relative_to(ROOT)) for each in below if any(n in each.stem for n in named)]
    every = (tuple(near), (room(file),), ("tests/core",) if kernel else ())
    return [each for i, each in enumerate(every) if each and each not in every[:i]]


def sample(files: Sequence[str], seed: int, size: int) -> list[Mutation]:
    """So many changes, drawn from all of these files."""
    every = [each for file in files for each in candidates(file)]
    return random.Random(seed).sample(every, min(size, len(every)))  # noqa: S311 - not a secret


def files_of(half: str) -> list[str]:
    """The files of a half that the operators may change."""
    found = (path for name in HALVES[half].packages for path in (ROOT / name).rglob("*.py"))
    paths = (path.relative_to(ROOT) for path in found)
    return sorted(str(path) for path in paths if not APART & {*path.parts})


def rate(chosen: Sequence[Mutation]) -> float:
    """Try changes, print how each ended, and return the share that makes a test fail."""
    lost = survivors({each: rounds(each.file) for each in chosen}, only_tests=False)
    return 1 - lost / len(chosen)


def main(arguments: list[str]) -> int:
    """Try a sample of the kernel and one of the shell, or one of the files that are named."""
    parser = argparse.ArgumentParser(prog="python -m mutations.generic", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    for name, half in HALVES.items():
        parser.add_argument(f"--{name}", type=int, metavar="SIZE", default=half.size)
    parser.add_argument("files", nargs="*", help="files, as many changes as of the kernel")
    given = parser.parse_args(arguments)
    if given.files:
        return int(rate(sample(given.files, given.seed, given.kernel)) < 1)
    sizes = {name: getattr(given, name) for name in HALVES if getattr(given, name)}
    status = 0
    for name, size in sizes.items():
        found = rate(sample(files_of(name), given.seed, size))
        print(f"{name}, seed {given.seed}: kill rate {found:.3f}", flush=True)
        status |= found < HALVES[name].killed_min
    return int(status)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
